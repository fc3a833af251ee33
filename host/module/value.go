package module

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// kind says what a cursor stands on.
type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindInt   // an integer in the range of int64
	kindUint  // a larger one
	kindFloat // in float64
	kindText
	kindBlob
	kindList
	kindObject
)

// cursor stands on a value within its encoding. Nothing is made of a value to look at
// it: what is in a list or an object is read when it is visited.
type cursor struct {
	kind kind
	bits uint64 // of a number; items of a list, members of an object
	// raw is the content of a text or byte string, the items of a list, the keys and
	// values of an object.
	raw []byte
	// places are those of an object's members, once they were asked for. All cursors on
	// the object share them.
	places *places
}

// count is how many items a list has, or members an object.
func (c cursor) count() int { return int(c.bits) }

// places are where the members of an object lie, in the order of its encoding: shorter
// keys first, equally long ones by their bytes.
type places struct {
	all  []place
	full bool
}

// place is a member of an object: raw[key:value] is its key's content, raw[value:end]
// its value. The member begins where the one before it ends.
type place struct{ key, value, end uint32 }

// at gives a cursor on the member's value.
func (m place) at(raw []byte) cursor {
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
func inJSON(b []byte) cursor {
	size := base64.StdEncoding.EncodedLen(len(b))
	raw := cbor.AppendText(make([]byte, 0, size+len(bytesKey)+10), bytesKey)
	raw = cbor.AppendHead(raw, cbor.Text, uint64(size))
	return cursor{kind: kindObject, bits: 1, raw: base64.StdEncoding.AppendEncode(raw, b)}
}

// errNoValue is the error of bytes that are no deterministic encoding of a
// value. Bodies have been checked before they come here.
var errNoValue = errors.New("not a value in deterministic encoding")

// view checks an encoded value and gives a cursor on it. The result refers to raw. The
// error is errNoValue or that of the meter.
func view(m *work.Meter, raw abi.Raw) (cursor, error) {
	d := viewer{b: raw, meter: m}
	d.value(abi.MaxMessageDepth)
	if err := m.Err(); err != nil {
		return cursor{}, err
	}
	if d.failed || d.off != len(raw) || len(raw) > math.MaxUint32 {
		return cursor{}, errNoValue
	}
	return onto(raw), nil
}

// onto gives a cursor on a value that has been checked.
func onto(raw abi.Raw) cursor {
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

// readItem gives a cursor on the item at off of a checked encoding. next is behind the
// item, but for a list or an object: there it is where the content begins, which the
// cursor does not have yet.
func readItem(b []byte, off int) (c cursor, next int) {
	initial := b[off]
	arg, next := cbor.Head(b, off)
	switch major := cbor.Major(initial); major {
	case cbor.Uint:
		if arg > math.MaxInt64 {
			return cursor{kind: kindUint, bits: arg}, next
		}
		return cursor{kind: kindInt, bits: arg}, next
	case cbor.Nint:
		return cursor{kind: kindInt, bits: ^arg}, next
	case cbor.Bytes, cbor.Text:
		end := next + int(arg)
		return cursor{kind: kindBlob - kind(major-cbor.Bytes), raw: b[next:end:end]}, end
	case cbor.Array, cbor.Map:
		return cursor{kind: kindList + kind(major-cbor.Array), bits: arg}, next
	}
	switch initial {
	case cbor.False:
		return cursor{kind: kindFalse}, next
	case cbor.True:
		return cursor{kind: kindTrue}, next
	case cbor.Null:
		return cursor{}, next
	}
	return float(cbor.Float(initial, arg)), next
}

func float(f float64) cursor { return cursor{kind: kindFloat, bits: math.Float64bits(f)} }

// float is the number that a cursor of kindFloat stands on.
func (c cursor) float() float64 { return math.Float64frombits(c.bits) }

// whole gives a whole float as the integer that it is, if it is in range.
func whole(c cursor) cursor {
	if c.kind != kindFloat {
		return c
	}
	switch f := c.float(); {
	case f != math.Trunc(f):
	case f >= math.MinInt64 && f < -math.MinInt64:
		return cursor{kind: kindInt, bits: uint64(int64(f))}
	case f > 0 && f < 2*-math.MinInt64:
		return cursor{kind: kindUint, bits: uint64(f)}
	}
	return c
}

// read gives a cursor on the item at off, and where the next one begins; false: the
// meter has ended.
func (e *evaluation) read(b []byte, off int) (c cursor, next int, ok bool) {
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
func (e *evaluation) members(c cursor) (*places, bool) {
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

// values are values that others are compared with, by their keys.
type values struct {
	all     []cursor // in the order of the schema
	keys    map[string]bool
	longest int // key
}

func (s *values) add(c cursor) {
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	key, _ := (&evaluation{}).appendKey(nil, c, math.MaxInt)
	s.all = append(s.all, c)
	s.keys[string(key)] = true
	s.longest = max(s.longest, len(key))
}

// has tells whether a value is one of them.
func (s *values) has(e *evaluation, c cursor) bool {
	var ok bool
	e.key, ok = e.appendKey(e.key[:0], c, s.longest)
	return ok && s.keys[string(e.key)]
}

// keyKinds are the first bytes of keys, by kind.
const keyKinds = "nftiudsbao"

// appendKey appends bytes that are equal for equal values. It gives up, and answers
// false, when there are more than most of them, or the meter ends.
func (e *evaluation) appendKey(dst []byte, c cursor, most int) ([]byte, bool) {
	dst, ok := e.appendOwn(dst, c, most)
	items := c.bits
	switch c.kind {
	case kindList:
	case kindObject:
		items *= 2
	default:
		return dst, ok
	}
	for off := 0; items > 0 && ok; items-- {
		dst, off, ok = e.appendNext(dst, c.raw, off, most)
	}
	return dst, ok
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
func (e *evaluation) appendOwn(dst []byte, c cursor, most int) ([]byte, bool) {
	c = whole(c)
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
	}
	if n > most-len(dst) || !e.charge(hashUnits+work.Bytes(size, hashBytes)) {
		return dst, false
	}
	dst = binary.AppendUvarint(append(dst, keyKinds[c.kind]), uint64(n))
	switch c.kind {
	case kindInt, kindUint, kindFloat:
		dst = binary.BigEndian.AppendUint64(dst, c.bits)
	case kindText, kindBlob:
		dst = append(dst, c.raw...)
	}
	return dst, len(dst) <= most
}
