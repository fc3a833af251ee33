package cbor

import (
	"math"
	"strconv"
)

// MaxDepth is how deep items may nest: the ABI's bound for whole messages.
const MaxDepth = 72

// Decoder reads items one after the other. It never panics on hostile input: it records
// the first fault, every later read returns zero values, and Err returns the fault.
//
// Text and bytes share the memory of the input, which must not change while any of them
// is in use.
type Decoder struct {
	data  []byte
	off   int
	depth int
	path  string
	err   error
}

// NewDecoder reads from data.
func NewDecoder(data []byte) *Decoder { return &Decoder{data: data} }

// Error says where and why an input is invalid.
type Error struct {
	Path   string // of the value, dotted, as far as known
	Offset int    // of the item, in bytes
	Reason string
}

func (e *Error) Error() string {
	where := "at byte " + strconv.Itoa(e.Offset)
	if e.Path != "" {
		where = e.Path + " (" + where + ")"
	}
	return where + ": " + e.Reason
}

// Err returns the first fault, or nil.
func (d *Decoder) Err() error {
	if e, ok := d.err.(*Error); ok {
		e.Path = d.path
	}
	return d.err
}

// Failed reports whether a read has failed.
func (d *Decoder) Failed() bool { return d.err != nil }

// Fail records a fault of the item at the given offset, unless a fault is recorded
// already.
func (d *Decoder) Fail(offset int, reason string) {
	if d.err == nil {
		d.err = &Error{Offset: offset, Reason: reason}
		d.off = len(d.data)
	}
}

// Within prepends a name to the fault's path. Callers do so when they return, so that a
// path costs nothing unless there is a fault.
func (d *Decoder) Within(name string) {
	if d.path == "" {
		d.path = name
	} else {
		d.path = name + "." + d.path
	}
}

// Offset returns where the next item begins.
func (d *Decoder) Offset() int { return d.off }

// End fails if input is left.
func (d *Decoder) End() {
	if d.off < len(d.data) {
		d.Fail(d.off, "more data than the one item expected")
	}
}

// Peek returns the next item's initial byte, or 0xff (never a valid one) at the end.
func (d *Decoder) Peek() byte {
	if d.off >= len(d.data) {
		return 0xff
	}
	return d.data[d.off]
}

// head reads an item's head.
func (d *Decoder) head() (initial byte, arg uint64) {
	if d.off >= len(d.data) {
		d.Fail(d.off, "the data end too early")
		return 0xff, 0
	}
	start := d.off
	initial = d.data[start]
	info := initial & 0x1f
	d.off++
	if info < 24 {
		return initial, uint64(info)
	}
	if info > 27 {
		d.Fail(start, "an indefinite length or a reserved head")
		return 0xff, 0
	}
	n := 1 << (info - 24)
	if len(d.data)-d.off < n {
		d.Fail(start, "the data end too early")
		return 0xff, 0
	}
	for _, c := range d.data[d.off : d.off+n] {
		arg = arg<<8 | uint64(c)
	}
	d.off += n
	return initial, arg
}

// Describe names the kind of an item by its initial byte, for messages.
func Describe(initial byte) string {
	switch initial >> 5 {
	case MajorUint, MajorNegint:
		return "an integer"
	case MajorBytes:
		return "bytes"
	case MajorText:
		return "text"
	case MajorArray:
		return "a list"
	case MajorMap:
		return "a map"
	case MajorTag:
		return "a tag"
	}
	switch initial {
	case False, True:
		return "a bool"
	case Null:
		return "null"
	case 0xf9, 0xfa, 0xfb:
		return "a float"
	}
	return "an unknown item"
}

// mismatch records the fault "X where Y is expected".
func (d *Decoder) mismatch(start int, want string) {
	if start >= len(d.data) {
		d.Fail(start, "the data end too early")
		return
	}
	d.Fail(start, Describe(d.data[start])+" where "+want+" is expected")
}

// count reads a head of one major type whose argument is a count.
func (d *Decoder) count(major byte, want string) int {
	start := d.off
	if d.Peek()>>5 != major {
		d.mismatch(start, want)
		return 0
	}
	_, n := d.head()
	if n > uint64(len(d.data)-d.off) { // an element has at least one byte
		d.Fail(start, "a length beyond the end of the data")
		return 0
	}
	return int(n)
}

// Array reads an array's head: the number of its items.
func (d *Decoder) Array() int { return d.count(MajorArray, "a list") }

// Map reads a map's head: the number of its entries.
func (d *Decoder) Map() int { return d.count(MajorMap, "a map") }

// Text reads a text string.
func (d *Decoder) Text() string { return text(d.chunk(MajorText, "text")) }

// Bytes reads a byte string.
func (d *Decoder) Bytes() []byte { return d.chunk(MajorBytes, "bytes") }

func (d *Decoder) chunk(major byte, want string) []byte {
	n := d.count(major, want)
	b := d.data[d.off : d.off+n : d.off+n]
	d.off += n
	return b
}

// Bool reads true or false.
func (d *Decoder) Bool() bool {
	switch d.Peek() {
	case True, False:
		d.off++
		return d.data[d.off-1] == True
	}
	d.mismatch(d.off, "a bool")
	return false
}

