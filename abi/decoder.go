package abi

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weftrun/weft/abi/cbor"
)

// decoder reads a message front to back. It keeps the first error; after an error every
// read returns zero and does not advance, so that a reader is a plain list of the
// message's fields. Loops must check failed.
type decoder struct {
	scanner
	off  int
	room int // containers that may still open
	path []segment
	err  *DataError
}

// decoders keeps decoders with the memory of their paths.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// fieldSet names the keys of a map in a control message; the first ones are
// required.
type fieldSet struct {
	required int
	keys     []string
}

// decode runs a message's reader over the whole of b.
func decode[T any](b []byte, read func(*decoder) T) (T, error) {
	var none T
	lim := DefaultLimits.effective()
	d := decoders.Get().(*decoder)
	*d = decoder{scanner: newScanner(b, lim), room: lim.MaxDepth, path: d.path[:0]}
	defer func() {
		*d = decoder{path: d.path[:0]} // so that the pool does not keep a message alive
		decoders.Put(d)
	}()
	if err := d.size(); err != nil {
		return none, err
	}
	m := read(d)
	if d.off != len(b) {
		d.fail("", "trailing data")
	}
	if d.failed() {
		return none, d.err
	}
	return m, nil
}

func (d *decoder) failed() bool { return d.err != nil }

// fail records an error at the present offset, in the named field of the item being read.
func (d *decoder) fail(field, reason string) { d.failAt(d.off, field, reason) }

func (d *decoder) failAt(off int, field, reason string) {
	if d.err == nil {
		d.err = &DataError{Path: pathOf(d.path, field), Offset: off, Reason: reason}
	}
}

// check records a fault at the offset, if there is a fault.
func (d *decoder) check(off int, field, fault string) {
	if fault != "" {
		d.failAt(off, field, fault)
	}
}

// adopt records an error of the scanner below the named field.
func (d *decoder) adopt(field string, err *DataError) {
	if d.err == nil {
		if at := pathOf(d.path, field); at != "" {
			err = err.under(at)
		}
		d.err = err
	}
}

func (d *decoder) push(s segment) { d.path = append(d.path, s) }
func (d *decoder) pop()           { d.path = d.path[:len(d.path)-1] }

// peek returns the major type of the next item, and whether there is one.
func (d *decoder) peek() (major byte, ok bool) {
	if d.failed() || d.off >= len(d.b) {
		return 0, false
	}
	return cbor.Major(d.b[d.off]), true
}

func (d *decoder) next(major byte) bool {
	m, ok := d.peek()
	return ok && m == major
}

var majorNames = [...]string{
	cbor.Uint: "an unsigned integer", cbor.Nint: "a negative integer", cbor.Bytes: "a byte string",
	cbor.Text: "text", cbor.Array: "an array", cbor.Map: "a map", cbor.Tag: "a tag", cbor.Other: "a simple value",
}

// expected records that the next item has the wrong type.
func (d *decoder) expected(field, what string) {
	if d.failed() {
		return
	}
	major, ok := d.peek()
	if !ok {
		d.adopt(field, truncated(len(d.b)))
		return
	}
	d.fail(field, fmt.Sprintf("must be %s, not %s", what, majorNames[major]))
}

// readHead reads the head of an item of the major type.
func (d *decoder) readHead(field string, major byte) (uint64, bool) {
	if !d.next(major) {
		d.expected(field, majorNames[major])
		return 0, false
	}
	arg, next, err := d.head(d.off)
	if err != nil {
		d.adopt(field, err)
		return 0, false
	}
	d.off = next
	return arg, true
}

// open enters an array or map and returns its length. close must follow.
func (d *decoder) openItem(field string, major byte) int {
	start := d.off
	d.push(segment{name: field, index: -1})
	n, ok := d.readHead("", major)
	if !ok {
		return 0
	}
	elements := n
	if major == cbor.Map && n <= math.MaxInt64/2 {
		elements = 2 * n
	}
	if err := d.open(start, d.off, elements, d.room); err != nil {
		d.adopt("", err)
		return 0
	}
	d.room--
	return int(n)
}

// close leaves what openItem, array, list or fields entered.
func (d *decoder) close() {
	d.room++
	d.pop()
}

// array enters a positional array of least to most items.
func (d *decoder) array(field string, least, most int) int {
	start := d.off
	n := d.openItem(field, cbor.Array)
	switch {
	case d.failed():
	case n < least:
		d.failAt(start, "", tooFew(n, least))
	case n > most:
		d.failAt(start, "", tooMany(n, most))
	}
	return n
}

