package jsonschema

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// kind says what a Value is.
type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindInt   // an integer in the range of int64
	kindUint  // a larger one
	kindFloat // in float64
	kindBytes // a string whose length counts bytes
	kindText
	kindBlob // a byte string that is an object with the field $bytes, as in JSON
	kindList
	kindObject
)

// Value is a value that schemas are evaluated on: a place within an encoding, or a node
// of a [Tree]. Nothing is made of a value to look at it: what is in a list or an object
// is read when it is visited. The zero Value is null.
type Value struct {
	kind kind
	bits uint64 // of a number; items of a list, members of an object
	// raw is the content of a text or byte string, the items of a list, the keys and
	// values of an object. Of the lists and objects of a tree it is nil.
	raw []byte
	// places are those of an object's members, once they were asked for. All Values of
	// the object share them.
	places *places
	tree   Tree // nil: an encoded value
}

// Tree is a list, an object or a scalar that is not encoded.
type Tree interface {
	// Has reports whether the tree is an object with a member of a name.
	Has(name string) bool
	// Walk goes over the items of a list, or over the members of an object in the order
	// of the deterministic encoding: shorter names first.
	Walk() Walk
	// Bytes is the length of the tree's encoding.
	Bytes() int
}

// Walk goes over what is in a [Tree].
type Walk interface {
	// Next returns the next value, and its name in an object; false at the end.
	Next() (name string, v Value, more bool)
}

// Scalar returns the value of a tree that is a scalar, which is given in deterministic
// encoding. A byte string is of the type "string" there.
func Scalar(t Tree, encoded string) Value {
	c, _ := readItem(bytesOf(encoded), 0)
	if c.kind == kindBlob {
		c.kind = kindBytes
	}
	c.tree = t
	return c
}

// List returns the value of a tree that is a list of n items.
func List(t Tree, n int) Value { return Value{kind: kindList, bits: uint64(n), tree: t} }

// Object returns the value of a tree that is an object of n members.
func Object(t Tree, n int) Value { return Value{kind: kindObject, bits: uint64(n), tree: t} }

// Tree returns the tree of the value; nil for an encoded value.
func (c Value) Tree() Tree { return c.tree }

// Text returns the content of a text or byte string. The result refers to the value's
// encoding, which nobody changes while the value is in use.
func (c Value) Text() string { return unsafe.String(unsafe.SliceData(c.raw), len(c.raw)) }

// bytesOf gives the bytes of a text without a copy, for those who only read them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// count is how many items a list has, or members an object.
func (c Value) count() int { return int(c.bits) }

// places are where the members of an object lie, in the order of its encoding: shorter
// keys first, equally long ones by their bytes.
type places struct {
	all  []place
	full bool
}

// place is a member of an object: raw[key:value] is its key's content, raw[value:end]
// its value. The member begins where the one before it ends.
type place struct{ key, value, end uint32 }

// at gives a Value on the member's value.
func (m place) at(raw []byte) Value {
	c, next := readItem(raw, int(m.value))
	if c.kind >= kindList {
		c.raw = raw[next:m.end:m.end]
	}
	return c
}

// find finds the place of a key.
func (p *places) find(raw []byte, name string) (place, bool) {
	i, found := slices.BinarySearchFunc(p.all, name, func(m place, name string) int {
		key := raw[m.key:m.value]
		return cmp.Or(cmp.Compare(len(key), len(name)), bytes.Compare(key, []byte(name)))
	})
	if !found {
		return place{}, false
	}
	return p.all[i], true
}

// bytesKey is the key of the map that a byte string is in JSON.
const bytesKey = "$bytes"

// inJSON gives the object that a byte string is in JSON.
func inJSON(b []byte) Value {
	size := base64.StdEncoding.EncodedLen(len(b))
	raw := cbor.AppendText(make([]byte, 0, size+len(bytesKey)+10), bytesKey)
	raw = cbor.AppendHead(raw, cbor.Text, uint64(size))
	return Value{kind: kindObject, bits: 1, raw: base64.StdEncoding.AppendEncode(raw, b)}
}

// ErrNotValue is the error of bytes that are not a deterministic encoding of a value.
var ErrNotValue = errors.New("not a value in deterministic encoding")

