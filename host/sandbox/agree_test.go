package sandbox

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Disagreement is the error of runs of one invocation that should have been
// equal, and were not.
type Disagreement struct {
	Run          int // the first that differs; counting from 0
	First, Other host.InvocationResult
}

// Error implements error.
func (d *Disagreement) Error() string {
	return fmt.Sprintf("run %d differs from the first: output % x, code %d, error %v, fuel %d; first: output % x, code %d, error %v, fuel %d",
		d.Run, clip(d.Other.Output), d.Other.Code, d.Other.Err, d.Other.Fuel, clip(d.First.Output), d.First.Code, d.First.Err, d.First.Fuel)
}

// clip keeps what a message can show of an output.
func clip(b []byte) []byte { return b[:min(len(b), 64)] }

// Agree runs the same invocation runs times, one after the other, each in an
// instance of its own, and compares output, code, error and fuel byte for byte. make
// gives the invocation of each run: the same module and input, with Calls that
// answer alike.
//
// # Errors
//
// [*Disagreement], or the first error of Invoke.
func (s *Sandbox) Agree(ctx context.Context, runs int, make func(run int) host.Invocation) (host.InvocationResult, error) {
	var first host.InvocationResult
	for run := range runs {
		res, err := s.Invoke(ctx, make(run))
		if err != nil {
			return first, err
		}
		if run == 0 {
			first = res
		} else if !same(first, res) {
			return first, &Disagreement{Run: run, First: first, Other: res}
		}
	}
	return first, nil
}

// same tells whether two results are equal.
func same(a, b host.InvocationResult) bool {
	return bytes.Equal(a.Output, b.Output) && a.Code == b.Code && a.Fuel == b.Fuel && sameError(a.Err, b.Err)
}

func sameError(a, b *abi.Error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Code == b.Code && a.Message == b.Message && bytes.Equal(a.Data, b.Data)
}
