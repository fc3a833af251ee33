package rewrite

import (
	"slices"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// regions.go finds the loops whose turns are paid from a purse: a local of the function
// that holds units charged in advance. A region is a loop without calls, including all
// loops in it. Every way out of a region gives back what is left in the purse.

const (
	// purse is how many units one filling puts into the purse.
	purse = 1_000
	// regionCharge bounds the charges with a check that are paid from the purse.
	regionCharge = 500
	// regionHead bounds the charge at the head of a region. A larger turn takes long
	// enough without a purse, and the loops inside do better with regions of their own.
	regionHead = 8
	// regionBytes is approximately how much code a loop grows in a region. regionShare
	// bounds the growth of small functions; larger functions may double.
	regionBytes = 50
	regionShare = 1 << 10
	// regionExits bounds the labels that branches out of a region lead to, because each
	// needs a block.
	regionExits = 8
	// regionLocals bounds the locals of functions with a purse, which is one more local.
	regionLocals = 100_000
	// regionNesting bounds the nesting of blocks in a region, because each loop adds one.
	regionNesting = 100
	// regionEvents bounds the size of a region, because the loops inside a rejected
	// region are examined again.
	regionEvents = 10_000
	// noRegion is the label of a loop that cannot be a region.
	noRegion = 1<<32 - 1
)

// region is a loop that is paid from the purse, with everything in it.
type region struct {
	first, last int      // events of the loop and of its end
	loops       int      // including the outermost
	exits       []uint32 // labels of branches out of it, as seen from before the loop
}

// bytes returns approximately how much the region adds to the function's code.
func (r *region) bytes() int { return regionBytes * (r.loops + (1+len(r.exits))/2) }

// findRegions finds the regions of a function whose charges are placed.
func (f *function) findRegions() {
	f.regions = f.regions[:0]
	if f.loops == 0 || f.body.Locals >= regionLocals {
		return
	}
	f.closeLoops()
	depth := uint32(0) // open blocks
	left := f.body.Size + regionShare
	for i := 0; i < len(f.events); i++ {
		e := &f.events[i]
		if e.kind == eventLoop && e.label != noRegion && e.amount <= regionHead {
			if r, ok := f.region(i, int(e.label), depth); ok && r.bytes() <= left {
				left -= r.bytes()
				f.regions = append(f.regions, r)
				i = r.last
				continue
			}
		}
		depth = e.kind.nest(depth)
	}
}

// nest returns the number of open blocks after an event.
func (k eventKind) nest(depth uint32) uint32 {
	switch k {
	case eventBlock, eventLoop, eventIf:
		return depth + 1
	case eventEndBlock, eventEndLoop, eventEndIf, eventEndElse:
		return depth - 1
	}
	return depth
}

// closeLoops sets the label of each loop to its end, or to noRegion if the loop contains
// calls, bulk instructions that are not short, or large charges.
func (f *function) closeLoops() {
	f.blocks = f.blocks[:0]
	busy, large := -1, -1 // last events: with busy code before it, with a large charge behind it
	for i := range f.events {
		e := &f.events[i]
		if e.doing != doingPlain {
			busy = i
		}
		switch e.kind {
		case eventBlock, eventLoop, eventIf:
			f.blocks = append(f.blocks, uint32(i))
		case eventEndBlock, eventEndLoop, eventEndIf, eventEndElse:
			top := len(f.blocks) - 1
			at := int(f.blocks[top])
			f.blocks = f.blocks[:top]
			if loop := &f.events[at]; loop.kind == eventLoop {
				if busy > at || large >= at || i-at > regionEvents {
					loop.label = noRegion
				}
				if loop.label != noRegion {
					loop.label = uint32(i)
				}
			}
		}
		if e.check && e.amount > regionCharge {
			large = i
		}
	}
}

// region makes a region of a loop. It returns false if branches lead to too many labels
// outside, or if blocks nest too deeply.
func (f *function) region(first, last int, outside uint32) (r region, ok bool) {
	r = region{first: first, last: last}
	depth := uint32(0) // open blocks, including the loop
	exit := func(label uint32) {
		if label < depth || len(r.exits) > regionExits {
			return
		}
		if label -= depth; !slices.Contains(r.exits, label) {
			r.exits = append(r.exits, label)
		}
	}
	for i := first; i < last && len(r.exits) <= regionExits && depth <= regionNesting; i++ {
		e := &f.events[i]
		switch e.kind {
		case eventLoop:
			r.loops++
		case eventBr, eventBrIf:
			exit(e.label)
		case eventReturn:
			exit(depth + outside)
		case eventBrTable:
			labels := wasmbin.Reader{Rest: f.body.Code[e.label:]}
			for range uint64(labels.U32()) + 1 {
				exit(labels.U32())
			}
		}
		depth = e.kind.nest(depth)
	}
	return r, len(r.exits) <= regionExits && depth <= regionNesting
}
