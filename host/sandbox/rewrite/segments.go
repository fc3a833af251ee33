package rewrite

// constant skips a constant expression including its end.
func (r *reader) constant() { r.constantRefs(nil) }

// constantRefs skips a constant expression, and adds the functions in it to refs.
func (r *reader) constantRefs(refs *[]uint32) {
	var in instruction
	for r.err == nil {
		switch r.next(&in); in.op {
		case opEnd:
			return
		case opRefFunc:
			if refs != nil {
				*refs = append(*refs, in.x)
			}
		case opI32Const, opI64Const, opF32Const, opF64Const, opGlobalGet, opRefNull:
		case opVector:
			if in.sub != vecConst {
				r.fail("a constant expression with instruction %#x %#x (WebAssembly 2.0)", in.op, in.sub)
			}
		default:
			r.fail("a constant expression with instruction %#x (WebAssembly 2.0)", in.op)
		}
	}
}

// Bits of the flag that begins an element segment.
const (
	elementPassive  = 1 << 0 // with elementIndexed: declarative
	elementIndexed  = 1 << 1
	elementExprs    = 1 << 2
	elementFlags    = 8
	elementKindFunc = 0
)

// elementSegment is one element segment. Its parts are views of the module.
type elementSegment struct {
	flag   uint32
	table  uint32 // of an active segment
	offset []byte // constant expression of an active segment
	kind   byte   // element kind or reference type, if the flag has one
	count  uint32
	items  []byte // function indices or constant expressions
}

// active reports whether instantiation writes the segment to its table.
func (e *elementSegment) active() bool { return e.flag&elementPassive == 0 }

// hasKind reports whether a kind or type follows the flag.
func (e *elementSegment) hasKind() bool { return e.flag&(elementPassive|elementIndexed) != 0 }

// element reads one element segment. If refs is not nil, element adds the functions in
// the segment to refs.
func (r *reader) element(refs *[]uint32) (e elementSegment) {
	if e.flag = r.u32(); e.flag >= elementFlags {
		r.fail("an element segment of unknown kind %d", e.flag)
		return e
	}
	if e.active() {
		if e.flag&elementIndexed != 0 {
			e.table = r.u32()
		}
		e.offset = r.span(r.constant)
	}
	if e.hasKind() {
		e.kind = r.byte()
		if isRef := e.kind == TypeFuncref || e.kind == TypeExternref; isRef != (e.flag&elementExprs != 0) || !isRef && e.kind != elementKindFunc {
			r.fail("elements of unknown kind %#x", e.kind)
			return e
		}
	}
	item := func() {
		if index := r.u32(); refs != nil && r.err == nil {
			*refs = append(*refs, index)
		}
	}
	if e.flag&elementExprs != 0 {
		item = func() { r.constantRefs(refs) }
	}
	e.items = r.span(func() {
		r.each(func() {
			item()
			e.count++
		})
	})
	return e
}

// span returns the bytes that read consumes.
func (r *reader) span(read func()) []byte {
	before := r.b
	read()
	if r.err != nil {
		return nil
	}
	return before[:len(before)-len(r.b)]
}

// dataSegment is one data segment. Its parts are views of the module.
type dataSegment struct {
	flag   uint32
	memory uint32
	offset []byte // constant expression of an active segment
	bytes  []byte
}

// Kinds of data segments.
const (
	dataActive  = 0
	dataPassive = 1
	dataIndexed = 2 // active, with the index of a memory
)

// data reads one data segment.
func (r *reader) data() (d dataSegment) {
	d.flag = r.u32()
	switch d.flag {
	case dataPassive:
	case dataIndexed:
		d.memory = r.u32()
		fallthrough
	case dataActive:
		d.offset = r.span(r.constant)
	default:
		r.fail("a data segment of unknown kind %d", d.flag)
	}
	d.bytes = r.take(r.uint(32))
	return d
}

// address returns the offset of an active segment if the offset is a plain number.
func (d *dataSegment) address() (offset uint32, ok bool) {
	r, in := &reader{b: d.offset}, instruction{}
	r.next(&in)
	if in.op != opI32Const {
		return 0, false
	}
	offset = uint32(in.val)
	r.next(&in)
	return offset, r.err == nil && in.op == opEnd && len(r.b) == 0
}
