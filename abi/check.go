package abi

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/weftrun/weft/abi/cbor"
)

// bytesKey is the key that marks a byte string in JSON.
const bytesKey = "$bytes"

// CheckValue checks that b is one well-formed value of abi.cddl and nothing else, nested
// at most maxDepth (see [MaxValueDepth]) and within [DefaultLimits]: no tags, no
// indefinite lengths, text keys, no duplicate keys, no NaN and no infinities, valid
// UTF-8, integers in -2^63..2^64-1, no simple values except false, true and null, no map
// whose only key is "$bytes". Keys may be in any order, and heads of any width. The error
// is a *[DataError].
//
// It allocates only if a map's keys are not in canonical order.
func CheckValue(b []byte, maxDepth int) error {
	return checkWithin(b, defaultsWith(maxDepth))
}

// Canonical is [CheckValue], and returns the value in Core Deterministic Encoding: b
// itself if b already is in that encoding, otherwise a re-encoded copy.
func Canonical(b []byte, maxDepth int) (Raw, error) {
	return canonicalWithin(b, defaultsWith(maxDepth))
}

// CheckValue is the function [CheckValue] with these limits.
func (l Limits) CheckValue(b []byte) error { return checkWithin(b, l.effective()) }

// Canonical is the function [Canonical] with these limits.
func (l Limits) Canonical(b []byte) (Raw, error) { return canonicalWithin(b, l.effective()) }

// defaultsWith returns the default limits with a different depth, which may be 0.
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

// scanner checks values in a buffer. It is the only code that reads unchecked bytes; all
// other code runs on checked bytes.
type scanner struct {
	b        []byte
	lim      Limits // with defaults filled in
	left     int    // elements that may still follow
	loose    bool   // an item was not in its shortest form
	unsorted bool   // a map was not in order, so duplicates are not excluded yet
}

func newScanner(b []byte, lim Limits) scanner {
	return scanner{b: b, lim: lim, left: lim.MaxElements}
}

// canonical reports whether everything scanned is in Core Deterministic Encoding.
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

// size checks the length limit, before anything else.
func (s *scanner) size() error {
	if len(s.b) > s.lim.MaxBytes {
		return &DataError{Offset: s.lim.MaxBytes, Reason: fmt.Sprintf("longer than %d bytes", s.lim.MaxBytes)}
	}
	return nil
}

func truncated(off int) *DataError {
	return &DataError{Offset: off, Reason: "unexpected end of data"}
}

// item scans the item at off and returns the offset after it. Up to room more containers
// may open in the item.
func (s *scanner) item(off, room int) (int, *DataError) {
	if off >= len(s.b) {
		return 0, truncated(off)
	}
	initial := s.b[off]
	if cbor.Major(initial) == cbor.Other {
		return s.other(off)
	}
	arg, next, err := s.head(off)
	if err != nil {
		return 0, err
	}
	switch cbor.Major(initial) {
	case cbor.Uint:
		return next, nil
	case cbor.Nint:
		if arg > math.MaxInt64 {
			return 0, &DataError{Offset: off, Reason: "integer below -2^63"}
		}
		return next, nil
	case cbor.Bytes, cbor.Text:
		return s.str(off, next, arg, cbor.Major(initial) == cbor.Text)
	case cbor.Array:
		return s.array(off, next, arg, room)
	case cbor.Map:
		return s.mapping(off, next, arg, room)
	default:
		return 0, &DataError{Offset: off, Reason: "tags are not allowed"}
	}
}

// head reads the head of an item that is not of major type 7.
func (s *scanner) head(off int) (arg uint64, next int, err *DataError) {
	info := cbor.Info(s.b[off])
	if info < cbor.Info8 {
		return uint64(info), off + 1, nil
	}
	width := 1 << (info - cbor.Info8)
	if info > cbor.Info64 || len(s.b)-off-1 < width {
		return 0, 0, s.noHead(off)
	}
	arg, next = cbor.Head(s.b, off)
	if cbor.Size(arg) <= width {
		s.loose = true
	}
	return arg, next, nil
}

// noHead returns why the bytes at off do not begin an item.
func (s *scanner) noHead(off int) *DataError {
	major, info := cbor.Major(s.b[off]), cbor.Info(s.b[off])
	switch {
	case info <= cbor.Info64:
		return truncated(len(s.b))
	case info == cbor.Indefinite && major >= cbor.Bytes && major <= cbor.Map:
		return &DataError{Offset: off, Reason: "indefinite lengths are not allowed"}
	}
	return &DataError{Offset: off, Reason: fmt.Sprintf("malformed item 0x%02x", s.b[off])}
}

// other scans an item of major type 7.
func (s *scanner) other(off int) (int, *DataError) {
	switch initial := s.b[off]; initial {
	case cbor.False, cbor.True, cbor.Null:
		return off + 1, nil
	case cbor.Undefined:
		return 0, &DataError{Offset: off, Reason: "undefined is not allowed"}
	case cbor.Float16, cbor.Float32, cbor.Float64:
		bits, next, ok := cbor.Read(s.b, off)
		if !ok {
			return 0, truncated(len(s.b))
		}
		if f := cbor.Float(initial, bits); math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, &DataError{Offset: off, Reason: "NaN and infinities are not allowed"}
		}
		if !cbor.IsShortest(initial, bits) {
			s.loose = true
		}
		return next, nil
	default:
		return 0, &DataError{Offset: off, Reason: fmt.Sprintf("unknown simple value 0x%02x", initial)}
	}
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

// open counts a container of n elements against the limits.
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
	if cbor.Major(s.b[off]) != cbor.Text {
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
