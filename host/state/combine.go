package state

import (
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/work"
)

// Replace puts v at p and makes the maps on the way. It keeps all subtrees of
// the old value that are equal to their counterpart in v: maps are compared key
// by key, lists by index, after a common end if the new list is the shorter
// one (so that taking elements from the front is a deletion, not a change of
// all). The changes list what differs, or set a container as a whole where that
// is much shorter; they are empty, not nil, and the root is the same, if nothing
// does. It costs O(n) of the old and the new value at p.
//
// The errors are those of a "set" in [Apply]. A nil root is the empty map.
func Replace(root *Node, p Path, v *Node) (newRoot *Node, changes []Change, err error) {
	return ReplaceOn(nil, root, p, v)
}

// ReplaceOn is Replace on a meter. The error may be the meter's.
func ReplaceOn(m *work.Meter, root *Node, p Path, v *Node) (newRoot *Node, changes []Change, err error) {
	root = orEmpty(root)
	if v == nil {
		return root, nil, fail(abi.StatusInvalidMessage, p.String(), "the value is missing")
	}
	if len(p) == 0 && !v.IsMap() {
		return root, nil, errRootMap(v)
	}
	at, err := locate(root, p)
	if err != nil {
		return root, nil, err
	}
	b := batch{meter: m, root: root, changes: []Change{}}
	if !at.found() {
		err = b.put(at, v)
	} else {
		d := differ{recorder{base: at.at}, m}
		if got := d.diff(at.node, v, nil); m.Err() == nil {
			err = b.adopt(at, got, &d.recorder)
		}
	}
	if ended := m.Err(); ended != nil {
		return root, nil, ended
	}
	if err == nil {
		err = m.Spend(journalPrice(b.changes))
	}
	if err != nil {
		return root, nil, err
	}
	return b.root, b.changes, nil
}

// FillDefaults adds what root lacks of defaults, recursively in maps; what is
// there stays, null too. A nil root is the empty map, and without defaults there
// is nothing to add. It costs O(n log m) of the defaults' size n.
func FillDefaults(root, defaults *Node) (newRoot *Node, changes []Change) {
	root = orEmpty(root)
	if !defaults.IsMap() {
		return root, []Change{}
	}
	m := merger{rule: keepOld} // of two values, so none reads as bytes
	newRoot = m.merge(root, defaults, nil)
	return newRoot, m.changes()
}

// MergePatch is a merge as of RFC 7396 into the value at p: unlike the edit "merge",
// null deletes. The patch must be a map, which takes the place of a value that is none,
// or is missing. The error is an [*Error]: invalid_message for another patch or for one
// that leaves a map with the only key "$bytes", limit_exceeded at the depth limit, and
// those of a "set" in [Apply].
func MergePatch(root *Node, p Path, patch *Node) (newRoot *Node, changes []Change, err error) {
	return MergePatchOn(nil, root, p, patch)
}

// MergePatchOn is MergePatch on a meter. The error may be the meter's.
func MergePatchOn(meter *work.Meter, root *Node, p Path, patch *Node) (newRoot *Node, changes []Change, err error) {
	root = orEmpty(root)
	if !patch.IsMap() {
		return root, nil, fail(abi.StatusInvalidMessage, p.String(), "a merge patch of the state must be a map")
	}
	at, err := locate(root, p)
	if err != nil {
		return root, nil, err
	}
	there := at.found() && at.node.IsMap()
	old := emptyMap
	if there {
		old = at.node
	}
	m := merger{rule: nullDeletes, recorder: recorder{base: at.at}, meter: meter}
	merged := m.merge(old, patch, nil)
	if ended := meter.Err(); ended != nil {
		return root, nil, ended
	}
	if m.bad != nil {
		return root, nil, m.bad
	}
	b := batch{meter: meter, root: root, changes: []Change{}}
	if there {
		err = b.adopt(at, merged, &m.recorder)
	} else {
		err = b.put(at, merged)
	}
	if err == nil {
		err = meter.Spend(journalPrice(b.changes))
	}
	if err != nil {
		return root, nil, err
	}
	return b.root, b.changes, nil
}

func errRootMap(v *Node) error {
	return fail(abi.StatusFailedPrecondition, "", "the whole state must be a map, not %s", v.kind)
}

