package state

import (
	"iter"
	"math"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// Node is a value in the tree: null, a boolean, a number, a text, a byte
// string, a list or a map with text keys. It is immutable and may be shared
// between trees and goroutines. A nil *Node is "absent": it has no bytes and no
// depth, and encodes to a nil Raw.
//
// The same pointer means the same value; two pointers may still be [Equal].
type Node struct {
	enc  string // of a scalar: its canonical encoding; else ""
	body *page  // of a list or map
	kind kind
}

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindBytes
	kindList
	kindMap
)

// String returns the kind as error messages name it.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "an integer", "a float", "a text", "a byte string", "a list", "a map"}[k]
}

var (
	emptyMap  = &Node{kind: kindMap, body: &page{keys: []string{}}}
	emptyList = &Node{kind: kindList, body: &page{}}

	// oneByte holds the scalars that encode in one byte, so that a long list of
	// small numbers costs a pointer each.
	oneByte = func() (t [256]*Node) {
		for i := range t {
			switch b := byte(i); {
			case cbor.Major(b) <= cbor.Nint && cbor.Info(b) < cbor.Info8,
				(cbor.Major(b) == cbor.Bytes || cbor.Major(b) == cbor.Text) && cbor.Info(b) == 0,
				b == cbor.False, b == cbor.True, b == cbor.Null:
				t[i] = &Node{kind: kindOf(b), enc: string([]byte{b})}
			}
		}
		return t
	}()
)

// kindOf returns the kind of the item that begins with b.
func kindOf(b byte) kind {
	switch cbor.Major(b) {
	case cbor.Uint, cbor.Nint:
		return kindInt
	case cbor.Bytes:
		return kindBytes
	case cbor.Text:
		return kindText
	case cbor.Array:
		return kindList
	case cbor.Map:
		return kindMap
	}
	switch b {
	case cbor.False, cbor.True:
		return kindBool
	case cbor.Null:
		return kindNull
	}
	return kindFloat
}

// Empty returns the empty map, the state without defaults.
func Empty() *Node { return emptyMap }

// Decode builds the tree of one CBOR data item. It checks r and keeps no part
// of it. Time and memory are linear in len(r), which the caller bounds (1 GiB at
// most); there is no other limit on the number of items, as a state that grew
// edit by edit must be readable as a whole. The error is an [*Error] with the
// code invalid_message if r is no well-formed value, or limit_exceeded if it
// nests deeper than [abi.MaxValueDepth].
func Decode(r abi.Raw) (*Node, error) { return DecodeOn(nil, r) }

// DecodeOn is Decode on a meter. The error may be the meter's.
func DecodeOn(m *work.Meter, r abi.Raw) (*Node, error) {
	n, err := decode(m, r)
	if ended := m.Err(); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, &Error{Code: abi.StatusInvalidMessage.Code(), Message: "malformed value: " + err.Error(), cause: err}
	}
	if n.Depth() > abi.MaxValueDepth {
		return nil, fail(abi.StatusLimitExceeded, "", "the value nests deeper than %d", abi.MaxValueDepth)
	}
	return n, nil
}

// decode is Decode with the greater depth of messages: a value that is merely
// too deep for a state gets the error that says so.
func decode(m *work.Meter, b []byte) (*Node, error) {
	if err := m.Spend(nodeUnits + work.Bytes(len(b), decodeBytes)); err != nil {
		return nil, err
	}
	limits := abi.Limits{MaxBytes: len(b), MaxDepth: abi.MaxMessageDepth, MaxElements: 2 * len(b), MaxText: len(b)}
	r, err := limits.Canonical(b)
	if err != nil {
		return nil, err
	}
	d := decoder{meter: m}
	n, _ := d.item(r)
	return n, nil
}

// decoder builds nodes from checked, canonical bytes.
type decoder struct {
	// keys lets the maps of a list share the text of their keys.
	keys  map[string]string
	meter *work.Meter
}

const (
	maxSharedKeys = 4096 // keys that a decoder remembers
	maxSharedKey  = 64   // bytes of one
)