// TryNull reads null if it is next.
func (d *Decoder) TryNull() bool {
	if d.Peek() != Null {
		return false
	}
	d.off++
	return true
}

// Int reads an integer, or a float without a fraction, within [min, max].
func (d *Decoder) Int(min, max int64) int64 {
	start := d.off
	var v int64
	switch d.Peek() >> 5 {
	case MajorUint, MajorNegint:
		initial, n := d.head()
		if n > math.MaxInt64 {
			d.Fail(start, "an integer beyond the range of its type")
			return 0
		}
		v = int64(n)
		if initial>>5 == MajorNegint {
			v = ^v
		}
	default:
		f := d.float("an integer")
		if f != math.Trunc(f) {
			d.Fail(start, "a fraction where an integer is expected")
			return 0
		}
		if f < -(1<<63) || f >= 1<<63 {
			d.Fail(start, "an integer beyond the range of its type")
			return 0
		}
		v = int64(f)
	}
	if v < min || v > max {
		d.Fail(start, "an integer beyond the range of its type")
		return 0
	}
	return v
}

// Uint reads a non-negative integer, or a float with such a value, up to max.
func (d *Decoder) Uint(max uint64) uint64 {
	start := d.off
	if d.Peek()>>5 != MajorUint {
		if max > math.MaxInt64 {
			max = math.MaxInt64
		}
		return uint64(d.Int(0, int64(max)))
	}
	_, n := d.head()
	if n > max {
		d.Fail(start, "an integer beyond the range of its type")
		return 0
	}
	return n
}

// Float reads a float or an integer.
func (d *Decoder) Float() float64 {
	switch d.Peek() >> 5 {
	case MajorUint:
		_, n := d.head()
		return float64(n)
	case MajorNegint:
		_, n := d.head()
		return -1 - float64(n)
	}
	return d.float("a number")
}

func (d *Decoder) float(want string) float64 {
	start := d.off
	var f float64
	switch d.Peek() {
	case 0xf9:
		_, n := d.head()
		f = fromHalf(uint16(n))
	case 0xfa:
		_, n := d.head()
		f = float64(math.Float32frombits(uint32(n)))
	case 0xfb:
		_, n := d.head()
		f = math.Float64frombits(n)
	default:
		d.mismatch(start, want)
		return 0
	}
	if f-f != 0 { // NaN and the infinities
		d.Fail(start, "a number that is not finite")
		return 0
	}
	return f
}

// Raw reads one item and returns its bytes.
func (d *Decoder) Raw() []byte {
	start := d.off
	d.Skip()
	if d.err != nil {
		return nil
	}
	return d.data[start:d.off:d.off]
}

// Skip reads one item and drops it.
func (d *Decoder) Skip() {
	start := d.off
	initial, n := d.head()
	if d.err != nil {
		return
	}
	major := initial >> 5
	if major >= MajorBytes && major <= MajorMap && n > uint64(len(d.data)-d.off) {
		d.Fail(start, "a length beyond the end of the data")
		return
	}
	switch major {
	case MajorBytes, MajorText:
		d.off += int(n)
	case MajorArray, MajorMap:
		if major == MajorMap {
			n *= 2
		}
		if !d.Enter(start) {
			return
		}
		for ; n > 0 && d.err == nil; n-- {
			d.Skip()
		}
		d.Leave()
	case MajorTag:
		d.mismatch(start, "plain data")
	case MajorSimple:
		switch initial {
		case False, True, Null, 0xf9, 0xfa, 0xfb:
		default:
			d.mismatch(start, "plain data")
		}
	}
}

// Enter goes one level deeper. It fails beyond MaxDepth. After a true result, the caller
// must call Leave.
func (d *Decoder) Enter(start int) bool {
	if d.depth >= MaxDepth {
		d.Fail(start, "values nest too deep")
		return false
	}
	d.depth++
	return true
}

// Leave goes one level up.
func (d *Decoder) Leave() { d.depth-- }

// Value reads any item: nil, bool, int64, uint64 (beyond int64), float64,
// string, []byte, []any or map[string]any.
func (d *Decoder) Value() any {
	start := d.off
	initial := d.Peek()
	switch initial >> 5 {
	case MajorUint:
		_, n := d.head()
		if n > math.MaxInt64 {
			return n
		}
		return int64(n)
	case MajorNegint:
		return d.Int(math.MinInt64, -1)
	case MajorBytes:
		return d.Bytes()
	case MajorText:
		return d.Text()
	case MajorArray:
		return d.list(start)
	case MajorMap:
		return d.dict(start)
	}
	switch initial {
	case Null:
		d.off++
		return nil
	case True, False:
		return d.Bool()
	}
	return d.float("plain data")
}

func (d *Decoder) list(start int) any {
	n := d.Array()
	if !d.Enter(start) {
		return nil
	}
	list := make([]any, 0, n)
	for ; n > 0 && d.err == nil; n-- {
		list = append(list, d.Value())
	}
	d.Leave()
	return list
}

func (d *Decoder) dict(start int) any {
	n := d.Map()
	if !d.Enter(start) {
		return nil
	}
	dict := make(map[string]any, n)
	for ; n > 0 && d.err == nil; n-- {
		key := d.Text()
		dict[key] = d.Value()
	}
	d.Leave()
	return dict
}
