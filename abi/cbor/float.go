package cbor

import (
	"encoding/binary"
	"math"
)

// Float returns the value of a float: initial is its initial byte ([Float16],
// [Float32] or [Float64]), bits the argument of its head.
func Float(initial byte, bits uint64) float64 {
	switch initial {
	case Float16:
		return half(uint16(bits))
	case Float32:
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

// AppendFloat appends the shortest encoding that keeps the finite value.
func AppendFloat(dst []byte, f float64) []byte {
	single := float32(f)
	if float64(single) != f {
		return binary.BigEndian.AppendUint64(append(dst, Float64), math.Float64bits(f))
	}
	bits := math.Float32bits(single)
	if half, ok := halfBits(bits); ok {
		return append(dst, Float16, byte(half>>8), byte(half))
	}
	return binary.BigEndian.AppendUint32(append(dst, Float32), bits)
}

// IsShortest reports whether the finite float has the encoding that
// [AppendFloat] chooses. The arguments are those of [Float].
func IsShortest(initial byte, bits uint64) bool {
	switch initial {
	case Float16:
		return true
	case Float32:
		_, fits := halfBits(uint32(bits))
		return !fits
	}
	f := math.Float64frombits(bits)
	return float64(float32(f)) != f
}

// half returns the value of the bits of a binary16 (RFC 8949, appendix D).
func half(h uint16) float64 {
	exp, mant := int(h>>10&0x1f), float64(h&0x3ff)
	var f float64
	switch {
	case exp == 0:
		f = math.Ldexp(mant, -24)
	case exp < 31:
		f = math.Ldexp(mant+1024, exp-25)
	case mant == 0:
		f = math.Inf(1)
	default:
		f = math.NaN()
	}
	if h&0x8000 != 0 {
		return -f
	}
	return f
}

// halfBits converts the bits of a finite binary32 to binary16, if the conversion is
// exact.
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
		shift := uint(-exp - 1) // 14..23 bits must be zero
		if mant&(1<<shift-1) != 0 {
			return 0, false
		}
		return sign | uint16(mant>>shift), true
	}
	return 0, false
}
