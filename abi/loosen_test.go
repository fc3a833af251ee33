package abi_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// loosen returns a canonical item with the pairs of its maps in random order
// and its heads and floats in random widths. It is written apart from the
// codec, so that the two check each other.
func loosen(rng *rand.Rand, b []byte) []byte {
	out, rest := loosenItem(rng, nil, b)
	if len(rest) != 0 {
		panic("loosen: trailing data")
	}
	return out
}

func loosenItem(rng *rand.Rand, dst, b []byte) (out, rest []byte) {
	major, arg, after := splitHead(b)
	if major == 7 {
		return loosenOther(rng, dst, b, after)
	}
	dst = looseHead(rng, dst, major, arg)
	switch major {
	case 2, 3:
		return append(dst, after[:arg]...), after[arg:]
	case 4:
		for range arg {
			dst, after = loosenItem(rng, dst, after)
		}
	case 5:
		pairs := make([][]byte, arg)
		for i := range pairs {
			pairs[i], after = loosenItem(rng, nil, after)
			pairs[i], after = loosenItem(rng, pairs[i], after)
		}
		rng.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		for _, p := range pairs {
			dst = append(dst, p...)
		}
	}
	return dst, after
}

func loosenOther(rng *rand.Rand, dst, b, after []byte) (out, rest []byte) {
	var f float64
	switch b[0] {
	case 0xfa:
		f = float64(math.Float32frombits(binary.BigEndian.Uint32(b[1:])))
	case 0xf9:
		f = halfOf(binary.BigEndian.Uint16(b[1:]))
	default:
		return append(dst, b[:len(b)-len(after)]...), after
	}
	switch rng.IntN(3) {
	case 0:
		return append(dst, b[:len(b)-len(after)]...), after
	case 1:
		dst = append(dst, 0xfa)
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(f))), after
	default:
		dst = append(dst, 0xfb)
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f)), after
	}
}

// halfOf decodes binary16 as RFC 8949, appendix D does.
func halfOf(h uint16) float64 {
	exp, mant := int(h>>10&0x1f), float64(h&0x3ff)
	v := math.Ldexp(mant+1024, exp-25)
	if exp == 0 {
		v = math.Ldexp(mant, -24)
	}
	if h>>15 == 1 {
		return math.Copysign(v, -1)
	}
	return v
}

// splitHead reads a head; of major type 7 the argument is the content.
func splitHead(b []byte) (major byte, arg uint64, after []byte) {
	major = b[0] >> 5
	switch b[0] & 31 {
	case 24:
		return major, uint64(b[1]), b[2:]
	case 25:
		return major, uint64(binary.BigEndian.Uint16(b[1:])), b[3:]
	case 26:
		return major, uint64(binary.BigEndian.Uint32(b[1:])), b[5:]
	case 27:
		return major, binary.BigEndian.Uint64(b[1:]), b[9:]
	default:
		return major, uint64(b[0] & 31), b[1:]
	}
}

// looseHead writes a head in any width that can hold the argument.
func looseHead(rng *rand.Rand, dst []byte, major byte, arg uint64) []byte {
	m := major << 5
	for {
		switch width := rng.IntN(5); {
		case width == 0 && arg < 24:
			return append(dst, m|byte(arg))
		case width == 1 && arg <= math.MaxUint8:
			return append(dst, m|24, byte(arg))
		case width == 2 && arg <= math.MaxUint16:
			return binary.BigEndian.AppendUint16(append(dst, m|25), uint16(arg))
		case width == 3 && arg <= math.MaxUint32:
			return binary.BigEndian.AppendUint32(append(dst, m|26), uint32(arg))
		case width == 4:
			return binary.BigEndian.AppendUint64(append(dst, m|27), arg)
		}
	}
}
