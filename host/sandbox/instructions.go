package sandbox

// What the sandbox has to know of instructions: how long each is, and which
// ones write what an image does not have. Whatever it does not know, such as
// instructions of later versions of WebAssembly, counts as one of those.

// Opcodes with a form of their own.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opFirstLoad    = 0x28
	opLastStore    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opFirstNumeric = 0x45
	opLastNumeric  = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	miscLastTruncate = 7 // i32.trunc_sat_f32_s and the like
	miscMemoryCopy   = 10
	miscMemoryFill   = 11
	miscTableSize    = 16

	maxLEBBytes = 10 // of a number of 64 bits
)

// writesOnlyMemoryAndGlobals tells whether the functions of a module can change
// nothing of an instance but its memory and its globals: they do not write
// tables and do not use or drop segments. code is the payload of the section.
func writesOnlyMemoryAndGlobals(code []byte) bool {
	r := &binaryReader{b: code}
	ok := true
	r.each(func() {
		body := &binaryReader{b: r.take(r.uint(32))}
		body.each(func() { body.u32(); body.byte() }) // locals
		for len(body.b) > 0 && ok {
			ok = body.instruction()
		}
		ok = ok && body.err == nil
	})
	return ok && r.err == nil && len(r.b) == 0
}

// instruction skips one instruction. It gives false for one that is not known,
// or is one of those that an image cannot undo.
func (r *binaryReader) instruction() bool {
	switch op := r.byte(); {
	case op >= opBlock && op <= opIf:
		return r.blockType()
	case op <= 0x01, op == 0x05, op == opEnd, op == 0x0f, op == 0x1a, op == 0x1b: // unreachable, nop, else, end, return, drop, select
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opTableGet, op == opRefFunc:
		r.skipLEB()
	case op == opBrTable:
		r.each(r.skipLEB)
		r.skipLEB()
	case op == opCallIndirect:
		r.skipLEB()
		r.skipLEB()
	case op == opSelectTyped:
		return r.byte() == 1 && isValueType(r.byte())
	case op >= opFirstLoad && op <= opLastStore:
		r.skipLEB()
		r.skipLEB()
	case op == opMemorySize, op == opMemoryGrow:
		return r.byte() == 0
	case op == opI32Const, op == opI64Const:
		r.skipLEB()
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op >= opFirstNumeric && op <= opLastNumeric, op == opRefIsNull:
	case op == opRefNull:
		t := r.byte()
		return t == typeFuncref || t == typeExternref
	case op == opMisc:
		return r.miscInstruction()
	case op == opVector:
		return r.vectorInstruction()
	default:
		return false
	}
	return r.err == nil
}

func (r *binaryReader) miscInstruction() bool {
	switch op := r.u32(); {
	case op <= miscLastTruncate:
	case op == miscMemoryCopy:
		r.take(2)
	case op == miscMemoryFill:
		r.take(1)
	case op == miscTableSize:
		r.skipLEB()
	default: // memory.init, data.drop, table.init, elem.drop, table.copy, table.grow, table.fill
		return false
	}
	return r.err == nil
}

// vectorInstruction skips what follows the prefix of vector instructions. The
// compiler takes the number for one byte, and the second byte of a larger one,
// 1, for a nop; other spellings of a number are not accepted here.
func (r *binaryReader) vectorInstruction() bool {
	switch op := r.byte(); {
	case op >= 0x80:
		return r.byte() == 1
	case op <= 11, op == 92, op == 93: // loads and stores
		r.skipLEB()
		r.skipLEB()
	case op == 12, op == 13: // constant, shuffle
		r.take(16)
	case op >= 21 && op <= 34: // lanes
		r.take(1)
	case op >= 84 && op <= 91: // loads and stores of lanes
		r.skipLEB()
		r.skipLEB()
		r.take(1)
	}
	return r.err == nil
}

// blockType skips the type of a block: empty, a value type, or the index of a
// type as a number that is not negative.
func (r *binaryReader) blockType() bool {
	b := r.byte()
	if b == 0x40 || isValueType(b) {
		return r.err == nil
	}
	for b >= 0x80 && r.err == nil {
		b = r.byte()
	}
	return r.err == nil && b < 0x40
}

// skipLEB skips a number, signed or not.
func (r *binaryReader) skipLEB() {
	for range maxLEBBytes {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("a number has more than %d bytes", maxLEBBytes)
}

func isValueType(b byte) bool {
	return b >= typeV128 && b <= typeI32 || b == typeFuncref || b == typeExternref
}
