package rewrite

// bulk.go replaces bulk instructions by helper functions that work in pieces, each with a
// charge. A helper handles the incomplete piece first, so that the common short case
// needs only one comparison. An operation out of bounds is left to the original
// instruction, which traps without effect.

// noConstant is the constant before a bulk instruction if that constant is not an
// i32.const.
const noConstant = -1

// helper names one helper function: an instruction with its immediates.
type helper struct {
	sub  byte // after the prefix opMisc
	x, y uint32
}

// helperOf returns the helper that replaces a bulk instruction.
func helperOf(in *instruction) helper {
	h := helper{sub: in.sub}
	switch in.sub {
	case miscTableInit, miscTableCopy:
		h.x, h.y = in.x, in.y
	case miscMemoryCopy, miscMemoryFill:
	default:
		h.x = in.x
	}
	return h
}

// smallSegment is the size in bytes up to which one operation initializes from a segment,
// charged for the whole segment. It keeps the size of the helpers in proportion to the
// module's.
const smallSegment = 512

// shortBulk is the length in bytes up to which memory.copy and memory.fill run in place,
// charged for that many bytes.
const shortBulk = 256

// maxShortLocals bounds the locals of functions that run short bulk instructions in
// place, which needs one more local.
const maxShortLocals = 100_000

// isShort reports whether an instruction may run in place if it is short.
func (in *instruction) isShort() bool {
	return in.op == opMisc && (in.sub == miscMemoryCopy || in.sub == miscMemoryFill)
}

// isBulk reports whether an instruction works on many bytes or entries.
func (in *instruction) isBulk() bool {
	if in.op != opMisc {
		return false
	}
	switch in.sub {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill, miscTableInit, miscTableCopy, miscTableGrow, miscTableFill:
		return true
	}
	return false
}

// constantBulk reports whether a bulk instruction moves at most a piece whatever its
// operands are, and how many bytes. length is the constant directly before the
// instruction, or noConstant.
func (m *Module) constantBulk(in *instruction, length int64) (bytes uint64, ok bool) {
	if !in.isBulk() {
		return 0, false
	}
	size := uint64(1)
	switch in.sub {
	case miscTableInit, miscTableCopy, miscTableGrow, miscTableFill:
		size = entryBytes
	}
	if length != noConstant && uint64(length)*size <= Piece {
		return uint64(length) * size, true
	}
	switch in.sub {
	case miscMemoryInit:
		bytes, ok = at(m.dataSizes, in.x)
	case miscTableInit:
		bytes, ok = at(m.elementSizes, in.x)
	}
	return bytes * size, ok && bytes*size <= smallSegment
}

func at(sizes []uint32, index uint32) (uint64, bool) {
	if uint64(index) >= uint64(len(sizes)) {
		return 0, false
	}
	return uint64(sizes[index]), true
}

// assembler writes code.
type assembler struct{ b []byte }

func (a *assembler) op(ops ...byte)             { a.b = append(a.b, ops...) }
func (a *assembler) with(op byte, index uint32) { a.b = appendUint(append(a.b, op), uint64(index)) }
func (a *assembler) i32(v int32)                { a.b = appendInt(append(a.b, opI32Const), int64(v)) }
func (a *assembler) i64(v int64)                { a.b = appendInt(append(a.b, opI64Const), v) }
func (a *assembler) get(locals ...uint32) {
	for _, l := range locals {
		a.with(opLocalGet, l)
	}
}
func (a *assembler) set(local uint32) { a.with(opLocalSet, local) }

// meter has the indices that metering code uses.
type meter struct {
	refuel, overflow uint32 // functions
	fuel, depth      uint32 // globals
}

// charge subtracts units from the fuel.
func (a *assembler) charge(m meter, units uint32) {
	a.with(opGlobalGet, m.fuel)
	a.i64(int64(units))
	a.op(opI64Sub)
	a.with(opGlobalSet, m.fuel)
}

// check calls refuel if the fuel is negative. The call is in the else arm, so that the
// compiler keeps the register assignment of the path without the call.
func (a *assembler) check(m meter) {
	a.with(opGlobalGet, m.fuel)
	a.i64(0)
	a.op(opI64GeS, opIf, blockEmpty, opElse)
	a.with(opCall, m.refuel)
	a.op(opEnd)
}

// enter subtracts a frame from the depth, and calls overflow if the depth becomes
// negative.
func (a *assembler) enter(m meter, frame uint32) {
	a.with(opGlobalGet, m.depth)
	a.i32(int32(frame))
	a.op(opI32Sub)
	a.with(opGlobalSet, m.depth)
	a.with(opGlobalGet, m.depth)
	a.i32(0)
	a.op(opI32LtS, opIf, blockEmpty)
	a.with(opCall, m.overflow)
	a.op(opUnreachable, opEnd)
}

// leave adds a frame back to the depth.
func (a *assembler) leave(m meter, frame uint32) {
	a.with(opGlobalGet, m.depth)
	a.i32(int32(frame))
	a.op(opI32Add)
	a.with(opGlobalSet, m.depth)
}
