package rewrite

import (
	"encoding/binary"
	"strconv"
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

// vector returns the number of entries of a section, and the entries.
func (m *Module) vector(id byte) (n uint64, entries []byte) {
	if m.sections[id] == nil {
		return 0, nil
	}
	r := &reader{b: m.sections[id], off: m.offsets[id]}
	n = r.uint(32)
	return n, r.b
}

// extended returns a section with further entries, which are already encoded. It returns
// nothing if there are no entries at all.
func (m *Module) extended(id byte, more int, entries []byte) []byte {
	n, before := m.vector(id)
	if n += uint64(more); n == 0 {
		return nil
	}
	return append(append(appendUint(nil, n), before...), entries...)
}

func appendLimits(b []byte, l Limits) []byte {
	flags := byte(0)
	if l.HasMax {
		flags |= limitsHasMax
	}
	if l.Shared {
		flags |= limitsShared
	}
	if l.Is64 {
		flags |= limits64
	}
	b = appendUint(append(b, flags), l.Min)
	if l.HasMax {
		b = appendUint(b, l.Max)
	}
	return b
}

func (w *rewriter) typeSection() []byte {
	var more []byte
	added := w.m.Types[w.typesBefore:]
	for _, t := range added {
		more = append(more, formFunc)
		more = appendBytes(appendBytes(more, t.Params), t.Results)
	}
	return w.m.extended(sectionType, len(added), more)
}

func (w *rewriter) importSection() []byte {
	var more []byte
	for _, name := range []string{FuncRefuel, FuncOverflow} {
		more = appendBytes(appendBytes(more, MeterModule), name)
		more = appendUint(append(more, KindFunc), uint64(w.plainType))
	}
	return w.m.extended(sectionImport, 2, more)
}

func (w *rewriter) funcSection() []byte {
	var more []byte
	for _, h := range w.helpers {
		more = appendUint(more, uint64(w.typeIndex(w.m.helperType(h))))
	}
	return w.m.extended(sectionFunc, len(w.helpers), more)
}

func (w *rewriter) tableSection() []byte {
	if len(w.m.Tables) == 0 {
		return nil
	}
	b := appendUint(nil, uint64(len(w.m.Tables)))
	for _, t := range w.m.Tables {
		b = appendLimits(append(b, t.Type), t.Limits)
	}
	return b
}

func (w *rewriter) memorySection() []byte {
	if len(w.m.Memories) == 0 {
		return nil
	}
	b := appendUint(nil, uint64(len(w.m.Memories)))
	for _, l := range w.m.Memories {
		b = appendLimits(b, l)
	}
	return b
}

// globalSection adds the globals for fuel, which is 0 until the host grants some, and
// depth.
func (w *rewriter) globalSection() []byte {
	b := appendUint(nil, uint64(len(w.m.Globals)+2))
	_, entries := w.m.vector(sectionGlobal)
	r := &reader{b: entries}
	for range w.m.Globals {
		b = append(b, r.take(2)...) // the type
		b = w.constant(b, r.span(r.constant))
	}
	a := assembler{append(b, TypeI64, 1)}
	a.i64(0)
	a.op(opEnd, TypeI32, 1)
	a.i32(DefaultDepth)
	a.op(opEnd)
	return a.b
}

// constant appends a constant expression with its functions renumbered.
func (w *rewriter) constant(b, expr []byte) []byte {
	r, in := &reader{b: expr}, instruction{}
	for len(r.b) > 0 && r.err == nil {
		raw := r.span(func() { r.next(&in) })
		if in.op == opRefFunc {
			b = appendUint(append(b, opRefFunc), uint64(w.function(in.x)))
		} else {
			b = append(b, raw...)
		}
	}
	return b
}

func (w *rewriter) exportSection() []byte {
	b := appendUint(nil, uint64(len(w.m.Exports)+len(w.own)))
	for _, e := range w.m.Exports {
		if e.Kind == KindFunc {
			e.Index = w.function(e.Index)
		}
		b = appendExport(b, e)
	}
	for _, e := range w.own {
		b = appendExport(b, e)
	}
	return b
}

func appendExport(b []byte, e Export) []byte {
	return appendUint(append(appendBytes(b, e.Name), e.Kind), uint64(e.Index))
}

// ownExports returns the exports that the rewriting adds.
func (w *rewriter) ownExports() (list []Export) {
	list = append(list, Export{ExportFuel, KindGlobal, w.meter.fuel}, Export{ExportDepth, KindGlobal, w.meter.depth})
	if w.Extract && w.m.Start != nil {
		list = append(list, Export{ExportStart, KindFunc, w.function(*w.m.Start)})
		w.result.HasStart = true
	}
	first := w.m.imported(KindGlobal)
	for i, g := range w.m.Globals {
		if !g.Mutable {
			continue
		}
		index := first + uint32(i)
		name := GlobalPrefix + strconv.FormatUint(uint64(index), 10)
		list = append(list, Export{name, KindGlobal, index})
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
	n, entries := w.m.vector(sectionElement)
	if n == 0 {
		return nil
	}
	b := appendUint(nil, n)
	r := &reader{b: entries}
	for range n {
		e := r.element(nil)
		if r.err != nil {
			break
		}
		b = appendUint(b, uint64(e.flag))
		if e.active() {
			if e.flag&elementIndexed != 0 {
				b = appendUint(b, uint64(e.table))
			}
			b = w.constant(b, e.offset)
		}
		if e.hasKind() {
			b = append(b, e.kind)
		}
		b = w.elements(b, &e)
	}
	return b
}

func (w *rewriter) elements(b []byte, e *elementSegment) []byte {
	r := &reader{b: e.items}
	b = appendUint(b, uint64(r.u32()))
	for range e.count {
		if e.flag&elementExprs != 0 {
			b = w.constant(b, r.span(r.constant))
		} else {
			b = appendUint(b, uint64(w.function(r.u32())))
		}
	}
	return b
}
