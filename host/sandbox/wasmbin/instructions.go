package wasmbin

// The binary form of each instruction of WebAssembly 2.0. As the specification allows,
// numbers may have a longer encoding than necessary, except after the prefix 0xfd:
// compilers disagree about those.

// Opcodes with a special form or meaning.
const (
	OpUnreachable  = 0x00
	OpNop          = 0x01
	OpBlock        = 0x02
	OpLoop         = 0x03
	OpIf           = 0x04
	OpElse         = 0x05
	OpEnd          = 0x0b
	OpBr           = 0x0c
	OpBrIf         = 0x0d
	OpBrTable      = 0x0e
	OpReturn       = 0x0f
	OpCall         = 0x10
	OpCallIndirect = 0x11
	OpDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	OpLocalGet     = 0x20
	OpLocalSet     = 0x21
	OpLocalTee     = 0x22
	OpGlobalGet    = 0x23
	OpGlobalSet    = 0x24
	OpTableGet     = 0x25
	OpTableSet     = 0x26
	OpFirstLoad    = 0x28
	opLastLoad     = 0x35
	OpLastStore    = 0x3e
	OpMemorySize   = 0x3f
	OpMemoryGrow   = 0x40
	OpI32Const     = 0x41
	OpI64Const     = 0x42
	OpF32Const     = 0x43
	OpF64Const     = 0x44
	opFirstNumeric = 0x45
	OpI32Eqz       = 0x45
	OpI32LtS       = 0x48
	OpI32LtU       = 0x49
	OpI32GtU       = 0x4b
	opI32LeU       = 0x4d
	OpI64LtS       = 0x53
	OpI64GtU       = 0x56
	OpI64GeS       = 0x59
	OpI32Add       = 0x6a
	OpI32Sub       = 0x6b
	OpI32Mul       = 0x6c
	OpI32And       = 0x71
	OpI32Or        = 0x72
	OpI32ShrU      = 0x76
	OpI64Add       = 0x7c
	OpI64Sub       = 0x7d
	OpI64Shl       = 0x86
	OpI64ExtendU   = 0xad
	opLastNumeric  = 0xc4
	OpRefNull      = 0xd0
	opRefIsNull    = 0xd1
	OpRefFunc      = 0xd2
	OpMisc         = 0xfc
	OpVector       = 0xfd

	MiscLastTruncate = 7 // i32.trunc_sat_f32_s and the like
	MiscMemoryInit   = 8
	MiscDataDrop     = 9
	MiscMemoryCopy   = 10
	MiscMemoryFill   = 11
	MiscTableInit    = 12
	MiscElemDrop     = 13
	MiscTableCopy    = 14
	MiscTableGrow    = 15
	MiscTableSize    = 16
	MiscTableFill    = 17

	VecConst   = 12
	VecShuffle = 13

	BlockEmpty = 0x40 // the type of a block without results
)

// Instruction is one decoded instruction.
type Instruction struct {
	Op    byte   // one of the opcodes
	Sub   byte   // after a prefix
	X, Y  uint32 // immediates: label; index; segment and table; type and table
	Value int64  // of i32.const and i64.const
	// Block is the type of a block: a type index, or a negative number whose low
	// seven bits are BlockEmpty or a value type.
	Block int64
}

