// Package cbor writes and reads the CBOR items of the weft ABI: text-keyed maps, arrays,
// text, bytes, integers, floats, bools and null. Its output is in Core Deterministic
// Encoding if the caller writes map entries in the order of [CompareKeys]. It checks
// input against the bounds of the data.
//
// The package must not depend on Go types beyond the basic ones, or on any message.
package cbor

import (
	"math"
	"unsafe"
)

// Major types of CBOR items.
const (
	MajorUint   = 0
	MajorNegint = 1
	MajorBytes  = 2
	MajorText   = 3
	MajorArray  = 4
	MajorMap    = 5
	MajorTag    = 6
	MajorSimple = 7
)

// Initial bytes of the simple values and floats.
const (
	False = 0xf4
	True  = 0xf5
	Null  = 0xf6
)

// AppendHead appends an item's head in its shortest form.
func AppendHead(b []byte, major byte, arg uint64) []byte {
	major <<= 5
	switch {
	case arg < 24:
		return append(b, major|byte(arg))
	case arg <= math.MaxUint8:
		return append(b, major|24, byte(arg))
	case arg <= math.MaxUint16:
		return append(b, major|25, byte(arg>>8), byte(arg))
	case arg <= math.MaxUint32:
		return append(b, major|26, byte(arg>>24), byte(arg>>16), byte(arg>>8), byte(arg))
	}
	return append(b, major|27, byte(arg>>56), byte(arg>>48), byte(arg>>40), byte(arg>>32),
		byte(arg>>24), byte(arg>>16), byte(arg>>8), byte(arg))
}

// AppendInt appends a signed integer.
func AppendInt(b []byte, v int64) []byte {
	if v < 0 {
		return AppendHead(b, MajorNegint, uint64(^v))
	}
	return AppendHead(b, MajorUint, uint64(v))
}

// AppendText appends a text string.
func AppendText(b []byte, s string) []byte {
	return append(AppendHead(b, MajorText, uint64(len(s))), s...)
}

// AppendBytes appends a byte string.
func AppendBytes(b, v []byte) []byte {
	return append(AppendHead(b, MajorBytes, uint64(len(v))), v...)
}

// AppendBool appends true or false.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, True)
	}
	return append(b, False)
}

// AppendFloat appends a finite float in the shortest width that keeps its
// value. A whole float stays a float.
func AppendFloat(b []byte, f float64) []byte {
	f32 := float32(f)
	if float64(f32) != f {
		n := math.Float64bits(f)
		return append(b, 0xfb, byte(n>>56), byte(n>>48), byte(n>>40), byte(n>>32),
			byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	n := math.Float32bits(f32)
	if h, ok := toHalf(n); ok {
		return append(b, 0xf9, byte(h>>8), byte(h))
	}
	return append(b, 0xfa, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// toHalf returns the half-precision bits of a finite single-precision float, if the
// conversion is exact.
func toHalf(n uint32) (uint16, bool) {
	sign := uint16(n>>16) & 0x8000
	exp := int32(n>>23&0xff) - 127
	frac := n & 0x7fffff
	switch {
	case n&0x7fffffff == 0:
		return sign, true
	case exp >= -14 && exp <= 15:
		return sign | uint16(exp+15)<<10 | uint16(frac>>13), frac&0x1fff == 0
	case exp >= -24 && exp < -14: // subnormal in half precision
		full := frac | 0x800000
		shift := uint32(-exp - 1)
		return sign | uint16(full>>shift), full&(1<<shift-1) == 0
	}
	return 0, false
}

// fromHalf widens half-precision bits.
func fromHalf(h uint16) float64 {
	exp := int(h >> 10 & 0x1f)
	frac := float64(h & 0x3ff)
	var f float64
	switch exp {
	case 0:
		f = math.Ldexp(frac, -24)
	case 31:
		return math.NaN()
	default:
		f = math.Ldexp(frac+1024, exp-25)
	}
	if h&0x8000 != 0 {
		return -f
	}
	return f
}

// CompareKeys orders map keys as Core Deterministic Encoding does: by the bytes of their
// encoding. For text this is by length, then by bytes.
func CompareKeys(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// text makes a string that shares b's memory; b must not change afterwards.
func text(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
