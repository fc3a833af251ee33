package spectest

import "encoding/binary"

// operation is an instruction that takes operands from the stack and gives one
// result, or none if it stores.
type operation struct {
	code []byte
	in   string // operand types, the deepest first
	out  byte   // 0: none
	// nan names the kind of floats of which a NaN among the results has bits that
	// WebAssembly leaves open: the generator makes it canonical.
	nan   nanKind
	align int // greatest alignment, as a power of two, of one that takes an address; else negative
	lanes int // a lane's number below this follows; 0: none
}

type nanKind string

const (
	nanF32   nanKind = "f32"
	nanF64   nanKind = "f64"
	nanF32x4 nanKind = "f32x4"
	nanF64x2 nanKind = "f64x2"
)

// row is a range of opcodes that take and give the same types.
type row struct {
	first, last uint32
	in, out     string
	nan         nanKind
}

// Operand types, for the tables below.
const (
	I32  = "\x7f"
	I64  = "\x7e"
	F32  = "\x7d"
	F64  = "\x7c"
	V128 = "\x7b"
)

// scalars are opcodes without immediates.
var scalars = []row{
	{0x45, 0x45, I32, I32, ""}, {0x46, 0x4f, I32 + I32, I32, ""}, // eqz, comparisons
	{0x50, 0x50, I64, I32, ""}, {0x51, 0x5a, I64 + I64, I32, ""},
	{0x5b, 0x60, F32 + F32, I32, ""}, {0x61, 0x66, F64 + F64, I32, ""},
	{0x67, 0x69, I32, I32, ""}, {0x6a, 0x78, I32 + I32, I32, ""}, // clz ... rotr
	{0x79, 0x7b, I64, I64, ""}, {0x7c, 0x8a, I64 + I64, I64, ""},
	{0x8b, 0x8c, F32, F32, ""}, {0x8d, 0x91, F32, F32, nanF32}, // abs, neg, ceil ... sqrt
	{0x92, 0x97, F32 + F32, F32, nanF32}, {0x98, 0x98, F32 + F32, F32, ""}, // add ... max, copysign
	{0x99, 0x9a, F64, F64, ""}, {0x9b, 0x9f, F64, F64, nanF64},
	{0xa0, 0xa5, F64 + F64, F64, nanF64}, {0xa6, 0xa6, F64 + F64, F64, ""},
	{0xa7, 0xa7, I64, I32, ""}, {0xa8, 0xa9, F32, I32, ""}, {0xaa, 0xab, F64, I32, ""}, // wrap, trunc
	{0xac, 0xad, I32, I64, ""}, {0xae, 0xaf, F32, I64, ""}, {0xb0, 0xb1, F64, I64, ""}, // extend, trunc
	{0xb2, 0xb3, I32, F32, ""}, {0xb4, 0xb5, I64, F32, ""}, {0xb6, 0xb6, F64, F32, nanF32}, // convert, demote
	{0xb7, 0xb8, I32, F64, ""}, {0xb9, 0xba, I64, F64, ""}, {0xbb, 0xbb, F32, F64, nanF64}, // convert, promote
	{0xbc, 0xbc, F32, I32, ""}, {0xbd, 0xbd, F64, I64, ""}, {0xbe, 0xbe, I32, F32, ""}, {0xbf, 0xbf, I64, F64, ""}, // reinterpret
	{0xc0, 0xc1, I32, I32, ""}, {0xc2, 0xc4, I64, I64, ""}, // sign extension
}

// saturating are the conversions after the prefix 0xfc.
var saturating = []row{
	{0, 1, F32, I32, ""}, {2, 3, F64, I32, ""}, {4, 5, F32, I64, ""}, {6, 7, F64, I64, ""},
}

