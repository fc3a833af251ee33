package state

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// ChangeOp is the operation of a [Change].
type ChangeOp string

// The operations of changes.
const (
	// OpSet writes Value at Path. The containers above exist. An index that is
	// the list's length appends.
	OpSet ChangeOp = "set"
	// OpDelete removes what is at Path; in a list the elements after it move up.
	OpDelete ChangeOp = "delete"
)

// Change is a resolved edit: what the journal keeps. It says what became of
// the tree, not what was asked, so [Fold] needs nothing but the tree.
type Change struct {
	Op    ChangeOp
	Path  []Elem // empty: the whole state, with OpSet only
	Value *Node  // nil with OpDelete
}

// Elem is one resolved part of a change's path: a map's Key, or with List an
// Index from the front of a list.
type Elem struct {
	Key   string
	Index uint64
	List  bool
}

// encodedSize returns the bytes of the element in a change record.
func (e Elem) encodedSize() int {
	if e.List {
		return cbor.Size(e.Index)
	}
	return cbor.Size(uint64(len(e.Key))) + len(e.Key)
}

// String returns the element as a segment of a path, quoted if it could not be
// read back as one. Long keys are cut.
func (e Elem) String() string {
	switch {
	case e.List:
		return strconv.FormatUint(e.Index, 10)
	case e.Key == "" || strings.ContainsAny(e.Key, ".\"\\\n\r\t"):
		return strconv.Quote(clip(e.Key))
	}
	return clip(e.Key)
}

func showElems(at []Elem) string {
	var b strings.Builder
	for i, e := range at {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(e.String())
		if b.Len() > maxShown {
			break
		}
	}
	return clip(b.String())
}

// At returns the path of the change as people write it: keys and indices by dots,
// "" for the whole state. Keys that no path can name are quoted, long ones cut.
func (c Change) At() string { return showElems(c.Path) }

// Old returns what is in a tree where the change is to be made, nil if nothing is
// there or the change does not fit the tree.
func (c Change) Old(root *Node) *Node {
	n := root
	for _, e := range c.Path {
		switch {
		case e.List && n.IsList() && e.Index < uint64(n.Len()), !e.List && n.IsMap():
			n = n.child(e)
		default:
			return nil
		}
	}
	return n
}

// apply returns the tree after the change. It costs O(log n) for each element
// of the path. The error says how the change does not fit the tree; it is an
// [*Error] only for the depth limit.
func (c Change) apply(root *Node) (*Node, error) {
	switch {
	case c.Op != OpSet && c.Op != OpDelete:
		return nil, fmt.Errorf("unknown change %q", clip(string(c.Op)))
	case (c.Op == OpSet) != (c.Value != nil):
		return nil, fmt.Errorf("a change %q with the wrong number of values", string(c.Op))
	case len(c.Path) == 0 && !c.Value.IsMap():
		return nil, errors.New("the whole state must be a map")
	case len(c.Path)+c.Value.Depth() > abi.MaxValueDepth:
		return nil, fail(abi.StatusLimitExceeded, showElems(c.Path), "the state nests deeper than %d", abi.MaxValueDepth)
	}
	return c.applyTo(root, c.Path)
}

func (c Change) applyTo(n *Node, path []Elem) (*Node, error) {
	if len(path) == 0 {
		return c.Value, nil
	}
	e := path[0]
	if e.List && !n.IsList() || !e.List && !n.IsMap() {
		return nil, fmt.Errorf("no container for %s", e)
	}
	old := n.child(e)
	if len(path) == 1 && c.Op == OpSet && (!e.List || e.Index <= uint64(n.Len())) {
		return n.with(e, c.Value), nil
	}
	if old == nil {
		return nil, fmt.Errorf("nothing at %s", e)
	}
	if len(path) == 1 {
		return n.without(e), nil
	}
	v, err := c.applyTo(old, path[1:])
	if err != nil {
		return nil, err
	}
	return n.with(e, v), nil
}

