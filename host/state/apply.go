package state

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// Apply makes a batch of edits, all or none. Each sees what those before it
// did. A nil root is the empty map; defaults is what "clear" goes back to, nil
// for the empty map.
//
// It returns the new tree, one result for each edit and the changes that
// [Fold] makes the new tree from. Edits that find things as they want them make
// no change: the changes are then empty, but not nil. On an error the root comes
// back as it was and results and changes are nil.
//
// # Edits
//
//   - set makes the maps on the way and the key; the indices of lists must
//     exist. It gives null.
//   - delete gives whether the value was there. Deleting a list's element moves
//     those after it up.
//   - append makes the list (and the maps on the way) if it is absent and gives
//     the new length.
//   - increment counts absent as 0 and gives the sum: an integer, or a float if
//     one of the two is.
//   - merge goes into maps, and replaces anything else. Null is a value. It
//     gives null.
//   - test fails the batch with conflict unless the value is there and [Equal].
//     It gives null.
//   - clear goes back to the defaults. It has no path. It gives null.
//
// # Errors
//
// All are [*Error], and name the edit. Codes: invalid_message for an unknown
// operation, a missing or superfluous value, a malformed path or value, or a map
// with the only key "$bytes"; not_found for an index out of range;
// failed_precondition for what does not fit the tree (a path through a scalar,
// append to no list, increment of no number, overflow, a state that is no map);
// conflict for test; limit_exceeded for a state deeper than
// [abi.MaxValueDepth]. The size of the state is the caller's to check, by
// [Node.Bytes].
func Apply(root *Node, edits []abi.Edit, defaults *Node) (newRoot *Node, results []abi.Raw, changes []Change, err error) {
	return ApplyOn(nil, root, edits, defaults)
}

// ApplyOn is Apply on a meter. The error may be the meter's.
func ApplyOn(m *work.Meter, root *Node, edits []abi.Edit, defaults *Node) (newRoot *Node, results []abi.Raw, changes []Change, err error) {
	root = orEmpty(root)
	b := batch{meter: m, root: root, defaults: orEmpty(defaults), changes: []Change{}}
	results = make([]abi.Raw, 0, len(edits))
	for i, e := range edits {
		r, err := b.edit(e)
		if ended := m.Err(); ended != nil {
			return root, nil, nil, ended
		}
		if err != nil {
			return root, nil, nil, inEdit(i, e, err)
		}
		results = append(results, r)
	}
	b.settle()
	if err := m.Spend(journalPrice(b.changes)); err != nil {
		return root, nil, nil, err
	}
	return b.root, results, b.changes, nil
}

// inEdit says which edit failed.
func inEdit(i int, e abi.Edit, err error) error {
	out := Error{Code: abi.StatusInternal.Code(), Path: clip(e.Path), Message: err.Error(), cause: err}
	if inner := (*Error)(nil); errors.As(err, &inner) {
		out = *inner
	}
	out.Message = fmt.Sprintf("edit %d (%s): %s", i, clip(string(e.Op)), out.Message)
	return &out
}

// batch is a tree on its way through edits.
type batch struct {
	meter    *work.Meter
	root     *Node
	defaults *Node
	changes  []Change
}

func (b *batch) edit(e abi.Edit) (abi.Raw, error) {
	if err := b.meter.Spend(levelUnits + work.Bytes(len(e.Path), textBytes)); err != nil {
		return nil, err
	}
	p, err := ParsePath(e.Path)
	if err != nil {
		return nil, err
	}
	v, err := operand(b.meter, e)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case abi.OpSet:
		return result(b.set(p, v))
	case abi.OpDelete:
		return b.delete(p)
	case abi.OpAppend:
		return b.append(p, v)
	case abi.OpIncrement:
		return b.increment(p, v)
	case abi.OpMerge:
		return result(b.merge(p, v))
	case abi.OpTest:
		return result(b.test(p, v))
	default: // clear; operand knows the operations
		return result(b.put(spot{node: b.root}, b.defaults))
	}
}

// operand decodes the edit's value, nil if its operation has none.
func operand(m *work.Meter, e abi.Edit) (*Node, error) {
	switch e.Op {
	case abi.OpSet, abi.OpAppend, abi.OpIncrement, abi.OpMerge, abi.OpTest:
		if e.Value == nil {
			return nil, fail(abi.StatusInvalidMessage, e.Path, "the value is missing")
		}
		return DecodeOn(m, e.Value)
	case abi.OpClear:
		if e.Path != "" {
			return nil, fail(abi.StatusInvalidMessage, e.Path, "the operation takes no path")
		}
	case abi.OpDelete:
	default:
		return nil, fail(abi.StatusInvalidMessage, e.Path, "unknown operation %q", clip(string(e.Op)))
	}
	if e.Value != nil {
		return nil, fail(abi.StatusInvalidMessage, e.Path, "the operation takes no value")
	}
	return nil, nil
}

// result gives null, or the error.
func result(err error) (abi.Raw, error) {
	if err != nil {
		return nil, err
	}
	return abi.Raw{cbor.Null}, nil
}

