package abi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// bytesKey is the key that stands for a byte string in JSON.
const bytesKey = "$bytes"

// CheckValue checks that b is one well-formed value of abi.cddl and nothing
// else, nested at most maxDepth (see [MaxValueDepth]) and within
// [DefaultLimits]: no tags, no indefinite lengths, text keys, no duplicate
// keys, no NaN and no infinities, valid UTF-8, integers in -2^63..2^64-1, no
// simple values but false, true and null, no map whose only key is "$bytes".
// Key order and the width of heads are free. The error is a *[DataError].
//
// It allocates only if a map's keys are not in canonical order.
func CheckValue(b []byte, maxDepth int) error {
	return checkWithin(b, defaultsWith(maxDepth))
}

// Canonical is [CheckValue], and returns the value in Core Deterministic
// Encoding: b itself if it already is, else a re-encoded copy.
func Canonical(b []byte, maxDepth int) (Raw, error) {
	return canonicalWithin(b, defaultsWith(maxDepth))
}

// CheckValue is the function [CheckValue] under these limits.
func (l Limits) CheckValue(b []byte) error { return checkWithin(b, l.effective()) }

// Canonical is the function [Canonical] under these limits.
func (l Limits) Canonical(b []byte) (Raw, error) { return canonicalWithin(b, l.effective()) }

// defaultsWith returns the default limits for another depth, which may be 0.
func defaultsWith(depth int) Limits {
	l := DefaultLimits.effective()
	l.MaxDepth = depth
	return l
}

func checkWithin(b []byte, lim Limits) error {
	s := newScanner(b, lim)
	if err := s.whole(); err != nil {
		return err
	}
	if s.unsorted {
		var o ordering
		if _, err := o.index(b, 0); err != nil {
			return err
		}
	}
	return nil
}

