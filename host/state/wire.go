package state

import (
	"encoding/binary"
	"math"
)

// The CBOR major types and items that this package reads and writes itself.
// It parses only what [abi.Canonical] has checked, hence without errors.
const (
	majorUint   = 0
	majorNegInt = 1
	majorBytes  = 2
	majorText   = 3
	majorList   = 4
	majorMap    = 5
	majorSimple = 7

	itemFalse   = 0xf4
	itemTrue    = 0xf5
	itemNull    = 0xf6
	itemFloat16 = 0xf9
	itemFloat32 = 0xfa
	itemFloat64 = 0xfb
)

// headSize returns the length of an item's head with the argument arg.
func headSize(arg uint64) int {
	switch {
	case arg < 24:
		return 1
	case arg <= math.MaxUint8:
		return 2
	case arg <= math.MaxUint16:
		return 3
	case arg <= math.MaxUint32:
		return 5
	}
	return 9
}

func appendHead(dst []byte, major byte, arg uint64) []byte {
	m := major << 5
	switch headSize(arg) {
	case 1:
		return append(dst, m|byte(arg))
	case 2:
		return append(dst, m|24, byte(arg))
	case 3:
		return binary.BigEndian.AppendUint16(append(dst, m|25), uint16(arg))
	case 5:
		return binary.BigEndian.AppendUint32(append(dst, m|26), uint32(arg))
	}
	return binary.BigEndian.AppendUint64(append(dst, m|27), arg)
}

func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, majorText, uint64(len(s))), s...)
}

// head reads an item's head: its major type, its argument (of a float its
// bits) and its length.
func head[S string | []byte](b S) (major byte, arg uint64, size int) {
	info := b[0] & 31
	if info < 24 {
		return b[0] >> 5, uint64(info), 1
	}
	size = 1 + 1<<(info-24)
	for i := 1; i < size; i++ {
		arg = arg<<8 | uint64(b[i])
	}
	return b[0] >> 5, arg, size
}

// float16 returns the value of IEEE 754 binary16 bits, finite ones.
func float16(bits uint16) float64 {
	exp, frac := int(bits>>10&31), float64(bits&1023)
	v := math.Ldexp(frac, -24)
	if exp > 0 {
		v = math.Ldexp(1024+frac, exp-25)
	}
	if bits&0x8000 != 0 {
		return -v
	}
	return v
}