// View checks an encoded value and returns the Value. The result refers to raw. The
// error is ErrNotValue or that of the meter.
func View(m *work.Meter, raw abi.Raw) (Value, error) {
	d := viewer{b: raw, meter: m}
	d.value(abi.MaxMessageDepth)
	if err := m.Err(); err != nil {
		return Value{}, err
	}
	if d.failed || d.off != len(raw) || len(raw) > math.MaxUint32 {
		return Value{}, ErrNotValue
	}
	return onto(raw), nil
}

// onto gives a Value on a value that has been checked.
func onto(raw abi.Raw) Value {
	c, next := readItem(raw, 0)
	if c.kind >= kindList {
		c.raw = raw[next:]
	}
	return c
}

// viewer checks an encoded value: what it takes can be read without looking out.
type viewer struct {
	b      []byte
	off    int
	failed bool
	meter  *work.Meter
}

func (d *viewer) fail() { d.failed, d.off = true, len(d.b) }

// head reads the head of an item: its initial byte and its argument.
func (d *viewer) head() (initial byte, arg uint64) {
	arg, next, ok := cbor.Read(d.b, d.off)
	if !ok {
		d.fail()
		return 0, 0
	}
	initial, d.off = d.b[d.off], next
	return initial, arg
}

// skip goes behind the next n bytes.
func (d *viewer) skip(n uint64) {
	if n > uint64(len(d.b)-d.off) {
		d.fail()
		return
	}
	d.off += int(n)
}

func (d *viewer) value(depth int) {
	if d.meter.Spend(decodeUnits) != nil {
		d.fail()
		return
	}
	initial, arg := d.head()
	switch major := cbor.Major(initial); {
	case d.failed, depth == 0:
		d.fail()
	case major == cbor.Uint, major == cbor.Nint && arg <= math.MaxInt64:
	case major == cbor.Bytes, major == cbor.Text:
		d.skip(arg)
	case major == cbor.Array && arg <= uint64(len(d.b)-d.off): // each takes a byte at least
		for ; arg > 0 && !d.failed; arg-- {
			d.value(depth - 1)
		}
	case major == cbor.Map && arg <= uint64(len(d.b)-d.off)/2:
		for ; arg > 0 && !d.failed; arg-- {
			d.member(depth - 1)
		}
	case initial >= cbor.False && initial <= cbor.Null, initial >= cbor.Float16 && initial <= cbor.Float64:
	default:
		d.fail()
	}
}

func (d *viewer) member(depth int) {
	initial, size := d.head()
	if d.failed || cbor.Major(initial) != cbor.Text || d.meter.Spend(work.Bytes(int(min(size, uint64(len(d.b)))), decodeBytes)) != nil {
		d.fail()
		return
	}
	d.skip(size)
	d.value(depth)
}

// readItem gives a Value on the item at off of a checked encoding. next is behind the
// item, but for a list or an object: there it is where the content begins, which the
// Value does not have yet.
func readItem(b []byte, off int) (c Value, next int) {
	initial := b[off]
	arg, next := cbor.Head(b, off)
	switch major := cbor.Major(initial); major {
	case cbor.Uint:
		if arg > math.MaxInt64 {
			return Value{kind: kindUint, bits: arg}, next
		}
		return Value{kind: kindInt, bits: arg}, next
	case cbor.Nint:
		return Value{kind: kindInt, bits: ^arg}, next
	case cbor.Bytes, cbor.Text:
		end := next + int(arg)
		return Value{kind: kindBlob - kind(major-cbor.Bytes), raw: b[next:end:end]}, end
	case cbor.Array, cbor.Map:
		return Value{kind: kindList + kind(major-cbor.Array), bits: arg}, next
	}
	switch initial {
	case cbor.False:
		return Value{kind: kindFalse}, next
	case cbor.True:
		return Value{kind: kindTrue}, next
	case cbor.Null:
		return Value{}, next
	}
	return Value{kind: kindFloat, bits: math.Float64bits(cbor.Float(initial, arg))}, next
}

// numberSize is the length of a number's encoding.
func (c Value) numberSize() int {
	switch {
	case c.kind == kindFloat:
		return len(cbor.AppendFloat(make([]byte, 0, 9), c.float()))
	case c.kind == kindInt && int64(c.bits) < 0:
		return cbor.Size(^c.bits)
	}
	return cbor.Size(c.bits)
}

