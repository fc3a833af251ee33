package abi_test

import (
	"math"
	"strings"

	"github.com/weftrun/weft/abi"
)

// vector is one golden vector: what a file of testdata/abi decodes to. The
// name begins with the rule of abi.cddl.
type vector struct {
	name string
	want any
}

// mustValue encodes a Go value for a vector.
func mustValue(v any) abi.Raw {
	r, err := abi.EncodeValue(v)
	if err != nil {
		panic(err)
	}
	return r
}

type (
	list   = []any
	object = map[string]any
)

// nest wraps a value in n arrays and maps, alternately.
func nest(v any, n int) any {
	for i := range n {
		if i%2 == 0 {
			v = list{v}
		} else {
			v = object{"k": v}
		}
	}
	return v
}

func repeated(n int, item func(i int) any) list {
	l := make(list, n)
	for i := range l {
		l[i] = item(i)
	}
	return l
}

func numbered(n int) object {
	m := make(object, n)
	for i := range n {
		m[strings.Repeat("k", i%3+1)+string(rune('a'+i))] = int64(i)
	}
	return m
}

var valueVectors = []vector{
	{"value-null", nil},
	{"value-false", false},
	{"value-true", true},
	{"value-int-zero", int64(0)},
	{"value-int-max", uint64(math.MaxUint64)},
	{"value-int-min", int64(math.MinInt64)},
	{"value-ints", list{
		int64(1), int64(23), int64(24), int64(255), int64(256), int64(65535), int64(65536),
		int64(math.MaxUint32), int64(math.MaxUint32 + 1), int64(1<<53 + 1), int64(math.MaxInt64), uint64(1 << 63),
		int64(-1), int64(-24), int64(-25), int64(-256), int64(-257), int64(-65536), int64(-65537),
		int64(-1 << 32), int64(-1<<32 - 1),
	}},
	{"value-float-one", 1.0},
	{"value-floats", list{
		0.0, math.Copysign(0, -1), 1.5, -4.0, 100000.0, 0.1, 1.0 / 3, 1e300, -1e-300, 3.0,
		123456789.0, 2.5e-5, 1e21, 1e-7, 9007199254740993.0,
	}},
	{"value-floats-half", list{
		65504.0, 65472.0, math.Ldexp(1, -14), math.Ldexp(1, -24), math.Ldexp(1023, -24), -math.Ldexp(3, -24),
	}},
	{"value-floats-single", list{
		65505.0, 65536.0, math.Ldexp(1, -25), math.MaxFloat32, math.SmallestNonzeroFloat32, 16777216.0, 3.4028234663852886e38,
	}},
	{"value-floats-double", list{
		1.1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Ldexp(1, -150), 16777217.0, math.MaxFloat32 * 2,
	}},
	{"value-text-empty", ""},
	{"value-text-unicode", "zażółć 漢字 😀 \u0000\u0001\u001f\"\\/<>&\u007f\u0085\u2028\u2029\ufffd\U0010ffff\r\n\t\b\f"},
	{"value-text-23", strings.Repeat("x", 23)},
	{"value-text-24", strings.Repeat("x", 24)},
	{"value-text-256", strings.Repeat("é", 128)},
	{"value-bytes-empty", []byte{}},
	{"value-bytes", []byte{0, 1, 0x7f, 0x80, 0xff}},
	{"value-bytes-nested", object{"data": list{[]byte("a"), []byte("ab"), []byte("abc")}}},
	{"value-list-empty", list{}},
	{"value-list-mixed", list{nil, true, int64(1), 1.0, "1", []byte("1"), list{}, object{}}},
	{"value-list-24", repeated(24, func(i int) any { return int64(i) })},
	{"value-list-256", repeated(256, func(i int) any { return i%2 == 0 })},
	{"value-map-empty", object{}},
	{"value-map-order", object{
		"": int64(0), "b": int64(1), "aa": int64(2), "z": int64(3), "ab": int64(4), "é": int64(5), "B": int64(6), "aaa": int64(7),
	}},
	{"value-map-24", numbered(24)},
	{"value-map-long-key", object{strings.Repeat("k", 24): int64(1), strings.Repeat("k", 300): int64(2), "k": int64(3)}},
	{"value-map-dollar", object{"$bytes": "not alone", "other": int64(1)}},
	{"value-map-nested", object{"b": object{"y": list{object{"q": int64(1), "p": int64(2)}}, "x": nil}, "a": object{}}},
	{"value-depth-64", nest(int64(1), abi.MaxValueDepth)},
	{"value-state", object{
		"questions":     list{object{"q": "Capital of France?", "a": "Paris"}},
		"current_index": int64(1), "score": int64(1), "percentage": 100.0,
	}},
	// Responses that are no message of their own.
	{"value-collect-events-response", list{list{"AEvent", object{"result": "A"}, int64(3)}, list{"BEvent", object{}}}},
	{"value-state-edit-response", list{nil, true, int64(3), 1.5}},
}