// Fold applies changes, in order, to the tree they were made on and returns the
// tree they made. A nil root is the empty map. The error wraps [ErrCorrupt]: the
// changes do not fit the tree.
func Fold(root *Node, changes []Change) (*Node, error) {
	n := orEmpty(root)
	for i, c := range changes {
		var err error
		if n, err = c.apply(n); err != nil {
			return nil, fmt.Errorf("%w: change %d of %d at %q: %w", ErrCorrupt, i, len(changes), showElems(c.Path), err)
		}
	}
	return n, nil
}

func orEmpty(root *Node) *Node {
	if root == nil {
		return emptyMap
	}
	return root
}

// EncodeChanges returns the changes as one CBOR item in Core Deterministic
// Encoding:
//
//	[* ["set", [* tstr / uint], value] / ["delete", [+ tstr / uint]]]
func EncodeChanges(changes []Change) []byte { return EncodeChangesOn(nil, changes) }

// EncodeChangesOn is EncodeChanges on a meter; the result is of no use once that has
// ended.
func EncodeChangesOn(m *work.Meter, changes []Change) []byte {
	size := cbor.Size(uint64(len(changes)))
	for _, c := range changes {
		size += c.encodedSize()
	}
	b := cbor.AppendHead(make([]byte, 0, size), cbor.Array, uint64(len(changes)))
	for _, c := range changes {
		items := uint64(2)
		if c.Value != nil {
			items = 3
		}
		b = cbor.AppendText(cbor.AppendHead(b, cbor.Array, items), string(c.Op))
		b = cbor.AppendHead(b, cbor.Array, uint64(len(c.Path)))
		for _, e := range c.Path {
			if e.List {
				b = cbor.AppendHead(b, cbor.Uint, e.Index)
			} else {
				b = cbor.AppendText(b, e.Key)
			}
		}
		b = c.Value.appendOn(m, b)
	}
	return b
}

func (c Change) encodedSize() int {
	size := 2 + len(c.Op) + cbor.Size(uint64(len(c.Path))) + c.Value.Bytes()
	for _, e := range c.Path {
		size += e.encodedSize()
	}
	return size
}

// DecodeChanges reads what [EncodeChanges] wrote. It checks the form, bounds
// the depth and keeps no part of b; whether the changes fit a tree is for
// [Fold]. The error wraps [ErrCorrupt].
func DecodeChanges(b []byte) ([]Change, error) {
	list, err := decode(nil, b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if !list.IsList() {
		return nil, fmt.Errorf("%w: it is %s, not a list", ErrCorrupt, list.kind)
	}
	changes := make([]Change, 0, list.Len())
	for _, item := range list.body.all() {
		c, err := changeOf(item)
		if err != nil {
			return nil, fmt.Errorf("%w: change %d: %w", ErrCorrupt, len(changes), err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func changeOf(item *Node) (Change, error) {
	var c Change
	var parts []*Node
	if item.IsList() && item.Len() <= 3 {
		for _, v := range item.body.all() {
			parts = append(parts, v)
		}
	}
	if len(parts) < 2 || parts[0].kind != kindText || !parts[1].IsList() {
		return c, errors.New("it is no [op, path, ? value]")
	}
	c.Op = ChangeOp(parts[0].text())
	if want := map[ChangeOp]int{OpSet: 3, OpDelete: 2}[c.Op]; want != len(parts) {
		return c, fmt.Errorf("operation %q with %d items", clip(string(c.Op)), len(parts))
	}
	if parts[1].Len() > abi.MaxPathSegments {
		return c, fmt.Errorf("a path of %d elements", parts[1].Len())
	}
	for _, v := range parts[1].body.all() {
		e, err := elemOf(v)
		if err != nil {
			return c, err
		}
		c.Path = append(c.Path, e)
	}
	if c.Op == OpSet {
		c.Value = parts[2]
	}
	if d := len(c.Path) + c.Value.Depth(); d > abi.MaxValueDepth {
		return c, fmt.Errorf("it nests %d deep", d)
	}
	return c, nil
}

func elemOf(v *Node) (Elem, error) {
	switch v.kind {
	case kindText:
		return Elem{Key: v.text()}, nil
	case kindInt:
		if x, _ := v.number(); !x.neg && x.mag <= math.MaxInt64 {
			return Elem{Index: x.mag, List: true}, nil
		}
	}
	return Elem{}, fmt.Errorf("%s in a path", v.kind)
}