// Next decodes one instruction. For a br_table it reads the number of labels into x. The
// labels and the default label follow.
func (r *Reader) Next(in *Instruction) {
	in.Op = r.Byte()
	switch op := in.Op; {
	case op >= OpBlock && op <= OpIf:
		in.Block = r.int(33)
		if in.Block < 0 && in.Block != BlockEmpty-128 && !isValueType(byte(in.Block+128)) {
			r.Fail("a block of unknown type")
		}
	case op <= OpNop, op == OpElse, op == OpEnd, op == OpReturn, op == OpDrop, op == opSelect:
	case op == OpBr, op == OpBrIf, op == OpCall, op >= OpLocalGet && op <= OpTableSet, op == OpRefFunc, op == OpBrTable:
		in.X = r.U32()
	case op == OpCallIndirect:
		in.X, in.Y = r.U32(), r.U32()
	case op == opSelectTyped:
		if n, t := r.U32(), r.Byte(); n != 1 || !isValueType(t) {
			r.Fail("a select of an unknown type")
		}
	case op >= OpFirstLoad && op <= OpLastStore:
		r.memoryArgument()
	case op == OpMemorySize, op == OpMemoryGrow:
		r.zero()
	case op == OpI32Const:
		in.Value = r.int(32)
	case op == OpI64Const:
		in.Value = r.int(64)
	case op == OpF32Const:
		r.Take(4)
	case op == OpF64Const:
		r.Take(8)
	case op >= opFirstNumeric && op <= opLastNumeric, op == opRefIsNull:
	case op == OpRefNull:
		if t := r.Byte(); t != TypeFuncref && t != TypeExternref {
			r.Fail("a null of unknown type %#x", t)
		}
	case op == OpMisc:
		r.misc(in)
	case op == OpVector:
		r.vector(in)
	default:
		r.Fail("instruction %#x is not supported (WebAssembly 2.0)", op)
	}
}

// memoryArgument skips alignment and offset. In WebAssembly versions with several
// memories, alignments of 64 and above would name a memory.
func (r *Reader) memoryArgument() {
	if align := r.U32(); align >= 64 {
		r.Fail("several memories are not supported (WebAssembly 2.0)")
	}
	r.U32()
}

// zero reads the index of the only memory, which must be 0.
func (r *Reader) zero() {
	if b := r.Byte(); b != 0 {
		r.Fail("memory %d is not supported (WebAssembly 2.0 has one)", b)
	}
}

func (r *Reader) misc(in *Instruction) {
	sub := r.U32() // in any encoding
	if sub > MiscTableFill {
		r.Fail("instruction %#x %#x is not supported (WebAssembly 2.0)", in.Op, sub)
		return
	}
	in.Sub = byte(sub)
	switch in.Sub {
	case MiscMemoryInit:
		in.X = r.U32()
		r.zero()
	case MiscDataDrop, MiscElemDrop, MiscTableGrow, MiscTableSize, MiscTableFill:
		in.X = r.U32()
	case MiscMemoryCopy:
		r.zero()
		r.zero()
	case MiscMemoryFill:
		r.zero()
	case MiscTableInit, MiscTableCopy:
		in.X, in.Y = r.U32(), r.U32()
	}
}

// vector reads what follows the prefix of vector instructions. wazero reads the number as
// one byte, and takes the second byte of a longer encoding, 1, for a nop. Other encodings
// are therefore refused.
func (r *Reader) vector(in *Instruction) {
	in.Sub = r.Byte()
	if in.Sub >= 0x80 && r.Byte() != 1 {
		r.Fail("a vector instruction has an unknown number")
		return
	}
	switch op := in.Sub; {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.memoryArgument()
	case op == VecConst, op == VecShuffle:
		r.Take(16)
	case op >= 21 && op <= 34: // lanes
		r.Take(1)
	case op >= 84 && op <= 91: // loads and stores of lanes
		r.memoryArgument()
		r.Take(1)
	default:
		if !vectorKnown(op) {
			r.Fail("instruction %#x %#x is not supported (WebAssembly 2.0)", in.Op, op)
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

// IsShort reports whether an instruction may run in place if it is short.
func (in *Instruction) IsShort() bool {
	return in.Op == OpMisc && (in.Sub == MiscMemoryCopy || in.Sub == MiscMemoryFill)
}

// IsBulk reports whether an instruction works on many bytes or entries.
func (in *Instruction) IsBulk() bool {
	if in.Op != OpMisc {
		return false
	}
	switch in.Sub {
	case MiscMemoryInit, MiscMemoryCopy, MiscMemoryFill, MiscTableInit, MiscTableCopy, MiscTableGrow, MiscTableFill:
		return true
	}
	return false
}