// item returns the node of the first item in b and what follows it.
func (d *decoder) item(b []byte) (*Node, []byte) {
	if d.meter.Spend(nodeUnits) != nil {
		return oneByte[cbor.Null], b // of no use
	}
	if n := oneByte[b[0]]; n != nil {
		return n, b[1:]
	}
	arg, size := cbor.Head(b, 0)
	switch cbor.Major(b[0]) {
	case cbor.Bytes, cbor.Text:
		size += int(arg)
	case cbor.Array:
		return d.list(int(arg), b[size:])
	case cbor.Map:
		return d.dict(int(arg), b[size:])
	}
	return &Node{kind: kindOf(b[0]), enc: string(b[:size])}, b[size:]
}

func (d *decoder) list(n int, b []byte) (*Node, []byte) {
	if n == 0 {
		return emptyList, b
	}
	var leaves []*page
	for n > 0 {
		vals := make([]*Node, min(n, fanout))
		if d.meter.Err() != nil {
			return emptyList, b
		}
		for i := range vals {
			vals[i], b = d.item(b)
		}
		n -= len(vals)
		leaves = append(leaves, newLeaf(nil, vals))
	}
	return &Node{kind: kindList, body: stack(leaves)}, b
}

func (d *decoder) dict(n int, b []byte) (*Node, []byte) {
	if n == 0 {
		return emptyMap, b
	}
	var leaves []*page
	for n > 0 {
		keys := make([]string, min(n, fanout))
		vals := make([]*Node, len(keys))
		if d.meter.Err() != nil {
			return emptyMap, b
		}
		for i := range vals {
			keys[i], b = d.key(b)
			vals[i], b = d.item(b)
		}
		n -= len(vals)
		leaves = append(leaves, newLeaf(keys, vals))
	}
	return &Node{kind: kindMap, body: stack(leaves)}, b
}

func (d *decoder) key(b []byte) (string, []byte) {
	if d.meter.Err() != nil {
		return "", b
	}
	arg, size := cbor.Head(b, 0)
	end := size + int(arg)
	text := b[size:end]
	if k, ok := d.keys[string(text)]; ok {
		return k, b[end:]
	}
	k := string(text)
	if len(k) <= maxSharedKey && len(d.keys) < maxSharedKeys {
		if d.keys == nil {
			d.keys = make(map[string]string)
		}
		d.keys[k] = k
	}
	return k, b[end:]
}

// Encode returns the node in Core Deterministic Encoding; nil for nil. The
// caller owns the result. It costs O(n) of the node's size.
func (n *Node) Encode() abi.Raw {
	if n == nil {
		return nil
	}
	return n.AppendTo(make([]byte, 0, n.Bytes()))
}

// EncodeOn is Encode on a meter, whose error it gives.
func (n *Node) EncodeOn(m *work.Meter) (abi.Raw, error) {
	if n == nil {
		return nil, nil
	}
	if err := m.Spend(work.Bytes(n.Bytes(), copyBytes)); err != nil { // the memory
		return nil, err
	}
	b := n.appendOn(m, make([]byte, 0, n.Bytes()))
	return b, m.Err()
}

// AppendTo appends what [Node.Encode] returns to dst.
func (n *Node) AppendTo(dst []byte) []byte { return n.appendOn(nil, dst) }

func (n *Node) appendOn(m *work.Meter, dst []byte) []byte {
	switch {
	case n == nil || m.Spend(walkPrice(n)) != nil:
		return dst
	case n.body == nil:
		return append(dst, n.enc...)
	case n.kind == kindList:
		dst = cbor.AppendHead(dst, cbor.Array, uint64(n.body.count))
		for _, v := range n.body.all() {
			dst = v.appendOn(m, dst)
		}
		return dst
	}
	dst = cbor.AppendHead(dst, cbor.Map, uint64(n.body.count))
	for k, v := range n.body.all() {
		dst = v.appendOn(m, cbor.AppendText(dst, k))
	}
	return dst
}

// Bytes returns the length of the node's encoding in O(1).
func (n *Node) Bytes() int {
	switch {
	case n == nil:
		return 0
	case n.body == nil:
		return len(n.enc)
	}
	return cbor.Size(uint64(n.body.count)) + n.body.size
}

// Depth returns how deep the node nests in O(1): 0 for a scalar, 1 for a list
// or map of scalars.
func (n *Node) Depth() int {
	if n == nil || n.body == nil {
		return 0
	}
	return 1 + int(n.body.depth)
}

