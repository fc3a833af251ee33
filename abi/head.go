package abi

import (
	"encoding/binary"
	"math"
)

// Major types of CBOR (RFC 8949, 3.1).
const (
	majorUint  = 0
	majorNint  = 1
	majorBytes = 2
	majorText  = 3
	majorArray = 4
	majorMap   = 5
	majorTag   = 6
	majorOther = 7
)

// Initial bytes of the items of major type 7 that this package knows.
const (
	byteFalse   = 0xf4
	byteTrue    = 0xf5
	byteNull    = 0xf6
	byteUndef   = 0xf7
	byteFloat16 = 0xf9
	byteFloat32 = 0xfa
	byteFloat64 = 0xfb
)

// Additional information of a head: below infoByte it is the argument itself.
const (
	infoByte  = 24
	info16    = 25
	info32    = 26
	info64    = 27
	infoIndef = 31
)

// wideHeadLen is the length of the heads that appendWideHead writes.
const wideHeadLen = 5

// majorOf returns the major type that an initial byte announces.
func majorOf(initial byte) byte { return initial >> 5 }

// appendHead appends the shortest head of the major type and argument.
func appendHead(dst []byte, major byte, arg uint64) []byte {
	m := major << 5
	switch {
	case arg < infoByte:
		return append(dst, m|byte(arg))
	case arg <= math.MaxUint8:
		return append(dst, m|infoByte, byte(arg))
	case arg <= math.MaxUint16:
		return append(dst, m|info16, byte(arg>>8), byte(arg))
	case arg <= math.MaxUint32:
		return append(dst, m|info32, byte(arg>>24), byte(arg>>16), byte(arg>>8), byte(arg))
	default:
		return binary.BigEndian.AppendUint64(append(dst, m|info64), arg)
	}
}

// appendWideHead appends a head of five bytes, whose argument putWide sets
// when it is known.
func appendWideHead(dst []byte, major byte) []byte {
	return append(dst, major<<5|info32, 0, 0, 0, 0)
}

// putWide sets the argument of the wide head at the offset.
func putWide(b []byte, off int, arg int) {
	binary.BigEndian.PutUint32(b[off+1:], uint32(arg))
}

// appendInt appends an integer.
func appendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return appendHead(dst, majorNint, uint64(-1-v))
	}
	return appendHead(dst, majorUint, uint64(v))
}

// appendText appends a text string; the caller has checked that it is UTF-8.
func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, majorText, uint64(len(s))), s...)
}

// appendFloat appends the shortest encoding that keeps the value.
func appendFloat(dst []byte, f float64) []byte {
	single := float32(f)
	if float64(single) != f {
		return binary.BigEndian.AppendUint64(append(dst, byteFloat64), math.Float64bits(f))
	}
	bits := math.Float32bits(single)
	if half, ok := halfBits(bits); ok {
		return append(dst, byteFloat16, byte(half>>8), byte(half))
	}
	return binary.BigEndian.AppendUint32(append(dst, byteFloat32), bits)
}

// halfBits converts the bits of a finite binary32 to binary16, if that loses
// nothing.
func halfBits(bits uint32) (uint16, bool) {
	sign := uint16(bits >> 16 & 0x8000)
	exp := int(bits>>23&0xff) - 127
	mant := bits & 0x7fffff
	switch {
	case exp == -127 && mant == 0: // zero; smaller subnormals do not fit
		return sign, true
	case exp >= -14 && exp <= 15:
		if mant&0x1fff != 0 {
			return 0, false
		}
		return sign | uint16(exp+15)<<10 | uint16(mant>>13), true
	case exp >= -24 && exp < -14: // subnormal in binary16
		mant |= 0x800000
		shift := uint(-exp - 1) // 14..23 bits fall off
		if mant&(1<<shift-1) != 0 {
			return 0, false
		}
		return sign | uint16(mant>>shift), true
	default:
		return 0, false
	}
}

// halfValue widens a finite binary16.
func halfValue(h uint16) float64 {
	exp, mant := int(h>>10&0x1f), float64(h&0x3ff)
	var f float64
	if exp == 0 {
		f = math.Ldexp(mant, -24)
	} else {
		f = math.Ldexp(mant+1024, exp-25)
	}
	if h&0x8000 != 0 {
		return math.Copysign(f, -1)
	}
	return f
}

// readArg returns the argument of the head at off and the offset after the
// head. The head must be checked: definite and complete.
func readArg(b []byte, off int) (arg uint64, next int) {
	switch info := b[off] & 31; info {
	case infoByte:
		return uint64(b[off+1]), off + 2
	case info16:
		return uint64(binary.BigEndian.Uint16(b[off+1:])), off + 3
	case info32:
		return uint64(binary.BigEndian.Uint32(b[off+1:])), off + 5
	case info64:
		return binary.BigEndian.Uint64(b[off+1:]), off + 9
	default:
		return uint64(info), off + 1
	}
}

// readFloat returns the value of the checked float at off.
func readFloat(b []byte, off int) (f float64, next int) {
	switch b[off] {
	case byteFloat16:
		return halfValue(binary.BigEndian.Uint16(b[off+1:])), off + 3
	case byteFloat32:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b[off+1:]))), off + 5
	default:
		return math.Float64frombits(binary.BigEndian.Uint64(b[off+1:])), off + 9
	}
}