// list reads an array of at least least items of one kind.
func list[T any](d *decoder, field string, least int, item func(*decoder) T) []T {
	start := d.off
	n := d.openItem(field, cbor.Array)
	defer d.close()
	if !d.failed() && n < least {
		d.failAt(start, "", tooFew(n, least))
	}
	if n == 0 || d.failed() {
		return nil
	}
	const most = 256 // larger slices grow as items arrive
	all := make([]T, 0, min(n, most))
	for i := range n {
		d.push(segment{index: i})
		v := item(d)
		d.pop()
		if d.failed() {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// fields reads a map with the keys of the set, calling read for each value.
func (d *decoder) fields(field string, set fieldSet, read func(key string)) {
	start := d.off
	n := d.openItem(field, cbor.Map)
	defer d.close()
	var seen uint64
	for i := 0; i < n && !d.failed(); i++ {
		at := d.off
		key, next, err := d.key(d.off)
		if err != nil {
			d.adopt("", err)
			return
		}
		known := indexOf(set.keys, key)
		if known < 0 {
			d.failAt(at, "", fmt.Sprintf("unknown key %q: needs a newer weft", clip(string(key))))
			return
		}
		if seen&(1<<known) != 0 {
			d.adopt("", duplicateKey(key, at))
			return
		}
		seen |= 1 << known
		d.off = next
		read(set.keys[known])
	}
	for i := range set.required {
		if !d.failed() && seen&(1<<i) == 0 {
			d.failAt(start, set.keys[i], "is missing")
		}
	}
}

func indexOf(keys []string, key []byte) int {
	for i, k := range keys {
		if k == string(key) {
			return i
		}
	}
	return -1
}

// text reads text of any length.
func (d *decoder) text(field string) string {
	if !d.next(cbor.Text) {
		d.expected(field, "text")
		return ""
	}
	s, next, err := d.key(d.off)
	if err != nil {
		d.adopt(field, err)
		return ""
	}
	d.off = next
	return string(s)
}

// textOf reads text and checks it by a rule.
func (d *decoder) textOf(field string, fault func(string) string) string {
	at := d.off
	s := d.text(field)
	if !d.failed() {
		d.check(at, field, fault(s))
	}
	return s
}

func (d *decoder) name(field string) string         { return d.textOf(field, nameFault) }
func (d *decoder) typeName(field string) string     { return d.textOf(field, typeNameFault) }
func (d *decoder) workflowName(field string) string { return d.textOf(field, workflowNameFault) }
func (d *decoder) statePath(field string) string    { return d.textOf(field, pathFault) }

func (d *decoder) uint(field string) uint64 {
	v, _ := d.readHead(field, cbor.Uint)
	return v
}

func (d *decoder) uintOf(field string, fault func(uint64) string) uint64 {
	at := d.off
	v := d.uint(field)
	if !d.failed() {
		d.check(at, field, fault(v))
	}
	return v
}

// int reads an integer that fits in 64 bits with a sign.
func (d *decoder) int(field string) int64 {
	at := d.off
	negative := d.next(cbor.Nint)
	if !negative && !d.next(cbor.Uint) {
		d.expected(field, "an integer")
		return 0
	}
	v, _ := d.readHead(field, cbor.Major(d.b[d.off]))
	if v > math.MaxInt64 {
		d.failAt(at, field, "must be within 64 bits with a sign")
		return 0
	}
	if negative {
		return -1 - int64(v)
	}
	return int64(v)
}

// duration reads nanoseconds.
func (d *decoder) duration(field string) time.Duration {
	at := d.off
	v := d.uint(field)
	if v > math.MaxInt64 {
		d.failAt(at, field, "must be at most 2^63-1 nanoseconds")
		return 0
	}
	return time.Duration(v)
}

func (d *decoder) bool(field string) bool {
	if d.next(cbor.Other) && (d.b[d.off] == cbor.True || d.b[d.off] == cbor.False) {
		d.off++
		return d.b[d.off-1] == cbor.True
	}
	d.expected(field, "true or false")
	return false
}

// null reads null, if null comes next.
func (d *decoder) null() bool {
	if d.next(cbor.Other) && d.b[d.off] == cbor.Null {
		d.off++
		return true
	}
	return false
}

// float reads a float.
func (d *decoder) float(field string) float64 {
	if !d.next(cbor.Other) || d.b[d.off] < cbor.Float16 || d.b[d.off] > cbor.Float64 {
		d.expected(field, "a float")
		return 0
	}
	next, err := d.other(d.off)
	if err != nil {
		d.adopt(field, err)
		return 0
	}
	bits, _ := cbor.Head(d.b, d.off)
	f := cbor.Float(d.b[d.off], bits)
	d.off = next
	return f
}

// value reads any value and returns it in canonical form, sharing the message's memory if
// possible.
func (d *decoder) value(field string) Raw {
	if d.failed() {
		return nil
	}
	start := d.off
	d.loose, d.unsorted = false, false
	next, err := d.item(start, min(MaxValueDepth, d.room))
	if err != nil {
		d.adopt(field, err)
		return nil
	}
	d.off = next
	if d.canonical() {
		return d.b[start:next:next]
	}
	r, err := reencode(d.b[start:next])
	if err != nil {
		err.Offset += start
		d.adopt(field, err)
		return nil
	}
	return r
}

// mapValue reads a value that must be a map.
func (d *decoder) mapValue(field string) Raw {
	if !d.next(cbor.Map) {
		d.expected(field, "a map")
		return nil
	}
	return d.value(field)
}

// number reads a value that must be an integer or a float.
func (d *decoder) number(field string) Raw {
	float := d.next(cbor.Other) && d.b[d.off] >= cbor.Float16 && d.b[d.off] <= cbor.Float64
	if !float && !d.next(cbor.Uint) && !d.next(cbor.Nint) {
		d.expected(field, "a number")
		return nil
	}
	return d.value(field)
}