// mergeRule says what a merger does with a key that both maps have, beyond
// going into maps.
type mergeRule uint8

const (
	takeNew     mergeRule = iota // the edit "merge"
	keepOld                      // defaults
	nullDeletes                  // RFC 7396
)

// merger merges maps and records what it changed.
type merger struct {
	recorder
	rule  mergeRule
	meter *work.Meter
	bad   error // the first map that reads as bytes; nullDeletes only
}

// merge returns the map old with the map v merged in. It costs O(n log m) of
// v's size n.
func (m *merger) merge(old, v *Node, at *trail) *Node {
	start := m.mark()
	var deltas []delta
	for key, want := range v.body.all() {
		if m.meter.Spend(mergeUnits) != nil {
			return old
		}
		have := old.get(key)
		here := at.key(key)
		got := m.value(have, want, here)
		if got != have {
			deltas = append(deltas, delta{key, got})
		}
	}
	if len(deltas) == 0 {
		return old
	}
	if m.meter.Spend(deltaPrice(old, len(deltas))) != nil {
		return old
	}
	merged := old.withDeltas(deltas)
	if m.bad == nil && merged.readsAsBytes() {
		m.bad = errReadsAsBytes(at.String())
	}
	m.settle(start, at, merged)
	return merged
}

// value returns what have becomes when want is merged into it: nil is absent.
func (m *merger) value(have, want *Node, here *trail) *Node {
	switch {
	case have.IsMap() && want.IsMap():
		return m.merge(have, want, here)
	case m.rule == keepOld && have != nil:
		return have
	case m.rule == nullDeletes && want.kind == kindNull:
		if have != nil {
			m.add(OpDelete, here, nil)
		}
		return nil
	case m.rule == nullDeletes && want.IsMap():
		// The patch's own nulls delete nothing here, but are not kept either.
		apart := merger{rule: m.rule, meter: m.meter, bad: m.bad}
		want = apart.merge(emptyMap, want, here)
		m.bad = apart.bad
	}
	if equal(m.meter, have, want) {
		return have
	}
	m.add(OpSet, here, want)
	return want
}

// delta is a key's new value; nil deletes the key.
type delta struct {
	key string
	v   *Node
}

// bulk is the share of changed entries (one in bulk) from which on a container
// is built anew instead of edited entry by entry.
const bulk = 8

// deltaPrice is what withDeltas and spliced take.
func deltaPrice(n *Node, deltas int) uint64 {
	if deltas*bulk < n.Len() {
		return levelUnits * uint64(deltas)
	}
	return encodeUnits * uint64(n.Len()+deltas)
}

// withDeltas returns the map n with deltas, which are in key order.
func (n *Node) withDeltas(deltas []delta) *Node {
	if len(deltas)*bulk < n.Len() {
		for _, d := range deltas {
			if e := (Elem{Key: d.key}); d.v != nil {
				n = n.with(e, d.v)
			} else {
				n = n.without(e)
			}
		}
		return n
	}
	keys := make([]string, 0, n.Len()+len(deltas))
	vals := make([]*Node, 0, cap(keys))
	put := func(k string, v *Node) {
		if v != nil {
			keys, vals = append(keys, k), append(vals, v)
		}
	}
	for k, v := range n.body.all() {
		for len(deltas) > 0 && compareKeys(deltas[0].key, k) < 0 {
			put(deltas[0].key, deltas[0].v)
			deltas = deltas[1:]
		}
		if len(deltas) > 0 && deltas[0].key == k {
			v, deltas = deltas[0].v, deltas[1:]
		}
		put(k, v)
	}
	for _, d := range deltas {
		put(d.key, d.v)
	}
	return &Node{kind: kindMap, body: build(keys, vals)}
}

// differ turns an old value into a new one and records what differs.
type differ struct {
	recorder
	meter *work.Meter
}

// diff returns a node equal to v that shares with old what is equal.
func (d *differ) diff(old, v *Node, at *trail) *Node {
	switch {
	case old == v, d.meter.Err() != nil:
		return old
	case old.IsMap() && v.IsMap():
		return d.maps(old, v, at)
	case old.IsList() && v.IsList():
		return d.lists(old, v, at)
	case equal(d.meter, old, v):
		return old
	}
	d.add(OpSet, at, v)
	return v
}

