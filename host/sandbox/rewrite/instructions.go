package rewrite

// The binary form of each instruction of WebAssembly 2.0. As the specification allows,
// numbers may have a longer encoding than necessary, except after the prefix 0xfd:
// compilers disagree about those.

// Opcodes with a special form or meaning.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opFirstLoad    = 0x28
	opLastLoad     = 0x35
	opLastStore    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opFirstNumeric = 0x45
	opI32Eqz       = 0x45
	opI32LtS       = 0x48
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI64GeS       = 0x59
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Mul       = 0x6c
	opI32And       = 0x71
	opI32Or        = 0x72
	opI32ShrU      = 0x76
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Shl       = 0x86
	opI64ExtendU   = 0xad
	opLastNumeric  = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	miscLastTruncate = 7 // i32.trunc_sat_f32_s and the like
	miscMemoryInit   = 8
	miscDataDrop     = 9
	miscMemoryCopy   = 10
	miscMemoryFill   = 11
	miscTableInit    = 12
	miscElemDrop     = 13
	miscTableCopy    = 14
	miscTableGrow    = 15
	miscTableSize    = 16
	miscTableFill    = 17

	vecConst   = 12
	vecShuffle = 13

	blockEmpty = 0x40
)

// instruction is one decoded instruction.
type instruction struct {
	op   byte
	sub  byte   // after a prefix
	x, y uint32 // immediates: label; index; segment and table; type and table
	val  int64  // of i32.const and i64.const
	// block is the type of a block: a type index, or a negative number whose low
	// seven bits are blockEmpty or a value type.
	block int64
}

// next decodes one instruction. For a br_table it reads the number of labels into x. The
// labels and the default label follow.
func (r *reader) next(in *instruction) {
	in.op = r.byte()
	switch op := in.op; {
	case op >= opBlock && op <= opIf:
		in.block = r.int(33)
		if in.block < 0 && in.block != blockEmpty-128 && !isValueType(byte(in.block+128)) {
			r.fail("a block of unknown type")
		}
	case op <= opNop, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect:
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opTableSet, op == opRefFunc, op == opBrTable:
		in.x = r.u32()
	case op == opCallIndirect:
		in.x, in.y = r.u32(), r.u32()
	case op == opSelectTyped:
		if n, t := r.u32(), r.byte(); n != 1 || !isValueType(t) {
			r.fail("a select of an unknown type")
		}
	case op >= opFirstLoad && op <= opLastStore:
		r.memoryArgument()
	case op == opMemorySize, op == opMemoryGrow:
		r.zero()
	case op == opI32Const:
		in.val = r.int(32)
	case op == opI64Const:
		in.val = r.int(64)
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op >= opFirstNumeric && op <= opLastNumeric, op == opRefIsNull:
	case op == opRefNull:
		if t := r.byte(); t != TypeFuncref && t != TypeExternref {
			r.fail("a null of unknown type %#x", t)
		}
	case op == opMisc:
		r.misc(in)
	case op == opVector:
		r.vector(in)
	default:
		r.fail("instruction %#x is not supported (WebAssembly 2.0)", op)
	}
}

// memoryArgument skips alignment and offset. In WebAssembly versions with several
// memories, alignments of 64 and above would name a memory.
func (r *reader) memoryArgument() {
	if align := r.u32(); align >= 64 {
		r.fail("several memories are not supported (WebAssembly 2.0)")
	}
	r.u32()
}

// zero reads the index of the only memory, which must be 0.
func (r *reader) zero() {
	if b := r.byte(); b != 0 {
		r.fail("memory %d is not supported (WebAssembly 2.0 has one)", b)
	}
}

func (r *reader) misc(in *instruction) {
	sub := r.u32() // in any encoding
	if sub > miscTableFill {
		r.fail("instruction %#x %#x is not supported (WebAssembly 2.0)", in.op, sub)
		return
	}
	in.sub = byte(sub)
	switch in.sub {
	case miscMemoryInit:
		in.x = r.u32()
		r.zero()
	case miscDataDrop, miscElemDrop, miscTableGrow, miscTableSize, miscTableFill:
		in.x = r.u32()
	case miscMemoryCopy:
		r.zero()
		r.zero()
	case miscMemoryFill:
		r.zero()
	case miscTableInit, miscTableCopy:
		in.x, in.y = r.u32(), r.u32()
	}
}

// vector reads what follows the prefix of vector instructions. wazero reads the number as
// one byte, and takes the second byte of a longer encoding, 1, for a nop. Other encodings
// are therefore refused.
func (r *reader) vector(in *instruction) {
	in.sub = r.byte()
	if in.sub >= 0x80 && r.byte() != 1 {
		r.fail("a vector instruction has an unknown number")
		return
	}
	switch op := in.sub; {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.memoryArgument()
	case op == vecConst, op == vecShuffle:
		r.take(16)
	case op >= 21 && op <= 34: // lanes
		r.take(1)
	case op >= 84 && op <= 91: // loads and stores of lanes
		r.memoryArgument()
		r.take(1)
	default:
		if !vectorKnown(op) {
			r.fail("instruction %#x %#x is not supported (WebAssembly 2.0)", in.op, op)
		}
	}
}

// vectorKnown reports whether a number is assigned to a vector instruction.
func vectorKnown(op byte) bool {
	switch op {
	case 154, 162, 165, 166, 175, 176, 178, 179, 180, 187, 194, 197, 198, 207, 208, 210, 211, 212, 226, 238:
		return false
	}
	return true
}
