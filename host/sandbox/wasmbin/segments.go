package wasmbin

// Constant skips a constant expression including its end.
func (r *Reader) Constant() { r.constantRefs(nil) }

// constantRefs skips a constant expression, and adds the functions in it to refs.
func (r *Reader) constantRefs(refs *[]uint32) {
	var in Instruction
	for r.Err == nil {
		switch r.Next(&in); in.Op {
		case OpEnd:
			return
		case OpRefFunc:
			if refs != nil {
				*refs = append(*refs, in.X)
			}
		case OpI32Const, OpI64Const, OpF32Const, OpF64Const, OpGlobalGet, OpRefNull:
		case OpVector:
			if in.Sub != VecConst {
				r.Fail("a constant expression with instruction %#x %#x (WebAssembly 2.0)", in.Op, in.Sub)
			}
		default:
			r.Fail("a constant expression with instruction %#x (WebAssembly 2.0)", in.Op)
		}
	}
}

// Bits of the flag that begins an element segment.
const (
	elementPassive  = 1 << 0 // with elementIndexed: declarative
	ElementIndexed  = 1 << 1
	ElementExprs    = 1 << 2
	elementFlags    = 8
	elementKindFunc = 0
)

// ElementSegment is one element segment. Its parts are views of the module.
type ElementSegment struct {
	Flag   uint32
	Table  uint32 // of an active segment
	Offset []byte // constant expression of an active segment
	Kind   byte   // element kind or reference type, if the flag has one
	Count  uint32
	Items  []byte // function indices or constant expressions
}

// Active reports whether instantiation writes the segment to its table.
func (e *ElementSegment) Active() bool { return e.Flag&elementPassive == 0 }

// HasKind reports whether a kind or type follows the flag.
func (e *ElementSegment) HasKind() bool { return e.Flag&(elementPassive|ElementIndexed) != 0 }

// Element reads one element segment. If refs is not nil, element adds the functions in
// the segment to refs.
func (r *Reader) Element(refs *[]uint32) (e ElementSegment) {
	if e.Flag = r.U32(); e.Flag >= elementFlags {
		r.Fail("an element segment of unknown kind %d", e.Flag)
		return e
	}
	if e.Active() {
		if e.Flag&ElementIndexed != 0 {
			e.Table = r.U32()
		}
		e.Offset = r.Span(r.Constant)
	}
	if e.HasKind() {
		e.Kind = r.Byte()
		if isRef := e.Kind == TypeFuncref || e.Kind == TypeExternref; isRef != (e.Flag&ElementExprs != 0) || !isRef && e.Kind != elementKindFunc {
			r.Fail("elements of unknown kind %#x", e.Kind)
			return e
		}
	}
	item := func() {
		if index := r.U32(); refs != nil && r.Err == nil {
			*refs = append(*refs, index)
		}
	}
	if e.Flag&ElementExprs != 0 {
		item = func() { r.constantRefs(refs) }
	}
	e.Items = r.Span(func() {
		r.Each(func() {
			item()
			e.Count++
		})
	})
	return e
}

// Span returns the bytes that read consumes.
func (r *Reader) Span(read func()) []byte {
	before := r.Rest
	read()
	if r.Err != nil {
		return nil
	}
	return before[:len(before)-len(r.Rest)]
}

// DataSegment is one data segment. Its parts are views of the module.
type DataSegment struct {
	Flag   uint32
	Memory uint32
	Offset []byte // constant expression of an active segment
	Bytes  []byte
}

// Kinds of data segments.
const (
	dataActive  = 0
	DataPassive = 1
	dataIndexed = 2 // active, with the index of a memory
)

// Data reads one data segment.
func (r *Reader) Data() (d DataSegment) {
	d.Flag = r.U32()
	switch d.Flag {
	case DataPassive:
	case dataIndexed:
		d.Memory = r.U32()
		fallthrough
	case dataActive:
		d.Offset = r.Span(r.Constant)
	default:
		r.Fail("a data segment of unknown kind %d", d.Flag)
	}
	d.Bytes = r.Take(r.Uint(32))
	return d
}

// Address returns the offset of an active segment if the offset is a plain number.
func (d *DataSegment) Address() (offset uint32, ok bool) {
	r, in := &Reader{Rest: d.Offset}, Instruction{}
	r.Next(&in)
	if in.Op != OpI32Const {
		return 0, false
	}
	offset = uint32(in.Value)
	r.Next(&in)
	return offset, r.Err == nil && in.Op == OpEnd && len(r.Rest) == 0
}

// Vector returns the number of entries of a section, and the entries.
func (m *Module) Vector(id byte) (n uint64, entries []byte) {
	if m.Sections[id] == nil {
		return 0, nil
	}
	r := &Reader{Rest: m.Sections[id], Offset: m.Offsets[id]}
	n = r.Uint(32)
	return n, r.Rest
}
