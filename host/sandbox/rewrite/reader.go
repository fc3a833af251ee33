package rewrite

import (
	"fmt"
	"unicode/utf8"
)

// reader reads binary WebAssembly: one section, or the list of sections. After the first
// error it returns zeros only, so that callers may check err once at the end.
type reader struct {
	b   []byte
	off int // position of b[0] in the module
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: "+format, append([]any{r.off}, args...)...)
	}
	r.b = nil
}

// take returns the next n bytes, as a view of the module.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("%w", ErrTruncated)
		return nil
	}
	taken := r.b[:n:n]
	r.b, r.off = r.b[n:], r.off+int(n)
	return taken
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("%w", ErrTruncated)
		return 0
	}
	b := r.b[0]
	r.b, r.off = r.b[1:], r.off+1
	return b
}

// uint reads an unsigned LEB128 number of at most the given number of bits.
func (r *reader) uint(bits uint) uint64 {
	var v uint64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.byte()
		if r.err != nil {
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
	r.fail("a number has more than %d bits", bits)
	return 0
}

func (r *reader) u32() uint32 { return uint32(r.uint(32)) }

// int reads a signed LEB128 number of at most 32, 33 or 64 bits.
func (r *reader) int(bits uint) int64 {
	var v int64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.byte()
		if r.err != nil {
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
	r.fail("a number has more than %d bits", bits)
	return 0
}

// name reads a name; the string is a copy.
func (r *reader) name() string {
	raw := r.take(r.uint(32))
	if !utf8.Valid(raw) {
		r.fail("a name is not UTF-8")
		return ""
	}
	return string(raw)
}

// each calls read for each entry of a vector, and stops at the first error. Every entry
// takes at least one byte, so the input bounds the loop.
func (r *reader) each(read func()) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		if len(r.b) == 0 {
			r.fail("%w: %d entries are missing", ErrTruncated, n)
			return
		}
		read()
	}
}
