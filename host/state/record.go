package state

// trail is a place below some base path, as a list from the inside out: the
// walks that compare whole values make one for each value they look at, which
// must not cost the length of the path. nil is the base.
type trail struct {
	up   *trail
	elem Elem
	len  int // elements up to the base
	cost int // of these in a change
}

func (t *trail) to(e Elem) *trail {
	down := &trail{up: t, elem: e, len: 1, cost: e.cost()}
	if t != nil {
		down.len += t.len
		down.cost += t.cost
	}
	return down
}

func (t *trail) key(k string) *trail { return t.to(Elem{Key: k}) }
func (t *trail) index(i int) *trail  { return t.to(Elem{List: true, Index: uint64(i)}) }
func (t *trail) String() string      { return showElems(t.below(nil)) }

// below returns base with the trail behind it, in a new slice.
func (t *trail) below(base []Elem) []Elem {
	n := 0
	if t != nil {
		n = t.len
	}
	all := make([]Elem, len(base)+n)
	copy(all, base)
	for i := len(all) - 1; t != nil; t, i = t.up, i-1 {
		all[i] = t.elem
	}
	return all
}

// Changes carry their whole paths, so hostile edits (few bytes at each of many
// places, deep down or below long keys) could make a record far greater than
// themselves, on disk and in memory. So where changes cost more than about
// twice the container that they are in, one change that sets it takes their place.
// Small records are left alone: they list exactly what differs.

// slack is a cost that is always accepted.
const slack = 4096

// wasteful reports whether changes of this cost should give way to one that
// costs whole.
func wasteful(cost, whole int) bool { return cost > 2*whole+slack }

// cost is what an element adds to a change: its bytes in the record, and
// its memory.
func (e Elem) cost() int { return e.encodedSize() + 32 }

// baseCost is the cost of a change without path and value.
const baseCost = 8

func (c Change) cost() int {
	n := baseCost + c.Value.Bytes()
	for _, e := range c.Path {
		n += e.cost()
	}
	return n
}

// recorder collects the changes of one structural operation at a base path.
type recorder struct {
	base    []Elem
	pending []pending
	cost    int // of pending, without the base path
}

type pending struct {
	op ChangeOp
	at *trail
	v  *Node
}

func (r *recorder) add(op ChangeOp, at *trail, v *Node) {
	r.pending = append(r.pending, pending{op, at, v})
	r.cost += costAt(at, v)
}

func costAt(at *trail, v *Node) int {
	n := baseCost + v.Bytes()
	if at != nil {
		n += at.cost
	}
	return n
}

// mark is a point in a recorder to settle from.
type mark struct{ pending, cost int }

func (r *recorder) mark() mark { return mark{len(r.pending), r.cost} }

// settle ends the changes since m, all of which are within the container at
// at, which is now v, and replaces them by one if they are wasteful.
func (r *recorder) settle(m mark, at *trail, v *Node) {
	if !wasteful(r.cost-m.cost, costAt(at, v)) {
		return
	}
	clear(r.pending[m.pending:])
	r.pending, r.cost = r.pending[:m.pending], m.cost
	r.add(OpSet, at, v)
}

// changes returns what was recorded.
func (r *recorder) changes() []Change {
	all := make([]Change, len(r.pending))
	for i, p := range r.pending {
		all[i] = Change{Op: p.op, Path: p.at.below(r.base), Value: p.v}
	}
	return all
}