// sameScalar spares the common case a trail.
func sameScalar(a, b *Node) bool { return a == b || a.body == nil && b.body == nil && a.enc == b.enc }

func (d *differ) maps(old, v *Node, at *trail) *Node {
	start := d.mark()
	var deltas []delta
	co, cv := newCursor(old.body), newCursor(v.body)
	ko, vo := co.next()
	kv, vv := cv.next()
	for vo != nil || vv != nil {
		if d.meter.Spend(mergeUnits) != nil {
			return old
		}
		switch {
		case vv == nil || vo != nil && compareKeys(ko, kv) < 0:
			d.add(OpDelete, at.key(ko), nil)
			deltas = append(deltas, delta{ko, nil})
			ko, vo = co.next()
		case vo == nil || compareKeys(ko, kv) > 0:
			d.add(OpSet, at.key(kv), vv)
			deltas = append(deltas, delta{kv, vv})
			kv, vv = cv.next()
		default:
			if !sameScalar(vo, vv) {
				if got := d.diff(vo, vv, at.key(ko)); got != vo {
					deltas = append(deltas, delta{ko, got})
				}
			}
			ko, vo = co.next()
			kv, vv = cv.next()
		}
	}
	if len(deltas) == 0 {
		return old
	}
	if d.meter.Spend(deltaPrice(old, len(deltas))) != nil {
		return old
	}
	result := old.withDeltas(deltas)
	d.settle(start, at, result)
	return result
}

func (d *differ) lists(old, v *Node, at *trail) *Node {
	start := d.mark()
	if d.meter.Spend(encodeUnits*uint64(old.Len()+v.Len())) != nil {
		return old
	}
	from, to := old.values(), v.values()
	tail := 0 // the common end
	if len(to) < len(from) {
		for tail < len(to) && equal(d.meter, from[len(from)-1-tail], to[len(to)-1-tail]) {
			tail++
		}
	}
	s := splice{at: min(len(from), len(to)) - tail, gone: max(len(from)-len(to), 0)}
	for i := range s.at {
		if d.meter.Spend(encodeUnits) != nil {
			return old
		}
		if sameScalar(from[i], to[i]) {
			continue
		}
		if got := d.diff(from[i], to[i], at.index(i)); got != from[i] {
			s.touched = append(s.touched, i)
			from[i] = got
		}
	}
	if d.meter.Spend(mergeUnits*uint64(s.gone+max(len(to)-len(from), 0))) != nil {
		return old
	}
	for range s.gone {
		d.add(OpDelete, at.index(s.at), nil)
	}
	for i := len(from); i < len(to); i++ {
		d.add(OpSet, at.index(i), to[i])
		s.added = append(s.added, to[i])
	}
	if len(s.touched)+s.gone+len(s.added) == 0 {
		return old
	}
	if d.meter.Spend(deltaPrice(old, len(s.touched)+s.gone+len(s.added))) != nil {
		return old
	}
	result := old.spliced(from, s)
	d.settle(start, at, result)
	return result
}

// splice is how a list becomes another one.
type splice struct {
	touched  []int   // these elements have new values
	at, gone int     // then so many at at are deleted
	added    []*Node // then these are appended
}

// spliced returns the list n after s. Vals are its elements with the touched
// ones already new; spliced may change it.
func (n *Node) spliced(vals []*Node, s splice) *Node {
	if (len(s.touched)+s.gone+len(s.added))*bulk >= len(vals) {
		vals = append(slices.Delete(vals, s.at, s.at+s.gone), s.added...)
		return &Node{kind: kindList, body: build(nil, vals)}
	}
	for _, i := range s.touched {
		n = n.with(Elem{List: true, Index: uint64(i)}, vals[i])
	}
	for range s.gone {
		n = n.without(Elem{List: true, Index: uint64(s.at)})
	}
	for _, v := range s.added {
		n = n.with(Elem{List: true, Index: uint64(n.Len())}, v)
	}
	return n
}

// values returns the elements of a list in a new slice.
func (n *Node) values() []*Node {
	all := make([]*Node, 0, n.Len())
	for _, v := range n.body.all() {
		all = append(all, v)
	}
	return all
}