func (b *batch) set(p Path, v *Node) error {
	at, err := locate(b.root, p)
	if err != nil {
		return err
	}
	return b.put(at, v)
}

func (b *batch) delete(p Path) (abi.Raw, error) {
	if len(p) == 0 {
		return nil, fail(abi.StatusFailedPrecondition, "", "the whole state cannot be deleted, use clear")
	}
	at, err := locate(b.root, p)
	if err != nil || !at.found() {
		// Whatever keeps the path from leading anywhere, nothing was there.
		return abi.Raw{cbor.False}, nil
	}
	if err := b.commit(Change{Op: OpDelete, Path: at.at}); err != nil {
		return nil, err
	}
	return abi.Raw{cbor.True}, nil
}

func (b *batch) append(p Path, v *Node) (abi.Raw, error) {
	at, err := locate(b.root, p)
	if err != nil {
		return nil, err
	}
	if !at.found() {
		list := &Node{kind: kindList, body: newLeaf(nil, []*Node{v})}
		return abi.Raw{1}, b.put(at, list)
	}
	if !at.node.IsList() {
		return nil, fail(abi.StatusFailedPrecondition, p.String(), "cannot append to %s", at.node.kind)
	}
	n := at.node.Len()
	end := append(at.at[:len(at.at):len(at.at)], Elem{List: true, Index: uint64(n)}) //nolint:gocritic // the bound makes a copy
	return cbor.AppendHead(nil, cbor.Uint, uint64(n)+1), b.commit(Change{Op: OpSet, Path: end, Value: v})
}

func (b *batch) increment(p Path, v *Node) (abi.Raw, error) {
	by, ok := v.number()
	if !ok {
		return nil, fail(abi.StatusFailedPrecondition, p.String(), "cannot increment by %s", v.kind)
	}
	at, err := locate(b.root, p)
	if err != nil {
		return nil, err
	}
	var sum number
	if at.found() {
		if sum, ok = at.node.number(); !ok {
			return nil, fail(abi.StatusFailedPrecondition, p.String(), "cannot increment %s", at.node.kind)
		}
	}
	if sum, err = sum.add(by); err != nil {
		return nil, fail(abi.StatusFailedPrecondition, p.String(), "%v", err)
	}
	total, err := sum.node()
	if err != nil {
		return nil, err
	}
	return total.Encode(), b.put(at, total)
}

func (b *batch) merge(p Path, v *Node) error {
	if !v.IsMap() {
		return fail(abi.StatusInvalidMessage, p.String(), "cannot merge %s, only a map", v.kind)
	}
	at, err := locate(b.root, p)
	if err != nil {
		return err
	}
	if !at.found() || !at.node.IsMap() {
		return b.put(at, v)
	}
	m := merger{recorder: recorder{base: at.at}, rule: takeNew, meter: b.meter}
	return b.adopt(at, m.merge(at.node, v, nil), &m.recorder)
}

func (b *batch) test(p Path, v *Node) error {
	switch have, ok := Get(b.root, p); {
	case !ok:
		return fail(abi.StatusConflict, p.String(), "there is no value")
	case !equal(b.meter, have, v):
		return fail(abi.StatusConflict, p.String(), "the value is another")
	}
	return nil
}

// put writes v at a place, unless it is there already.
func (b *batch) put(at spot, v *Node) error {
	if at.found() && equal(b.meter, at.node, v) {
		return nil
	}
	if len(at.at)+len(at.rest) == 0 && !v.IsMap() {
		return errRootMap(v)
	}
	c, err := at.put(v)
	if err != nil {
		return err
	}
	return b.commit(c)
}

// commit makes one change.
func (b *batch) commit(c Change) error {
	if err := b.meter.Spend(levelUnits * uint64(1+len(c.Path))); err != nil {
		return err
	}
	root, err := c.apply(b.root)
	if err != nil {
		return err
	}
	if n := len(c.Path); n > 0 {
		parent := root
		for _, e := range c.Path[:n-1] {
			parent = parent.child(e)
		}
		if parent.readsAsBytes() {
			return errReadsAsBytes(showElems(c.Path[:n-1]))
		}
	}
	b.root = root
	b.changes = append(b.changes, c)
	return nil
}

// settle keeps the record of a batch in proportion to the state, whatever the
// batch did on the way.
func (b *batch) settle() {
	cost := 0
	for _, c := range b.changes {
		cost += c.cost()
	}
	if whole := (Change{Op: OpSet, Value: b.root}); wasteful(cost, whole.cost()) {
		b.changes = []Change{whole}
	}
}

// adopt puts a container that a structural operation made from the one at a
// place, and takes over the changes that it recorded.
func (b *batch) adopt(at spot, v *Node, r *recorder) error {
	if v == at.node {
		return nil
	}
	root, err := Change{Op: OpSet, Path: at.at, Value: v}.apply(b.root)
	if err != nil {
		return err
	}
	b.root = root
	b.changes = append(b.changes, r.changes()...)
	return nil
}