// float is the number that a Value of kindFloat stands on.
func (c Value) float() float64 { return math.Float64frombits(c.bits) }

// whole gives a whole float as the integer that it is, if it is in range.
func whole(c Value) Value {
	if c.kind != kindFloat {
		return c
	}
	switch f := c.float(); {
	case f != math.Trunc(f):
	case f >= math.MinInt64 && f < -math.MinInt64:
		return Value{kind: kindInt, bits: uint64(int64(f))}
	case f > 0 && f < 2*-math.MinInt64:
		return Value{kind: kindUint, bits: uint64(f)}
	}
	return c
}

// read gives a Value on the item at off, and where the next one begins; false: the
// meter has ended.
func (e *evaluation) read(b []byte, off int) (c Value, next int, ok bool) {
	c, next = readItem(b, off)
	if c.kind < kindList {
		return c, next, true
	}
	begin, open := next, c.bits
	if c.kind == kindObject {
		open *= 2
	}
	for open > 0 {
		piece := min(open, skipPiece)
		if !e.charge(skipUnits * piece) {
			return c, next, false
		}
		for ; piece > 0; piece-- {
			arg, after := cbor.Head(b, next)
			switch open--; cbor.Major(b[next]) {
			case cbor.Bytes, cbor.Text:
				after += int(arg)
			case cbor.Array:
				open += arg
			case cbor.Map:
				open += 2 * arg
			}
			next = after
		}
	}
	c.raw = b[begin:next:next]
	return c, next, true
}

// members gives the places of an object's members; false: the meter has ended.
func (e *evaluation) members(c Value) (*places, bool) {
	p := c.places
	if p.full {
		return p, true
	}
	p.all = slices.Grow(p.all[:0], c.count())
	for off := 0; off < len(c.raw); {
		size, key := cbor.Head(c.raw, off)
		value := key + int(size)
		_, end, ok := e.read(c.raw, value)
		if !ok || !e.charge(memberUnits) {
			return p, false
		}
		p.all = append(p.all, place{uint32(key), uint32(value), uint32(end)})
		off = end
	}
	p.full = true
	return p, true
}

// takePlaces gives room for the places of an object's members; givePlaces takes it back.
func (e *evaluation) takePlaces() *places {
	n := len(e.free)
	if n == 0 {
		return &places{}
	}
	p := e.free[n-1]
	e.free = e.free[:n-1]
	return p
}

func (e *evaluation) givePlaces(p *places) {
	p.full = false
	e.free = append(e.free, p)
}

// walk goes over the members of an object or the items of a list.
type walk struct {
	name string
	item Value

	v    Value
	left []place // of an encoded object
	off  int     // within an encoded list
	in   Walk    // of a tree
}

// walk begins to go over a value; false: the meter has ended.
func (e *evaluation) walk(v Value) (w walk, ok bool) {
	w, ok = walk{v: v}, true
	switch {
	case v.tree != nil:
		w.in = v.tree.Walk()
	case v.kind == kindObject:
		var of *places
		of, ok = e.members(v)
		w.left = of.all
	}
	return w, ok
}

// next goes on to the next value. The caller does not ask for more items than a list
// has; false at the end of an object, and when the meter has ended.
func (w *walk) next(e *evaluation) (ok bool) {
	switch {
	case w.in != nil:
		w.name, w.item, ok = w.in.Next()
		return ok
	case w.v.kind == kindList:
		w.item, w.off, ok = e.read(w.v.raw, w.off)
		return ok
	case len(w.left) == 0:
		return false
	}
	m := w.left[0]
	w.left = w.left[1:]
	w.name, w.item = Value{raw: w.v.raw[m.key:m.value]}.Text(), m.at(w.v.raw)
	return true
}

// appendKey appends the key of the next item of a list.
func (w *walk) appendKey(e *evaluation, dst []byte) (_ []byte, ok bool) {
	if w.in == nil {
		dst, w.off, ok = e.appendNext(dst, w.v.raw, w.off, math.MaxInt)
		return dst, ok
	}
	if !w.next(e) {
		return dst, false
	}
	return e.appendKey(dst, w.item, math.MaxInt)
}

