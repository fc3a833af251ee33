package rewrite

import "github.com/weftrun/weft/host/sandbox/wasmbin"

// bulk.go replaces bulk instructions by helper functions that work in pieces, each with a
// charge. A helper handles the incomplete piece first, so that the common short case
// needs only one comparison. An operation out of bounds is left to the original
// instruction, which traps without effect.

// noConstant is the constant before a bulk instruction if that constant is not an
// i32.const.
const noConstant = -1

// helper names one helper function: an instruction with its immediates.
type helper struct {
	sub  byte // after the prefix wasmbin.OpMisc
	x, y uint32
}

// helperOf returns the helper that replaces a bulk instruction.
func helperOf(in *wasmbin.Instruction) helper {
	h := helper{sub: in.Sub}
	switch in.Sub {
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy:
		h.x, h.y = in.X, in.Y
	case wasmbin.MiscMemoryCopy, wasmbin.MiscMemoryFill:
	default:
		h.x = in.X
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

// constantBulk reports whether a bulk instruction moves at most a piece whatever its
// operands are, and how many bytes. length is the constant directly before the
// instruction, or noConstant.
func constantBulk(m *wasmbin.Module, in *wasmbin.Instruction, length int64) (bytes uint64, ok bool) {
	if !in.IsBulk() {
		return 0, false
	}
	size := uint64(1)
	switch in.Sub {
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy, wasmbin.MiscTableGrow, wasmbin.MiscTableFill:
		size = entryBytes
	}
	if length != noConstant && uint64(length)*size <= Piece {
		return uint64(length) * size, true
	}
	switch in.Sub {
	case wasmbin.MiscMemoryInit:
		bytes, ok = at(m.DataSizes, in.X)
	case wasmbin.MiscTableInit:
		bytes, ok = at(m.ElementSizes, in.X)
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
func (a *assembler) i32(v int32)                { a.b = appendInt(append(a.b, wasmbin.OpI32Const), int64(v)) }
func (a *assembler) i64(v int64)                { a.b = appendInt(append(a.b, wasmbin.OpI64Const), v) }
func (a *assembler) get(locals ...uint32) {
	for _, l := range locals {
		a.with(wasmbin.OpLocalGet, l)
	}
}
func (a *assembler) set(local uint32) { a.with(wasmbin.OpLocalSet, local) }

// meter has the indices that metering code uses.
type meter struct {
	refuel, overflow uint32 // functions
	fuel, depth      uint32 // globals
}

// charge subtracts units from the fuel.
func (a *assembler) charge(m meter, units uint32) {
	a.with(wasmbin.OpGlobalGet, m.fuel)
	a.i64(int64(units))
	a.op(wasmbin.OpI64Sub)
	a.with(wasmbin.OpGlobalSet, m.fuel)
}

// check calls refuel if the fuel is negative. The call is in the else arm, so that the
// compiler keeps the register assignment of the path without the call.
func (a *assembler) check(m meter) {
	a.with(wasmbin.OpGlobalGet, m.fuel)
	a.i64(0)
	a.op(wasmbin.OpI64GeS, wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpElse)
	a.with(wasmbin.OpCall, m.refuel)
	a.op(wasmbin.OpEnd)
}

// enter subtracts a frame from the depth, and calls overflow if the depth becomes
// negative.
func (a *assembler) enter(m meter, frame uint32) {
	a.with(wasmbin.OpGlobalGet, m.depth)
	a.i32(int32(frame))
	a.op(wasmbin.OpI32Sub)
	a.with(wasmbin.OpGlobalSet, m.depth)
	a.with(wasmbin.OpGlobalGet, m.depth)
	a.i32(0)
	a.op(wasmbin.OpI32LtS, wasmbin.OpIf, wasmbin.BlockEmpty)
	a.with(wasmbin.OpCall, m.overflow)
	a.op(wasmbin.OpUnreachable, wasmbin.OpEnd)
}

// leave adds a frame back to the depth.
func (a *assembler) leave(m meter, frame uint32) {
	a.with(wasmbin.OpGlobalGet, m.depth)
	a.i32(int32(frame))
	a.op(wasmbin.OpI32Add)
	a.with(wasmbin.OpGlobalSet, m.depth)
}
