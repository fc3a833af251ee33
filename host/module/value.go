package module

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/work"
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

// view decodes an encoded value. The result refers to raw. The error is errNoValue or
// that of the meter.
func view(m *work.Meter, raw abi.Raw) (any, error) {
	d := viewer{b: raw, meter: m}
	v := d.value(abi.MaxMessageDepth)
	if err := m.Err(); err != nil {
		return nil, err
	}
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
	meter  *work.Meter
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
	if d.meter.Spend(decodeUnits) != nil {
		return d.fail()
	}
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
	if d.meter.Spend(work.Bytes(16*int(n), 1)) != nil { // the memory that it takes
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
	if d.meter.Spend(work.Bytes(48*int(n), 1)) != nil {
		return d.fail()
	}
	o := make(object, 0, n)
	for ; n > 0 && !d.failed; n-- {
		start := d.off
		major, _, size := d.head()
		if major != 3 {
			return d.fail()
		}
		in := d.take(size)
		if d.meter.Spend(work.Bytes(len(in), decodeBytes)) != nil {
			return d.fail()
		}
		key := string(in)
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

// values are values that others are compared with, by their keys.
type values struct {
	all     []any // views, in the order of the schema
	keys    map[string]bool
	longest int // key
}

func (s *values) add(v any) {
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	key, _ := (&evaluation{}).appendKey(nil, v, math.MaxInt)
	s.all = append(s.all, v)
	s.keys[string(key)] = true
	s.longest = max(s.longest, len(key))
}

// has tells whether a value is one of them.
func (s *values) has(e *evaluation, v any) bool {
	key, ok := e.appendKey(nil, v, s.longest)
	return ok && s.keys[string(key)]
}

// appendKey appends bytes that are equal for equal values. It gives up, and answers
// false, when there are more than most of them, or the meter ends.
func (e *evaluation) appendKey(dst []byte, v any, most int) ([]byte, bool) {
	if f, ok := v.(float64); ok {
		v = whole(f)
	}
	var payload []byte
	kind, n := byte(0), 0
	switch v := v.(type) {
	case nil:
		kind = 'n'
	case bool:
		kind = 'f'
		if v {
			kind = 't'
		}
	case int64:
		kind, payload = 'i', binary.BigEndian.AppendUint64(nil, uint64(v))
	case uint64:
		kind, payload = 'u', binary.BigEndian.AppendUint64(nil, v)
	case float64:
		kind, payload = 'd', binary.BigEndian.AppendUint64(nil, math.Float64bits(v))
	case text:
		kind, payload = 's', v
	case blob:
		kind, payload = 'b', v
	case []any:
		kind, n = 'a', len(v)
	case object:
		kind, n = 'o', len(v)
	}
	n += len(payload)
	if n > most-len(dst) || !e.charge(hashUnits+work.Bytes(len(payload), hashBytes)) {
		return dst, false
	}
	dst = append(binary.AppendUvarint(append(dst, kind), uint64(n)), payload...)
	ok := true
	switch v := v.(type) {
	case []any:
		for i := 0; i < len(v) && ok; i++ {
			dst, ok = e.appendKey(dst, v[i], most)
		}
	case object:
		for i := 0; i < len(v) && ok; i++ {
			if dst, ok = e.appendKey(dst, text(v[i].key), most); ok {
				dst, ok = e.appendKey(dst, v[i].value, most)
			}
		}
	}
	return dst, ok && len(dst) <= most
}
