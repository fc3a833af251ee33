package state

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
)

// number is the value of an integer or float node. Integers reach from -2^63
// to 2^64-1, which no Go integer type does, so sign and magnitude are apart.
type number struct {
	isFloat bool
	float   float64
	neg     bool // never with mag 0
	mag     uint64
}

// number returns the node's value, and false if it is no number.
func (n *Node) number() (number, bool) {
	switch n.kind {
	case kindInt:
		arg, _ := cbor.Head([]byte(n.enc), 0)
		if cbor.Major(n.enc[0]) == cbor.Nint {
			return number{neg: true, mag: arg + 1}, true
		}
		return number{mag: arg}, true
	case kindFloat:
		bits, _ := cbor.Head([]byte(n.enc), 0)
		return number{isFloat: true, float: cbor.Float(n.enc[0], bits)}, true
	}
	return number{}, false
}

// node returns the number as a value.
func (x number) node() (*Node, error) {
	if x.isFloat {
		r, err := abi.EncodeValue(x.float)
		if err != nil {
			return nil, fmt.Errorf("encode float: %w", err)
		}
		return &Node{kind: kindFloat, enc: string(r)}, nil
	}
	enc := x.appendInt(nil)
	if n := oneByte[enc[0]]; n != nil {
		return n, nil
	}
	return &Node{kind: kindInt, enc: string(enc)}, nil
}

// appendInt appends the encoding of an integer.
func (x number) appendInt(dst []byte) []byte {
	if x.neg {
		return cbor.AppendHead(dst, cbor.Nint, x.mag-1)
	}
	return cbor.AppendHead(dst, cbor.Uint, x.mag)
}

// asFloat returns the nearest float.
func (x number) asFloat() float64 {
	switch {
	case x.isFloat:
		return x.float
	case x.neg:
		return -float64(x.mag)
	}
	return float64(x.mag)
}

// add returns x+y: an integer if both are, else a float.
func (x number) add(y number) (number, error) {
	if x.isFloat || y.isFloat {
		f := x.asFloat() + y.asFloat()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return number{}, errors.New("the sum is not finite")
		}
		return number{isFloat: true, float: f}, nil
	}
	if x.neg != y.neg {
		if x.mag < y.mag {
			x, y = y, x
		}
		mag := x.mag - y.mag
		return number{neg: x.neg && mag > 0, mag: mag}, nil
	}
	mag, carry := bits.Add64(x.mag, y.mag, 0)
	if carry > 0 || x.neg && mag > 1<<63 {
		return number{}, errors.New("the sum overflows")
	}
	return number{neg: x.neg, mag: mag}, nil
}

// whole reports whether the number has no fraction.
func (x number) whole() bool { return !x.isFloat || x.float == math.Trunc(x.float) }
