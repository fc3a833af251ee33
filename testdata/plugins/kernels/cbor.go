//go:build !echo

package main

import (
	"encoding/binary"
	"math"
)

// The major types of CBOR that the kernel writes.
const (
	majorUint  = 0
	majorText  = 3
	majorArray = 4
	majorMap   = 5
	float64Of  = 0xfb
)

var message = make([]byte, 0, 32<<10)

// cbor writes a list of records and reads it again.
func cbor(rounds int) uint64 {
	sum := uint64(0)
	c := chance(23)
	for range rounds {
		message = head(message[:0], majorArray, 128)
		for i := range uint64(128) {
			message = head(message, majorMap, 4)
			message = put(message, "id")
			message = head(message, majorUint, i)
			message = put(message, "name")
			message = put(message, "somebody's name")
			message = put(message, "score")
			message = binary.BigEndian.AppendUint64(append(message, float64Of), math.Float64bits(float64(c.next()%1000)/4))
			message = put(message, "marks")
			message = head(message, majorArray, 8)
			for range 8 {
				message = head(message, majorUint, c.next()>>(c.next()%64))
			}
		}
		r := reader{rest: message}
		sum += r.value() + uint64(len(message))
	}
	return sum
}

func put(b []byte, s string) []byte { return append(head(b, majorText, uint64(len(s))), s...) }

// head appends the head of an item.
func head(b []byte, major byte, arg uint64) []byte {
	major <<= 5
	switch {
	case arg < 24:
		return append(b, major|byte(arg))
	case arg <= math.MaxUint8:
		return append(b, major|24, byte(arg))
	case arg <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(arg))
	case arg <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(arg))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), arg)
}

// reader reads a message from its beginning on.
type reader struct{ rest []byte }

// value reads one item and makes a number of it.
func (r *reader) value() (sum uint64) {
	first := r.rest[0]
	r.rest = r.rest[1:]
	arg := uint64(first & 31)
	if arg >= 24 {
		size := 1 << (arg - 24)
		arg = 0
		for _, b := range r.rest[:size] {
			arg = arg<<8 | uint64(b)
		}
		r.rest = r.rest[size:]
	}
	switch {
	case first == float64Of:
		return uint64(math.Float64frombits(arg))
	case first>>5 == majorText:
		for _, b := range r.rest[:arg] {
			sum = sum*31 + uint64(b)
		}
		r.rest = r.rest[arg:]
		return sum
	case first>>5 == majorMap:
		arg *= 2
		fallthrough
	case first>>5 == majorArray:
		for range arg {
			sum = sum*7 + r.value()
		}
		return sum
	}
	return arg
}
