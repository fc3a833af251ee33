package rewrite

import (
	"encoding/binary"
	"strconv"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// appendInt appends a signed LEB128 number.
func appendInt(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

func appendBytes[T ~[]byte | ~string](b []byte, s T) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

// appendSection appends a section, unless its payload is empty.
func appendSection(b []byte, id byte, payload []byte) []byte {
	if len(payload) == 0 {
		return b
	}
	return appendBytes(append(b, id), payload)
}

// extended returns a section with further entries, which are already encoded. It returns
// nothing if there are no entries at all.
func extended(m *wasmbin.Module, id byte, more int, entries []byte) []byte {
	n, before := m.Vector(id)
	if n += uint64(more); n == 0 {
		return nil
	}
	return append(append(appendUint(nil, n), before...), entries...)
}

func (w *rewriter) typeSection() []byte {
	var more []byte
	added := w.m.Types[w.typesBefore:]
	for _, t := range added {
		more = append(more, wasmbin.FormFunc)
		more = appendBytes(appendBytes(more, t.Params), t.Results)
	}
	return extended(w.m, wasmbin.SectionType, len(added), more)
}

func (w *rewriter) importSection() []byte {
	var more []byte
	for _, name := range []string{FuncRefuel, FuncOverflow} {
		more = appendBytes(appendBytes(more, MeterModule), name)
		more = appendUint(append(more, wasmbin.KindFunc), uint64(w.plainType))
	}
	return extended(w.m, wasmbin.SectionImport, 2, more)
}

func (w *rewriter) funcSection() []byte {
	var more []byte
	for _, h := range w.helpers {
		more = appendUint(more, uint64(w.typeIndex(helperType(w.m, h))))
	}
	return extended(w.m, wasmbin.SectionFunc, len(w.helpers), more)
}

func (w *rewriter) tableSection() []byte {
	if len(w.m.Tables) == 0 {
		return nil
	}
	b := appendUint(nil, uint64(len(w.m.Tables)))
	for _, t := range w.m.Tables {
		b = t.AppendTo(append(b, t.Type))
	}
	return b
}

func (w *rewriter) memorySection() []byte {
	if len(w.m.Memories) == 0 {
		return nil
	}
	b := appendUint(nil, uint64(len(w.m.Memories)))
	for _, l := range w.m.Memories {
		b = l.AppendTo(b)
	}
	return b
}

// globalSection adds the globals for fuel, which is 0 until the host grants some, and
// depth.
func (w *rewriter) globalSection() []byte {
	b := appendUint(nil, uint64(len(w.m.Globals)+2))
	_, entries := w.m.Vector(wasmbin.SectionGlobal)
	r := &wasmbin.Reader{Rest: entries}
	for range w.m.Globals {
		b = append(b, r.Take(2)...) // the type
		b = w.constant(b, r.Span(r.Constant))
	}
	a := assembler{append(b, wasmbin.TypeI64, 1)}
	a.i64(0)
	a.op(wasmbin.OpEnd, wasmbin.TypeI32, 1)
	a.i32(DefaultDepth)
	a.op(wasmbin.OpEnd)
	return a.b
}

// constant appends a constant expression with its functions renumbered.
func (w *rewriter) constant(b, expr []byte) []byte {
	r, in := &wasmbin.Reader{Rest: expr}, wasmbin.Instruction{}
	for len(r.Rest) > 0 && r.Err == nil {
		raw := r.Span(func() { r.Next(&in) })
		if in.Op == wasmbin.OpRefFunc {
			b = appendUint(append(b, wasmbin.OpRefFunc), uint64(w.function(in.X)))
		} else {
			b = append(b, raw...)
		}
	}
	return b
}

func (w *rewriter) exportSection() []byte {
	b := appendUint(nil, uint64(len(w.m.Exports)+len(w.own)))
	for _, e := range w.m.Exports {
		if e.Kind == wasmbin.KindFunc {
			e.Index = w.function(e.Index)
		}
		b = appendExport(b, e)
	}
	for _, e := range w.own {
		b = appendExport(b, e)
	}
	return b
}

func appendExport(b []byte, e wasmbin.Export) []byte {
	return appendUint(append(appendBytes(b, e.Name), e.Kind), uint64(e.Index))
}

// ownExports returns the exports that the rewriting adds.
func (w *rewriter) ownExports() (list []wasmbin.Export) {
	list = append(list, wasmbin.Export{Name: ExportFuel, Kind: wasmbin.KindGlobal, Index: w.meter.fuel}, wasmbin.Export{Name: ExportDepth, Kind: wasmbin.KindGlobal, Index: w.meter.depth})
	if w.Extract && w.m.Start != nil {
		list = append(list, wasmbin.Export{Name: ExportStart, Kind: wasmbin.KindFunc, Index: w.function(*w.m.Start)})
		w.result.HasStart = true
	}
	first := w.m.Imported(wasmbin.KindGlobal)
	for i, g := range w.m.Globals {
		if !g.Mutable {
			continue
		}
		index := first + uint32(i)
		name := GlobalPrefix + strconv.FormatUint(uint64(index), 10)
		list = append(list, wasmbin.Export{Name: name, Kind: wasmbin.KindGlobal, Index: index})
		w.result.Globals = append(w.result.Globals, Global{name, g.Type, index})
	}
	return list
}

func (w *rewriter) startSection() []byte {
	if w.m.Start == nil || w.Extract {
		return nil
	}
	return appendUint(nil, uint64(w.function(*w.m.Start)))
}

func (w *rewriter) elementSection() []byte {
	n, entries := w.m.Vector(wasmbin.SectionElement)
	if n == 0 {
		return nil
	}
	b := appendUint(nil, n)
	r := &wasmbin.Reader{Rest: entries}
	for range n {
		e := r.Element(nil)
		if r.Err != nil {
			break
		}
		b = appendUint(b, uint64(e.Flag))
		if e.Active() {
			if e.Flag&wasmbin.ElementIndexed != 0 {
				b = appendUint(b, uint64(e.Table))
			}
			b = w.constant(b, e.Offset)
		}
		if e.HasKind() {
			b = append(b, e.Kind)
		}
		b = w.elements(b, &e)
	}
	return b
}

func (w *rewriter) elements(b []byte, e *wasmbin.ElementSegment) []byte {
	r := &wasmbin.Reader{Rest: e.Items}
	b = appendUint(b, uint64(r.U32()))
	for range e.Count {
		if e.Flag&wasmbin.ElementExprs != 0 {
			b = w.constant(b, r.Span(r.Constant))
		} else {
			b = appendUint(b, uint64(w.function(r.U32())))
		}
	}
	return b
}