// Len returns the number of entries of a list or map, else 0.
func (n *Node) Len() int {
	if n == nil || n.body == nil {
		return 0
	}
	return n.body.count
}

// IsMap reports whether the node is a map.
func (n *Node) IsMap() bool { return n != nil && n.kind == kindMap }

// IsList reports whether the node is a list.
func (n *Node) IsList() bool { return n != nil && n.kind == kindList }

// Equal reports whether a and b have the same encoding. So 1 and 1.0 differ,
// and so do 0.0 and -0.0. Absent equals absent only. It costs at most O(n) of
// the smaller one, and O(1) if the sizes differ.
func Equal(a, b *Node) bool { return equal(nil, a, b) }

func equal(m *work.Meter, a, b *Node) bool {
	if a == b {
		return true
	}
	if a != nil && m.Spend(walkPrice(a)) != nil {
		return false
	}
	if a == nil || b == nil || a.kind != b.kind || a.enc != b.enc || a.Len() != b.Len() || a.Bytes() != b.Bytes() {
		return false
	}
	if a.body == nil || a.body == b.body {
		return true
	}
	ca, cb := newCursor(a.body), newCursor(b.body)
	for {
		ka, va := ca.next()
		kb, vb := cb.next()
		if va == nil {
			return true
		}
		if ka != kb || !equal(m, va, vb) {
			return false
		}
	}
}

// text returns the content of a text or byte string.
func (n *Node) text() string {
	_, size := cbor.Head([]byte(n.enc), 0)
	return n.enc[size:]
}

// readsAsBytes reports whether the node is a map with the only key "$bytes".
// In JSON that is a byte string, so no such map is a value (see
// [abi.CheckValue]) and no edit may make one.
func (n *Node) readsAsBytes() bool {
	return n.IsMap() && n.Len() == 1 && n.get(bytesKey) != nil
}

const bytesKey = "$bytes"

// get returns the value at a map's key, or nil.
func (n *Node) get(key string) *Node {
	if !n.IsMap() {
		return nil
	}
	_, v := n.body.find(key)
	return v
}

// child returns the value at e, or nil.
func (n *Node) child(e Elem) *Node {
	if !e.List {
		return n.get(e.Key)
	}
	if !n.IsList() || e.Index >= uint64(n.body.count) {
		return nil
	}
	_, v := n.body.at(int(e.Index))
	return v
}

// with returns the container n with v at e; an index that is the length
// appends. The caller has checked that e fits n.
func (n *Node) with(e Elem, v *Node) *Node {
	i, del := int(e.Index), 1
	if e.List {
		if i == n.body.count {
			del = 0
		}
	} else {
		var old *Node
		if i, old = n.body.find(e.Key); old == nil {
			del = 0
		} else {
			// Keep the text that the tree has, or a key from a long path would keep
			// the whole path in memory.
			e.Key, _ = n.body.at(i)
		}
	}
	return &Node{kind: n.kind, body: n.body.edit(i, del, &entry{e.Key, v})}
}

// without returns the container n without e, which must be there.
func (n *Node) without(e Elem) *Node {
	i := int(e.Index)
	if !e.List {
		i, _ = n.body.find(e.Key)
	}
	return &Node{kind: n.kind, body: n.body.edit(i, 1, nil)}
}

// Field returns the value at a map's key, or nil: also for keys that have no
// path, and for a node that is no map.
func (n *Node) Field(key string) *Node {
	if n == nil {
		return nil
	}
	return n.get(key)
}

// Entries gives the keys of a map and their values, in the order of the
// encoding; nothing for a node that is no map.
func (n *Node) Entries() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		if !n.IsMap() {
			return
		}
		for c := newCursor(n.body); ; {
			key, value := c.next()
			if value == nil || !yield(key, value) {
				return
			}
		}
	}
}

// Identity is a text that two values share if they are equal for people who
// compare them: a float that is a whole number is the integer, inside of lists
// and maps it is not.
func (n *Node) Identity() string {
	if x, ok := n.number(); ok && x.isFloat && x.float == math.Trunc(x.float) && math.Abs(x.float) < 1<<63 {
		whole := number{neg: x.float < 0, mag: uint64(math.Abs(x.float))}
		return string(whole.appendInt(nil))
	}
	return string(n.Encode())
}
