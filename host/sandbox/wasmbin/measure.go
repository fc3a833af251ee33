package wasmbin

import (
	"fmt"
	"runtime"
)

// codeTurn is how many bytes of code are read before other goroutines get the processor,
// about 0.1 ms of work.
const codeTurn = 16 << 10

// readCode reads every instruction of every function once, checks its form and fills in
// the fields of Body.
func (m *Module) readCode() error {
	imported := m.Imported(KindFunc)
	turn := 0
	for i := range m.Bodies {
		b := &m.Bodies[i]
		if turn += len(b.Code); turn > codeTurn {
			turn = 0
			runtime.Gosched()
		}
		r := &Reader{Rest: b.Code, Offset: b.Offset}
		r.measure(b, func(in *Instruction) { m.note(imported+uint32(i), in) })
		if r.Err != nil {
			return fmt.Errorf("function %d: %w", int(imported)+i, r.Err)
		}
	}
	return nil
}

// note records what an instruction says about the whole module.
func (m *Module) note(function uint32, in *Instruction) {
	at := byte(0)
	switch {
	case in.Op == OpRefFunc:
		m.refs = append(m.refs, in.X)
		return
	case in.Op == OpMisc && in.Sub > MiscLastTruncate:
		at = in.Sub
	case in.Op != OpTableSet:
		return
	}
	if m.Uses[at] == 0 {
		m.Uses[at] = function + 1
	}
}

func (r *Reader) measure(b *Body, note func(in *Instruction)) {
	var in Instruction
	for depth := 1; depth > 0 && r.Err == nil; {
		switch r.Next(&in); in.Op {
		case OpBlock, OpLoop, OpIf:
			depth++
			b.Nesting = max(b.Nesting, depth-1)
		case OpEnd:
			depth--
		case OpTableSet, OpMisc, OpRefFunc:
			note(&in)
		case OpBrTable:
			n := in.X
			if uint64(n) >= uint64(len(r.Rest)) {
				r.Fail("%w: labels are missing", ErrTruncated)
				return
			}
			b.Targets = max(b.Targets, int(n)+1)
			for range uint64(n) + 1 {
				r.U32()
			}
		}
	}
	if len(r.Rest) > 0 {
		r.Fail("code after the end")
	}
}

// Referenced reports, for each function, whether anything except a direct call can reach
// it: an export, an element segment, a reference or the start section.
func (m *Module) Referenced() []bool {
	list := make([]bool, int(m.Imported(KindFunc))+len(m.Funcs))
	add := func(index uint32) {
		if uint64(index) < uint64(len(list)) {
			list[index] = true
		}
	}
	for _, e := range m.Exports {
		if e.Kind == KindFunc {
			add(e.Index)
		}
	}
	if m.Start != nil {
		add(*m.Start)
	}
	for _, index := range m.refs {
		add(index)
	}
	return list
}

// MiscNames names the instructions after OpMisc by their second byte, except the
// truncations. Index 0 is table.set, as in Module.Uses.
var MiscNames = [...]string{
	0: "table.set", MiscMemoryInit: "memory.init", MiscDataDrop: "data.drop", MiscMemoryCopy: "memory.copy", MiscMemoryFill: "memory.fill",
	MiscTableInit: "table.init", MiscElemDrop: "elem.drop", MiscTableCopy: "table.copy", MiscTableGrow: "table.grow",
	MiscTableSize: "table.size", MiscTableFill: "table.fill",
}
