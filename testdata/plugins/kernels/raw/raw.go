// Package raw is the ABI without an SDK, for guests of tests that must do
// nothing but what they measure: the input is any bytes, and the output
// [code, bytes].
package raw

import "encoding/binary"

// Step is what a guest does in an invocation: it reads its input and calls
// Answer, whose result it returns.
var Step func(input []byte) int32

// Warm, if it is set, is called when the guest is to describe itself: what it
// leaves behind is part of the image.
var Warm func()

// Answer hands over the output [code, b]; code is 0, or 1 for an error.
func Answer(code byte, b []byte) int32 {
	message := make([]byte, 0, 7+len(b))
	message = append(message, 0x82, code, 0x5a)
	message = binary.BigEndian.AppendUint32(message, uint32(len(b)))
	Output(append(message, b...))
	return int32(code)
}