// vectors are opcodes after the prefix 0xfd, without immediates.
var vectors = []row{
	{14, 14, V128 + V128, V128, ""},                                                                    // swizzle
	{15, 17, I32, V128, ""}, {18, 18, I64, V128, ""}, {19, 19, F32, V128, ""}, {20, 20, F64, V128, ""}, // splat
	{35, 76, V128 + V128, V128, ""}, // comparisons
	{77, 77, V128, V128, ""}, {78, 81, V128 + V128, V128, ""}, {82, 82, V128 + V128 + V128, V128, ""}, {83, 83, V128, I32, ""},
	{94, 94, V128, V128, nanF32x4}, {95, 95, V128, V128, nanF64x2}, // demote, promote
	// i8x16, among them the rounding of floats
	{96, 98, V128, V128, ""}, {99, 100, V128, I32, ""}, {101, 102, V128 + V128, V128, ""},
	{103, 106, V128, V128, nanF32x4}, {107, 109, V128 + I32, V128, ""}, {110, 115, V128 + V128, V128, ""},
	{116, 117, V128, V128, nanF64x2}, {118, 121, V128 + V128, V128, ""}, {122, 122, V128, V128, nanF64x2},
	{123, 123, V128 + V128, V128, ""}, {124, 127, V128, V128, ""},
	// i16x8
	{128, 129, V128, V128, ""}, {130, 130, V128 + V128, V128, ""}, {131, 132, V128, I32, ""}, {133, 134, V128 + V128, V128, ""},
	{135, 138, V128, V128, ""}, {139, 141, V128 + I32, V128, ""}, {142, 147, V128 + V128, V128, ""}, {148, 148, V128, V128, nanF64x2},
	{149, 153, V128 + V128, V128, ""}, {155, 159, V128 + V128, V128, ""},
	// i32x4
	{160, 161, V128, V128, ""}, {163, 164, V128, I32, ""}, {167, 170, V128, V128, ""}, {171, 173, V128 + I32, V128, ""},
	{174, 174, V128 + V128, V128, ""}, {177, 177, V128 + V128, V128, ""}, {181, 186, V128 + V128, V128, ""}, {188, 191, V128 + V128, V128, ""},
	// i64x2
	{192, 193, V128, V128, ""}, {195, 196, V128, I32, ""}, {199, 202, V128, V128, ""}, {203, 205, V128 + I32, V128, ""},
	{206, 206, V128 + V128, V128, ""}, {209, 209, V128 + V128, V128, ""}, {213, 223, V128 + V128, V128, ""},
	// f32x4, f64x2
	{224, 225, V128, V128, ""}, {227, 227, V128, V128, nanF32x4}, {228, 235, V128 + V128, V128, nanF32x4},
	{236, 237, V128, V128, ""}, {239, 239, V128, V128, nanF64x2}, {240, 247, V128 + V128, V128, nanF64x2},
	{248, 255, V128, V128, ""}, // conversions
}

// vectorLanes extract and replace lanes: their number follows.
var vectorLanes = []struct {
	op      uint32
	in, out string
	lanes   int
}{
	{21, V128, I32, 16}, {22, V128, I32, 16}, {23, V128 + I32, V128, 16},
	{24, V128, I32, 8}, {25, V128, I32, 8}, {26, V128 + I32, V128, 8},
	{27, V128, I32, 4}, {28, V128 + I32, V128, 4}, {29, V128, I64, 2}, {30, V128 + I64, V128, 2},
	{31, V128, F32, 4}, {32, V128 + F32, V128, 4}, {33, V128, F64, 2}, {34, V128 + F64, V128, 2},
}

