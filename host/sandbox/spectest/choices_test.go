package spectest

import (
	"encoding/binary"
	"math/rand/v2"
)

// choices makes decisions of bytes: random ones, or a fuzzer's. When they have
// ended every further decision is zero, so that what is decided has to end too.
type choices struct{ rest []byte }

// randomChoices makes so many bytes of a seed.
func randomChoices(seed, index uint64, length int) *choices {
	source := rand.NewPCG(seed, index)
	var b []byte
	for len(b) < length {
		b = binary.LittleEndian.AppendUint64(b, source.Uint64())
	}
	return &choices{b[:length]}
}

// ended tells whether all bytes are used up.
func (c *choices) ended() bool { return len(c.rest) == 0 }

// byte is the next byte.
func (c *choices) byte() byte {
	if c.ended() {
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// below is a number from zero to n-1; n must not be zero.
func (c *choices) below(n int) int {
	if n <= 1<<8 {
		return int(c.byte()) % n
	}
	return int(c.bits(4) % uint64(n))
}

// chance is true in so many of 100 cases.
func (c *choices) chance(percent int) bool { return c.below(100) >= 100-percent }

// bits is a number of so many bytes, at most 8.
func (c *choices) bits(bytes int) uint64 {
	var n uint64
	for range bytes {
		n = n<<8 | uint64(c.byte())
	}
	return n
}

// one takes one of several; there must be some.
func one[T any](c *choices, of []T) T { return of[c.below(len(of))] }

var interesting = []uint64{
	0, 1, 2, 3, 7, 8, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1000, 4095, 4096, 65_519, 65_535, 65_536, 65_537,
	1<<17 - 1, 1 << 17, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2, 1<<64 - 16,
}

// floats are interesting ones, by their bits as 64-bit floats; a NaN is canonical.
var floats = []uint64{
	0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3fe0000000000000, 0x4059000000000000,
	0x41dfffffffc00000, 0x41e0000000000000, 0x41f0000000000000, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000,
	0x7fefffffffffffff, 0x0010000000000000, 0x0000000000000001, 0x47efffffe0000000, 0x36a0000000000000, 0x7ff0000000000000, 0xfff0000000000000, canonicalF64,
}

const (
	canonicalF32 = 0x7fc00000
	canonicalF64 = 0x7ff8000000000000
)

// integer is an interesting number or any.
func (c *choices) integer() uint64 {
	switch c.below(4) {
	case 0, 1:
		return one(c, interesting)
	case 2:
		return uint64(c.byte())
	}
	return c.bits(8)
}
