package rewrite

import (
	"sort"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// origins.go finds where in the original an instruction of the rewritten module comes
// from. This question arises only after a guest has failed, so no tables are kept and the
// module is rewritten again.

// Origins maps each offset in the code section of the rewritten module to the offset in
// the original's. The options must equal those given to Rewrite. Both offsets are counted
// from the number of functions. Added code, and code that replaces other code, maps to
// the instruction that it precedes or replaces. Code without such an instruction, such as
// helpers, maps to 0.
//
// # Errors
//
// Those of Rewrite.
func Origins(wasm []byte, o Options, offsets []uint32) ([]uint32, error) {
	plain, err := Rewrite(wasm, o)
	if err != nil {
		return nil, err
	}
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, err
	}
	w := newRewriter(m, o, placed)
	w.clamp()
	w.judge()
	number := appendUint(nil, uint64(len(m.Funcs)+len(plain.helpers)))
	w.origins = newOrigins(offsets, len(number), m.Offsets[wasmbin.SectionCode])
	if _, err := w.code(); err != nil {
		return nil, err
	}
	return w.origins.found, nil
}

// origins collects the answer to a call of Origins.
type origins struct {
	asked  []uint32
	order  []int // indices into asked, by offset
	found  []uint32
	number int    // length of the number of functions, in bytes
	code   int    // where the original's section content begins
	pieces []kept // of the present function
}

// kept is a part of a function that was copied unchanged: bytes many bytes, from a
// position in the original's code to a position in the written code.
type kept struct{ to, from, bytes int }

func newOrigins(offsets []uint32, number, code int) *origins {
	o := &origins{asked: offsets, found: make([]uint32, len(offsets)), number: number, code: code}
	for i := range offsets {
		o.order = append(o.order, i)
	}
	sort.Slice(o.order, func(a, b int) bool { return offsets[o.order[a]] < offsets[o.order[b]] })
	return o
}

// note records a piece of the function being written, in order.
func (o *origins) note(p kept) { o.pieces = append(o.pieces, p) }

// function ends a function. begin and end are its positions in the written section,
// without the number of functions; code is the position of its code in the original.
func (o *origins) function(begin, end, code int) {
	for len(o.order) > 0 {
		asked := o.order[0]
		at := int(o.asked[asked]) - o.number
		if at >= end {
			break
		}
		if o.order = o.order[1:]; at >= begin {
			o.found[asked] = uint32(code - o.code + o.origin(at-begin))
		}
	}
	o.pieces = o.pieces[:0]
}

// origin returns the position in the original's code for a position in the written code.
func (o *origins) origin(at int) int {
	next := sort.Search(len(o.pieces), func(i int) bool { return o.pieces[i].to > at })
	if next == 0 {
		return 0
	}
	p := o.pieces[next-1]
	return p.from + min(at-p.to, p.bytes)
}
