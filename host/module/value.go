package module

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
)

// A view is a decoded value that shares the bytes of its encoding: nothing
// large is copied to look at it. It is nil, bool, int64, uint64 (above
// math.MaxInt64 only), float64, text, blob, []any or object.
type (
	text []byte
	blob []byte
	// object is a map in the order of its encoding: shorter keys first, equally
	// long ones by their bytes.
	object []member
)

// member is an entry of an object; b[start:end] of the encoding is its key and
// value.
type member struct {
	key        string
	value      any
	start, end int
}

// get finds the value of a key.
func (o object) get(key string) (any, bool) {
	i, found := slices.BinarySearchFunc(o, key, func(m member, key string) int {
		return cmp.Or(cmp.Compare(len(m.key), len(key)), strings.Compare(m.key, key))
	})
	if !found {
		return nil, false
	}
	return o[i].value, true
}

// bytesKey is the key of the map that a byte string is in JSON.
const bytesKey = "$bytes"

// asObject gives the object that a value is in JSON.
func asObject(v any) (object, bool) {
	switch v := v.(type) {
	case object:
		return v, true
	case blob:
		return object{{key: bytesKey, value: text(base64.StdEncoding.AppendEncode(nil, v))}}, true
	}
	return nil, false
}

// errNoValue is the error of bytes that are no deterministic encoding of a
// value. Bodies have been checked before they come here.
var errNoValue = errors.New("not a value in deterministic encoding")

// view decodes an encoded value. The result refers to raw.
func view(raw abi.Raw) (any, error) {
	d := viewer{b: raw}
	v := d.value(abi.MaxMessageDepth)
	if d.failed || d.off != len(raw) {
		return nil, errNoValue
	}
	return v, nil
}

// viewer decodes; after a failure it gives nil.
type viewer struct {
	b      []byte
	off    int
	failed bool
}

func (d *viewer) fail() any {
	d.failed, d.off = true, len(d.b)
	return nil
}

// head reads the head of an item: its major type, additional information and
// argument.
func (d *viewer) head() (major, info byte, arg uint64) {
	if d.off >= len(d.b) {
		d.fail()
		return 0, 0, 0
	}
	major, info = d.b[d.off]>>5, d.b[d.off]&0x1f
	d.off++
	if info < 24 {
		return major, info, uint64(info)
	}
	size := 1 << (info - 24)
	if info > 27 || len(d.b)-d.off < size {
		d.fail()
		return 0, 0, 0
	}
	var wide [8]byte
	copy(wide[8-size:], d.b[d.off:d.off+size])
	d.off += size
	return major, info, binary.BigEndian.Uint64(wide[:])
}

// take gives the next n bytes.
func (d *viewer) take(n uint64) []byte {
	if n > uint64(len(d.b)-d.off) {
		d.fail()
		return nil
	}
	taken := d.b[d.off : d.off+int(n) : d.off+int(n)]
	d.off += int(n)
	return taken
}

func (d *viewer) value(depth int) any {
	major, info, arg := d.head()
	if d.failed || depth == 0 {
		return d.fail()
	}
	switch major {
	case 0:
		if arg > math.MaxInt64 {
			return arg
		}
		return int64(arg)
	case 1:
		if arg > math.MaxInt64 {
			return d.fail()
		}
		return -1 - int64(arg)
	case 2:
		return blob(d.take(arg))
	case 3:
		return text(d.take(arg))
	case 4:
		return d.list(arg, depth)
	case 5:
		return d.object(arg, depth)
	case 7:
		return d.simple(info, arg)
	}
	return d.fail()
}

// list decodes n items; each takes a byte at least.
func (d *viewer) list(n uint64, depth int) any {
	if n > uint64(len(d.b)-d.off) {
		return d.fail()
	}
	list := make([]any, 0, n)
	for ; n > 0 && !d.failed; n-- {
		list = append(list, d.value(depth-1))
	}
	return list
}

func (d *viewer) object(n uint64, depth int) any {
	if n > uint64(len(d.b)-d.off)/2 {
		return d.fail()
	}
	o := make(object, 0, n)
	for ; n > 0 && !d.failed; n-- {
		start := d.off
		major, _, size := d.head()
		if major != 3 {
			return d.fail()
		}
		key := string(d.take(size))
		o = append(o, member{key, d.value(depth - 1), start, d.off})
	}
	return o
}

// simple decodes false, true, null and floats.
func (d *viewer) simple(info byte, arg uint64) any {
	switch info {
	case 20, 21:
		return info == 21
	case 22:
		return nil
	case 25:
		return half(uint16(arg))
	case 26:
		return float64(math.Float32frombits(uint32(arg)))
	case 27:
		return math.Float64frombits(arg)
	}
	return d.fail()
}

// half reads a float of 16 bits (RFC 8949, appendix D).
func half(h uint16) float64 {
	exponent, mantissa := int(h>>10)&0x1f, float64(h&0x3ff)
	var f float64
	switch exponent {
	case 0:
		f = math.Ldexp(mantissa, -24)
	case 31:
		f = math.Inf(1)
		if mantissa != 0 {
			f = math.NaN()
		}
	default:
		f = math.Ldexp(mantissa+1024, exponent-25)
	}
	if h>>15 != 0 {
		return -f
	}
	return f
}

// equal compares two views as JSON Schema does: numbers by their value. It
// stops where they differ, and so takes no longer than the smaller one.
func equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case text:
		b, ok := b.(text)
		return ok && bytes.Equal(a, b)
	case blob:
		b, ok := b.(blob)
		return ok && bytes.Equal(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case object:
		b, ok := b.(object)
		return ok && slices.EqualFunc(a, b, func(a, b member) bool { return a.key == b.key && equal(a.value, b.value) })
	}
	return equalNumbers(a, b)
}

func equalNumbers(a, b any) bool {
	if f, ok := a.(float64); ok {
		a = whole(f)
	}
	if f, ok := b.(float64); ok {
		b = whole(f)
	}
	return a == b
}

// whole gives a whole float as the integer that it is, if it is in range.
func whole(f float64) any {
	switch {
	case f != math.Trunc(f):
	case f >= math.MinInt64 && f < -math.MinInt64:
		return int64(f)
	case f > 0 && f < 2*-math.MinInt64:
		return uint64(f)
	}
	return f
}

// appendKey appends bytes that are equal for equal values, to find duplicates.
func appendKey(dst []byte, v any) []byte {
	if f, ok := v.(float64); ok {
		v = whole(f)
	}
	sized := func(kind byte, n int) []byte {
		return binary.AppendUvarint(append(dst, kind), uint64(n))
	}
	switch v := v.(type) {
	case nil:
		return append(dst, 'n')
	case bool:
		if v {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, 'i'), uint64(v))
	case uint64:
		return binary.BigEndian.AppendUint64(append(dst, 'u'), v)
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(v))
	case text:
		return append(sized('s', len(v)), v...)
	case blob:
		return append(sized('b', len(v)), v...)
	case []any:
		dst = sized('a', len(v))
		for _, item := range v {
			dst = appendKey(dst, item)
		}
	case object:
		dst = sized('o', len(v))
		for _, m := range v {
			dst = append(binary.AppendUvarint(dst, uint64(len(m.key))), m.key...)
			dst = appendKey(dst, m.value)
		}
	}
	return dst
}
