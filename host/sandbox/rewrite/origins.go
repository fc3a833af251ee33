package rewrite

import "sort"

// origins.go finds where in the original an instruction of the rewritten module comes
// from. That is asked when a guest has failed, and seldom: so nothing of it is kept,
// and the module is rewritten again.

// Origins gives, for each offset in the code section of what Rewrite makes of a module
// with the same Options, the offset in the original's, both counted from where the
// number of functions stands. Code that the rewriting has added or put in the place of
// other comes from the instruction that it was put before, or in the place of. What
// comes from none, such as helpers, gives 0.
//
// # Errors
//
// Those of Rewrite.
func Origins(wasm []byte, o Options, offsets []uint32) ([]uint32, error) {
	plain, err := Rewrite(wasm, o)
	if err != nil {
		return nil, err
	}
	m, err := Parse(wasm)
	if err != nil {
		return nil, err
	}
	w := newRewriter(m, o, placed)
	w.clamp()
	w.judge()
	number := appendUint(nil, uint64(len(m.Funcs)+len(plain.helpers)))
	w.origins = newOrigins(offsets, len(number), m.offsets[sectionCode])
	if _, err := w.code(); err != nil {
		return nil, err
	}
	return w.origins.found, nil
}

// origins is the answer to a question of Origins, in the making.
type origins struct {
	asked  []uint32
	order  []int // of asked, by offset
	found  []uint32
	number int    // bytes of the number of functions
	code   int    // where in the original its section's content is
	pieces []kept // of the present function
}

// kept is a part of a function that was written as it was: at to of what it becomes,
// from a position in the original's code, so many bytes.
type kept struct{ to, from, bytes int }

func newOrigins(offsets []uint32, number, code int) *origins {
	o := &origins{asked: offsets, found: make([]uint32, len(offsets)), number: number, code: code}
	for i := range offsets {
		o.order = append(o.order, i)
	}
	sort.Slice(o.order, func(a, b int) bool { return offsets[o.order[a]] < offsets[o.order[b]] })
	return o
}

// note takes a piece of the function that is being written, in order.
func (o *origins) note(p kept) { o.pieces = append(o.pieces, p) }

// function ends a function, which begins and ends at positions in the section that is
// written, less the number of functions, and whose code is at another of the original.
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

// origin is where in the original's code the code at a position comes from.
func (o *origins) origin(at int) int {
	next := sort.Search(len(o.pieces), func(i int) bool { return o.pieces[i].to > at })
	if next == 0 {
		return 0
	}
	p := o.pieces[next-1]
	return p.from + min(at-p.to, p.bytes)
}
