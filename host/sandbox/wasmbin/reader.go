// Package wasmbin reads the binary form of WebAssembly 2.0 modules: sections, entries and
// instructions. It checks form only. It neither validates modules nor knows what the
// program does with them. The package trusts no byte of its input.
package wasmbin

import (
	"fmt"
	"unicode/utf8"
)

// Reader reads binary WebAssembly: one section, or the list of sections. After the first
// error it returns zeros only, so that callers may check Err once at the end.
type Reader struct {
	Rest   []byte // bytes not read yet; a view of the module
	Offset int    // position of Rest[0] in the module
	Err    error  // the first error
}

// Fail records an error at the present position, unless there is one already, and ends the
// input.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("at byte %d: "+format, append([]any{r.Offset}, args...)...)
	}
	r.Rest = nil
}

// Take returns the next n bytes, as a view of the module.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Rest)) {
		r.Fail("%w", ErrTruncated)
		return nil
	}
	taken := r.Rest[:n:n]
	r.Rest, r.Offset = r.Rest[n:], r.Offset+int(n)
	return taken
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.Fail("%w", ErrTruncated)
		return 0
	}
	b := r.Rest[0]
	r.Rest, r.Offset = r.Rest[1:], r.Offset+1
	return b
}

// Uint reads an unsigned LEB128 number of at most the given number of bits.
func (r *Reader) Uint(bits uint) uint64 {
	var v uint64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.Byte()
		if r.Err != nil {
			return 0
		}
		if left := bits - shift; left < 7 && b>>left != 0 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.Fail("a number has more than %d bits", bits)
	return 0
}

// U32 reads an unsigned LEB128 number of at most 32 bits.
func (r *Reader) U32() uint32 { return uint32(r.Uint(32)) }

// int reads a signed LEB128 number of at most 32, 33 or 64 bits.
func (r *Reader) int(bits uint) int64 {
	var v int64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.Byte()
		if r.Err != nil {
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if shift+7 < 64 {
			v = v << (64 - shift - 7) >> (64 - shift - 7)
		}
		if left := bits - shift; left < 7 { // the bits beyond must repeat the sign
			if rest := int8(b<<1) >> left; rest != 0 && rest != -1 {
				break
			}
		}
		return v
	}
	r.Fail("a number has more than %d bits", bits)
	return 0
}

// Name reads a name; the string is a copy.
func (r *Reader) Name() string {
	raw := r.Take(r.Uint(32))
	if !utf8.Valid(raw) {
		r.Fail("a name is not UTF-8")
		return ""
	}
	return string(raw)
}

// Each calls read for each entry of a vector, and stops at the first error. Every entry
// takes at least one byte, so the input bounds the loop.
func (r *Reader) Each(read func()) {
	for n := r.U32(); n > 0 && r.Err == nil; n-- {
		if len(r.Rest) == 0 {
			r.Fail("%w: %d entries are missing", ErrTruncated, n)
			return
		}
		read()
	}
}