func canonicalWithin(b []byte, lim Limits) (Raw, error) {
	s := newScanner(b, lim)
	if err := s.whole(); err != nil {
		return nil, err
	}
	if s.canonical() {
		return b[:len(b):len(b)], nil
	}
	r, err := reencode(b)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// scanner checks values of a buffer in place. It is the only code that looks
// at unchecked bytes; all else runs on what it has passed.
type scanner struct {
	b        []byte
	lim      Limits // effective
	left     int    // elements that may still come
	loose    bool   // something was not in its shortest form
	unsorted bool   // a map was not in order, so duplicates are not excluded yet
}

func newScanner(b []byte, lim Limits) scanner {
	return scanner{b: b, lim: lim, left: lim.MaxElements}
}

// canonical reports whether all that was scanned is in Core Deterministic
// Encoding.
func (s *scanner) canonical() bool { return !s.loose && !s.unsorted }

// whole scans the buffer as one item.
func (s *scanner) whole() error {
	if err := s.size(); err != nil {
		return err
	}
	next, err := s.item(0, s.lim.MaxDepth)
	if err != nil {
		return err
	}
	if next != len(s.b) {
		return &DataError{Offset: next, Reason: "trailing data"}
	}
	return nil
}

// size checks the length cap, which comes before all else.
func (s *scanner) size() error {
	if len(s.b) > s.lim.MaxBytes {
		return &DataError{Offset: s.lim.MaxBytes, Reason: fmt.Sprintf("longer than %d bytes", s.lim.MaxBytes)}
	}
	return nil
}

func truncated(off int) *DataError {
	return &DataError{Offset: off, Reason: "unexpected end of data"}
}

// item scans the item at off, in which room more containers may open, and
// returns the offset after it.
func (s *scanner) item(off, room int) (int, *DataError) {
	if off >= len(s.b) {
		return 0, truncated(off)
	}
	initial := s.b[off]
	if majorOf(initial) == majorOther {
		return s.other(off)
	}
	arg, next, err := s.head(off)
	if err != nil {
		return 0, err
	}
	switch majorOf(initial) {
	case majorUint:
		return next, nil
	case majorNint:
		if arg > math.MaxInt64 {
			return 0, &DataError{Offset: off, Reason: "integer below -2^63"}
		}
		return next, nil
	case majorBytes, majorText:
		return s.str(off, next, arg, majorOf(initial) == majorText)
	case majorArray:
		return s.array(off, next, arg, room)
	case majorMap:
		return s.mapping(off, next, arg, room)
	default:
		return 0, &DataError{Offset: off, Reason: "tags are not allowed"}
	}
}

// head reads the head of an item that is not of major type 7.
func (s *scanner) head(off int) (arg uint64, next int, err *DataError) {
	info := s.b[off] & 31
	if info < infoByte {
		return uint64(info), off + 1, nil
	}
	if info > info64 {
		if info == infoIndef && majorOf(s.b[off]) >= majorBytes && majorOf(s.b[off]) <= majorMap {
			return 0, 0, &DataError{Offset: off, Reason: "indefinite lengths are not allowed"}
		}
		return 0, 0, &DataError{Offset: off, Reason: fmt.Sprintf("malformed item 0x%02x", s.b[off])}
	}
	width := 1 << (info - infoByte)
	if len(s.b)-off-1 < width {
		return 0, 0, truncated(len(s.b))
	}
	arg, next = readArg(s.b, off)
	// The largest argument that the next shorter head could hold.
	short := uint64(infoByte - 1)
	if info > infoByte {
		short = 1<<(4*width) - 1
	}
	if arg <= short {
		s.loose = true
	}
	return arg, next, nil
}

// other scans an item of major type 7.
func (s *scanner) other(off int) (int, *DataError) {
	rest := s.b[off+1:]
	var f float64
	next := off + 1
	switch s.b[off] {
	case byteFalse, byteTrue, byteNull:
		return next, nil
	case byteUndef:
		return 0, &DataError{Offset: off, Reason: "undefined is not allowed"}
	case byteFloat16:
		if len(rest) < 2 {
			return 0, truncated(len(s.b))
		}
		next += 2
		if rest[0]&0x7c == 0x7c {
			f = math.Inf(1)
		}
	case byteFloat32:
		if len(rest) < 4 {
			return 0, truncated(len(s.b))
		}
		next += 4
		bits := binary.BigEndian.Uint32(rest)
		f = float64(math.Float32frombits(bits))
		if _, half := halfBits(bits); half {
			s.loose = true
		}
	case byteFloat64:
		if len(rest) < 8 {
			return 0, truncated(len(s.b))
		}
		next += 8
		f = math.Float64frombits(binary.BigEndian.Uint64(rest))
		if float64(float32(f)) == f {
			s.loose = true
		}
	default:
		return 0, &DataError{Offset: off, Reason: fmt.Sprintf("unknown simple value 0x%02x", s.b[off])}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, &DataError{Offset: off, Reason: "NaN and infinities are not allowed"}
	}
	return next, nil
}

// str scans the content of a text or byte string.
func (s *scanner) str(off, start int, n uint64, text bool) (int, *DataError) {
	if n > uint64(len(s.b)-start) {
		return 0, truncated(len(s.b))
	}
	if n > uint64(s.lim.MaxText) {
		return 0, &DataError{Offset: off, Reason: fmt.Sprintf("string longer than %d bytes", s.lim.MaxText)}
	}
	end := start + int(n)
	if text && !utf8.Valid(s.b[start:end]) {
		return 0, &DataError{Offset: off, Reason: "text is not valid UTF-8"}
	}
	return end, nil
}

// open accounts for a container of n elements.
func (s *scanner) open(off, next int, n uint64, room int) *DataError {
	if room <= 0 {
		return &DataError{Offset: off, Reason: "nested too deep"}
	}
	if n > uint64(len(s.b)-next) { // an element has at least one byte
		return truncated(len(s.b))
	}
	if s.left -= int(n); s.left < 0 {
		return &DataError{Offset: off, Reason: fmt.Sprintf("more than %d elements", s.lim.MaxElements)}
	}
	return nil
}

func (s *scanner) array(off, next int, n uint64, room int) (int, *DataError) {
	if err := s.open(off, next, n, room); err != nil {
		return 0, err
	}
	for i := range int(n) {
		var err *DataError
		if next, err = s.item(next, room-1); err != nil {
			return 0, err.under(strconv.Itoa(i))
		}
	}
	return next, nil
}

func (s *scanner) mapping(off, next int, n uint64, room int) (int, *DataError) {
	if n > math.MaxInt64/2 {
		return 0, truncated(len(s.b))
	}
	if err := s.open(off, next, 2*n, room); err != nil {
		return 0, err
	}
	var last []byte
	for i := range int(n) {
		key, value, err := s.key(next)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			if c := compareKeys(last, key); c == 0 {
				return 0, duplicateKey(key, next)
			} else if c > 0 {
				s.unsorted = true
			}
		}
		last = key
		if n == 1 && string(key) == bytesKey {
			return 0, onlyBytesKey(off)
		}
		if next, err = s.item(value, room-1); err != nil {
			return 0, err.under(segmentOf(key))
		}
	}
	return next, nil
}

// key scans a map key and returns its content and the offset after it.
func (s *scanner) key(off int) ([]byte, int, *DataError) {
	if off >= len(s.b) {
		return nil, 0, truncated(off)
	}
	if majorOf(s.b[off]) != majorText {
		return nil, 0, &DataError{Offset: off, Reason: "a map key must be text"}
	}
	n, start, err := s.head(off)
	if err != nil {
		return nil, 0, err
	}
	end, err := s.str(off, start, n, true)
	if err != nil {
		return nil, 0, err
	}
	return s.b[start:end], end, nil
}

// compareKeys orders text keys as their shortest encodings order bytewise:
// the shorter first, then by content.
func compareKeys(a, b []byte) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

func duplicateKey(key []byte, off int) *DataError {
	return (&DataError{Offset: off, Reason: "duplicate key"}).under(segmentOf(key))
}

func onlyBytesKey(off int) *DataError {
	return &DataError{Offset: off, Reason: `a map whose only key is "$bytes" stands for a byte string in JSON`}
}
