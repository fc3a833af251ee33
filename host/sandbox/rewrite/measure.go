package rewrite

import "fmt"

// readCode reads every instruction of every function once, checks its form and fills in
// the fields of Body.
func (m *Module) readCode() error {
	imported := m.imported(KindFunc)
	for i := range m.Bodies {
		b := &m.Bodies[i]
		r := &reader{b: b.code, off: b.offset}
		r.measure(b, func(in *instruction) { m.note(imported+uint32(i), in) })
		if r.err != nil {
			return fmt.Errorf("function %d: %w", int(imported)+i, r.err)
		}
	}
	return nil
}

// note records what an instruction says about the whole module.
func (m *Module) note(function uint32, in *instruction) {
	if in.op == opRefFunc {
		m.refs = append(m.refs, in.x)
		return
	}
	m.uses.note(function, in)
}

func (r *reader) measure(b *Body, note func(in *instruction)) {
	var in instruction
	for depth := 1; depth > 0 && r.err == nil; {
		switch r.next(&in); in.op {
		case opBlock, opLoop, opIf:
			depth++
			b.Nesting = max(b.Nesting, depth-1)
		case opEnd:
			depth--
		case opTableSet, opMisc, opRefFunc:
			note(&in)
		case opBrTable:
			n := in.x
			if uint64(n) >= uint64(len(r.b)) {
				r.fail("%w: labels are missing", ErrTruncated)
				return
			}
			b.Targets = max(b.Targets, int(n)+1)
			for range uint64(n) + 1 {
				r.u32()
			}
		}
	}
	if len(r.b) > 0 {
		r.fail("code after the end")
	}
}

// referenced reports, for each function, whether anything except a direct call can reach
// it: an export, an element segment, a reference or the start section.
func (m *Module) referenced() []bool {
	list := make([]bool, int(m.imported(KindFunc))+len(m.Funcs))
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