// Values are values that others are compared with, by their keys.
type Values struct {
	all     []Value // in the order of the schema
	keys    map[string]bool
	longest int // key
	bytes   int // longest encoding, with whole floats as integers
}

// NewValues makes a set of values. The values must nest no deeper than abi allows.
func NewValues(all ...Value) *Values {
	s := &Values{all: all, keys: make(map[string]bool, len(all))}
	for _, v := range all {
		e := &evaluation{}
		key, _ := e.appendKey(nil, v, math.MaxInt)
		s.keys[string(key)] = true
		s.longest = max(s.longest, len(key))
		s.bytes = max(s.bytes, e.keyed)
	}
	return s
}

// has tells whether a value is one of them.
func (s *Values) has(e *evaluation, c Value) bool {
	most := s.longest
	if c.tree != nil {
		// A number takes at most three times the bytes of its shortest equal (1.0 is
		// f9 3c00): what is longer is not one of them.
		if most = math.MaxInt; c.tree.Bytes() > 3*s.bytes {
			return false
		}
	}
	var ok bool
	e.key, ok = e.appendKey(e.key[:0], c, most)
	return ok && s.keys[string(e.key)]
}

// keyKinds are the first bytes of keys, by kind.
const keyKinds = "nftiudysbao"

// appendKey appends bytes that are equal for equal values. It gives up, and answers
// false, when there are more than most of them, or the meter ends.
func (e *evaluation) appendKey(dst []byte, c Value, most int) ([]byte, bool) {
	dst, ok := e.appendOwn(dst, c, most)
	if c.kind < kindList {
		return dst, ok
	}
	if c.tree != nil {
		for in := c.tree.Walk(); ok; {
			name, v, more := in.Next()
			if !more {
				break
			}
			if c.kind == kindObject {
				dst = e.appendText(dst, kindText, name)
			}
			dst, ok = e.appendKey(dst, v, most)
		}
		return dst, ok
	}
	items := c.bits
	if c.kind == kindObject {
		items *= 2
	}
	for off := 0; items > 0 && ok; items-- {
		dst, off, ok = e.appendNext(dst, c.raw, off, most)
	}
	return dst, ok
}

func (e *evaluation) appendText(dst []byte, k kind, text string) []byte {
	e.keyed += cbor.Size(uint64(len(text))) + len(text)
	return append(binary.AppendUvarint(append(dst, keyKinds[k]), uint64(len(text))), text...)
}

// appendNext is appendKey for the item at off; next is behind it.
func (e *evaluation) appendNext(dst, b []byte, off, most int) (_ []byte, next int, ok bool) {
	c, next := readItem(b, off)
	dst, ok = e.appendOwn(dst, c, most)
	if c.kind < kindList {
		return dst, next, ok
	}
	items := c.bits
	if c.kind == kindObject {
		items *= 2
	}
	for ; items > 0 && ok; items-- {
		dst, next, ok = e.appendNext(dst, b, next, most)
	}
	return dst, next, ok
}

// appendOwn appends what a value has in its key before what is in it.
func (e *evaluation) appendOwn(dst []byte, c Value, most int) ([]byte, bool) {
	size := len(c.raw)
	switch c.kind {
	case kindInt, kindUint, kindFloat:
		size = 8
	case kindList, kindObject:
		size = 0
	}
	n := size
	if c.kind >= kindList {
		n = c.count()
	} else if c.tree != nil {
		size = c.tree.Bytes()
	}
	if n > most-len(dst) || !e.charge(hashUnits+work.Bytes(size, hashBytes)) {
		return dst, false
	}
	c = whole(c)
	switch c.kind {
	case kindInt, kindUint, kindFloat:
		e.keyed += c.numberSize()
		dst = binary.BigEndian.AppendUint64(append(dst, keyKinds[c.kind], 8), c.bits)
	case kindBytes, kindText, kindBlob:
		dst = e.appendText(dst, c.kind, c.Text())
	default:
		e.keyed += cbor.Size(c.bits)
		dst = binary.AppendUvarint(append(dst, keyKinds[c.kind]), uint64(n))
	}
	return dst, len(dst) <= most
}