// accesses load and store: alignment and offset follow, and the number of a lane.
var accesses = []struct {
	first, last uint32 // after the prefix 0xfd if the types have a v128
	in, out     string
	align       int
	lanes       int
}{
	{0x28, 0x28, I32, I32, 2, 0}, {0x29, 0x29, I32, I64, 3, 0}, {0x2a, 0x2a, I32, F32, 2, 0}, {0x2b, 0x2b, I32, F64, 3, 0},
	{0x2c, 0x2d, I32, I32, 0, 0}, {0x2e, 0x2f, I32, I32, 1, 0},
	{0x30, 0x31, I32, I64, 0, 0}, {0x32, 0x33, I32, I64, 1, 0}, {0x34, 0x35, I32, I64, 2, 0},
	{0x36, 0x36, I32 + I32, "", 2, 0}, {0x37, 0x37, I32 + I64, "", 3, 0}, {0x38, 0x38, I32 + F32, "", 2, 0}, {0x39, 0x39, I32 + F64, "", 3, 0},
	{0x3a, 0x3a, I32 + I32, "", 0, 0}, {0x3b, 0x3b, I32 + I32, "", 1, 0},
	{0x3c, 0x3c, I32 + I64, "", 0, 0}, {0x3d, 0x3d, I32 + I64, "", 1, 0}, {0x3e, 0x3e, I32 + I64, "", 2, 0},
	{0, 0, I32, V128, 4, 0}, {1, 6, I32, V128, 3, 0},
	{7, 7, I32, V128, 0, 0}, {8, 8, I32, V128, 1, 0}, {9, 9, I32, V128, 2, 0}, {10, 10, I32, V128, 3, 0}, // splat
	{11, 11, I32 + V128, "", 4, 0}, {92, 92, I32, V128, 2, 0}, {93, 93, I32, V128, 3, 0}, // store, zero
	{84, 84, I32 + V128, V128, 0, 16}, {85, 85, I32 + V128, V128, 1, 8}, {86, 86, I32 + V128, V128, 2, 4}, {87, 87, I32 + V128, V128, 3, 2},
	{88, 88, I32 + V128, "", 0, 16}, {89, 89, I32 + V128, "", 1, 8}, {90, 90, I32 + V128, "", 2, 4}, {91, 91, I32 + V128, "", 3, 2},
}

// computing are the operations without an address, accessing those with one,
// by the type of the result.
var computing, accessing = tables()

func tables() (computing, accessing map[byte][]operation) {
	computing, accessing = map[byte][]operation{}, map[byte][]operation{}
	add := func(to map[byte][]operation, out string, o operation) {
		if out != "" {
			o.out = out[0]
		}
		to[o.out] = append(to[o.out], o)
	}
	for _, part := range []struct {
		prefix []byte
		rows   []row
	}{{nil, scalars}, {[]byte{0xfc}, saturating}, {[]byte{0xfd}, vectors}} {
		for _, r := range part.rows {
			for op := r.first; op <= r.last; op++ {
				add(computing, r.out, operation{code: opcode(part.prefix, op), in: r.in, nan: r.nan, align: -1})
			}
		}
	}
	for _, r := range vectorLanes {
		add(computing, r.out, operation{code: opcode([]byte{0xfd}, r.op), in: r.in, align: -1, lanes: r.lanes})
	}
	for _, r := range accesses {
		var prefix []byte
		if r.out == V128 || r.in == I32+V128 {
			prefix = []byte{0xfd}
		}
		for op := r.first; op <= r.last; op++ {
			add(accessing, r.out, operation{code: opcode(prefix, op), in: r.in, align: r.align, lanes: r.lanes})
		}
	}
	return computing, accessing
}

// mayTrap tells the operations without an address that have values to trap on:
// divisions, and conversions of floats to integers.
func (o operation) mayTrap() bool {
	op := o.code[0]
	return 0x6d <= op && op <= 0x70 || 0x7f <= op && op <= 0x82 || 0xa8 <= op && op <= 0xab || 0xae <= op && op <= 0xb1
}

// opcode spells an opcode: a byte, or a prefix and a number in LEB128.
func opcode(prefix []byte, op uint32) []byte {
	if prefix == nil {
		return []byte{byte(op)}
	}
	return binary.AppendUvarint(prefix[:len(prefix):len(prefix)], uint64(op))
}
