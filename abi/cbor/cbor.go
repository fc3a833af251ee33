// Package cbor reads and writes the heads of CBOR items (RFC 8949, section 3), and the
// scalars that a head holds. The codec of messages uses it, and so does every package
// that walks encoded values in place.
//
// The package does not define which items a message or a value may contain, and enforces
// no limits; package abi does.
//
// [Read] accepts any bytes. The functions for checked bytes ([Head], [Skip]) panic at the
// end of the slice if the bytes are not well-formed, or return meaningless results. All
// functions may be called from any goroutine.
package cbor

import (
	"encoding/binary"
	"math"
)

// Major types.
const (
	Uint  = 0
	Nint  = 1 // the argument is -1 minus the value
	Bytes = 2
	Text  = 3
	Array = 4
	Map   = 5
	Tag   = 6
	Other = 7 // simple values and floats
)

// Initial bytes of the items of major type [Other].
const (
	False     = 0xf4
	True      = 0xf5
	Null      = 0xf6
	Undefined = 0xf7
	Float16   = 0xf9
	Float32   = 0xfa
	Float64   = 0xfb
)

// Additional information of a head. Below Info8 it is the argument itself;
// Info8 to Info64 announce an argument of 1, 2, 4 or 8 bytes.
const (
	Info8      = 24
	Info16     = 25
	Info32     = 26
	Info64     = 27
	Indefinite = 31
)

// WideSize is the length in bytes of the heads that [AppendWide] writes.
const WideSize = 5

// Major returns the major type that an initial byte announces.
func Major(initial byte) byte { return initial >> 5 }

// Info returns the additional information of an initial byte.
func Info(initial byte) byte { return initial & 31 }

// Head returns the argument of the checked head at off, and the offset after
// the head. The argument of a float is its bits (see [Float]). The compiler
// inlines it.
func Head(b []byte, off int) (arg uint64, next int) {
	switch info := b[off] & 31; info {
	case Info8:
		return uint64(b[off+1]), off + 2
	case Info16:
		return uint64(binary.BigEndian.Uint16(b[off+1:])), off + 3
	case Info32:
		return uint64(binary.BigEndian.Uint32(b[off+1:])), off + 5
	case Info64:
		return binary.BigEndian.Uint64(b[off+1:]), off + 9
	default:
		return uint64(info), off + 1
	}
}

// Read is [Head] for unchecked bytes. off must be at most len(b). ok is false if there is
// no complete head of definite length at off.
func Read(b []byte, off int) (arg uint64, next int, ok bool) {
	if off >= len(b) {
		return 0, 0, false
	}
	switch info := b[off] & 31; {
	case info < Info8:
		return uint64(info), off + 1, true
	case info > Info64 || len(b)-off-1 < 1<<(info-Info8):
		return 0, 0, false
	}
	arg, next = Head(b, off)
	return arg, next, true
}

// Skip returns the offset after the checked item at off.
func Skip(b []byte, off int) int {
	for open := uint64(1); open > 0; open-- {
		arg, next := Head(b, off)
		switch Major(b[off]) {
		case Bytes, Text:
			next += int(arg)
		case Array:
			open += arg
		case Map:
			open += 2 * arg
		}
		off = next
	}
	return off
}

// Size returns the length in bytes of the shortest head with the argument.
func Size(arg uint64) int {
	switch {
	case arg < Info8:
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

// AppendHead appends the shortest head of the major type and argument.
func AppendHead(dst []byte, major byte, arg uint64) []byte {
	m := major << 5
	switch {
	case arg < Info8:
		return append(dst, m|byte(arg))
	case arg <= math.MaxUint8:
		return append(dst, m|Info8, byte(arg))
	case arg <= math.MaxUint16:
		return append(dst, m|Info16, byte(arg>>8), byte(arg))
	case arg <= math.MaxUint32:
		return append(dst, m|Info32, byte(arg>>24), byte(arg>>16), byte(arg>>8), byte(arg))
	}
	return binary.BigEndian.AppendUint64(append(dst, m|Info64), arg)
}

// AppendWide appends a head of [WideSize] bytes. [PutWide] sets its argument once it is
// known.
func AppendWide(dst []byte, major byte) []byte {
	return append(dst, major<<5|Info32, 0, 0, 0, 0)
}

// PutWide sets the argument of the wide head at off.
func PutWide(b []byte, off, arg int) {
	binary.BigEndian.PutUint32(b[off+1:], uint32(arg))
}

// AppendInt appends an integer.
func AppendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return AppendHead(dst, Nint, uint64(-1-v))
	}
	return AppendHead(dst, Uint, uint64(v))
}

// AppendText appends a text string. The caller has checked that s is UTF-8.
func AppendText(dst []byte, s string) []byte {
	return append(AppendHead(dst, Text, uint64(len(s))), s...)
}

// AppendBool appends true or false.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, True)
	}
	return append(dst, False)
}
