package codec

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
)

type named string

type inner struct {
	X int
	Y *float64
}

type everything struct {
	Bool    bool
	Int     int
	Int8    int8
	Uint16  uint16
	Uint64  uint64
	Float   float64
	Single  float32
	Text    string
	Named   named
	Bytes   []byte
	Any     any
	List    []inner
	Texts   []string
	Nested  [][]int
	Ints    map[string]int
	Anys    map[string]any
	Structs map[named]inner
	Floats  map[string]float64
	Names   map[string]named
	Pointer *inner
	HTTPPort,
	UserID int
	Renamed int `weft:"other_name"`
	Skipped int `weft:"-"`
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	y := 0.1
	full := everything{
		Bool: true, Int: math.MinInt32, Int8: -128, Uint16: 65535, Uint64: math.MaxUint64, Float: 1e300, Single: 0.5,
		Text: "tëxt", Named: "n", Bytes: []byte{1, 2}, Any: []any{int64(1), nil, "x", map[string]any{"k": 1.5}},
		List: []inner{{X: 1}, {X: 2, Y: &y}}, Texts: []string{"a", ""}, Nested: [][]int{{1}, {}},
		Ints: map[string]int{"b": 1, "a": 2, "aa": 3}, Anys: map[string]any{"k": int64(1)},
		Structs: map[named]inner{"s": {X: 7}, "r": {X: 8}}, Floats: map[string]float64{"f": 2},
		Names: map[string]named{"n": "m"}, Pointer: &inner{X: 9}, HTTPPort: 80, UserID: 5, Renamed: 6,
	}
	b := encode(t, full)
	var back everything
	if err := Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(full, back) {
		t.Errorf("sent %+v\ngot  %+v", full, back)
	}
	if again := encode(t, back); !bytes.Equal(b, again) {
		t.Errorf("encodes as %x, then as %x", b, again)
	}
	var generic map[string]any
	if err := Unmarshal(b, &generic); err != nil {
		t.Fatal(err)
	}
	if again := encode(t, generic); !bytes.Equal(b, again) { // so the plan's order is the canonical one
		t.Errorf("as a map it encodes as %x, not %x", again, b)
	}
	for _, key := range []string{"http_port", "user_id", "other_name", "uint16"} {
		if _, ok := generic[key]; !ok {
			t.Errorf("no key %s", key)
		}
	}
}

func TestZeroValues(t *testing.T) {
	b := encode(t, everything{})
	var generic map[string]any
	if err := Unmarshal(b, &generic); err != nil {
		t.Fatal(err)
	}
	if _, ok := generic["pointer"]; ok {
		t.Error("a nil pointer is not left out")
	}
	for key, want := range map[string]any{"any": nil, "list": []any{}, "ints": map[string]any{}, "bytes": []byte{}, "float": 0.0} {
		if got := generic[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, want %#v", key, got, want)
		}
	}
}

func TestOptionalFields(t *testing.T) {
	type options struct {
		Limit int     `default:"10"`
		Rate  float64 `default:"0.25"`
		Mode  string  `default:"fast"`
		On    bool    `default:"true"`
		Note  string  `weft:"note,omitempty"`
		Many  []int   `weft:",omitempty"`
		Ptr   *int
		Any   any `weft:",omitempty"`
	}
	defaults := options{Limit: 10, Rate: 0.25, Mode: "fast", On: true}
	for data, want := range map[string]options{
		"a0":                     defaults,
		"a1646e6f7465f6":         defaults, // null is absent
		"a1656c696d6974f6":       defaults,
		"a1656c696d697400":       {Rate: 0.25, Mode: "fast", On: true},
		"a1626f6ef4":             {Limit: 10, Rate: 0.25, Mode: "fast"},
		"a26563726f6f6b01616100": defaults, // unknown keys are dropped
	} {
		var got options
		if err := Unmarshal(unhex(t, data), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", data, got, err, want)
		}
	}
	if got := hex.EncodeToString(encode(t, options{})); got != "a4626f6ef4646d6f6465606472617465f90000656c696d697400" {
		t.Errorf("empty options are %s", got)
	}
}

func TestMistypedFields(t *testing.T) {
	type item struct{ Index int8 }
	type order struct {
		Items []item
		Note  string `weft:",omitempty"`
	}
	for data, want := range map[string]string{
		"a1656974656d7381a165696e646578f93e00": "items.0.index (at byte 15): a fraction where an integer is expected",
		"a1656974656d7381a165696e6465781880":   "items.0.index (at byte 15): an integer beyond the range of its type",
		"a1656974656d7381a165696e646578f5":     "items.0.index (at byte 15): a bool where an integer is expected",
		"a1656974656d7381a165696e646578f6":     "items.0.index (at byte 15): null where an integer is expected",
		"a1656974656d7301":                     "items (at byte 7): an integer where a list is expected",
		"a1646e6f746501":                       "note (at byte 6): an integer where text is expected",
		"80":                                   "at byte 0: a list where a map is expected",
		"a000":                                 "at byte 1: more data than the one item expected",
	} {
		var got order
		if err := Unmarshal(unhex(t, data), &got); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", data, err, want)
		}
	}
	var whole item
	if err := Unmarshal(unhex(t, "a165696e646578f94200"), &whole); err != nil || whole.Index != 3 {
		t.Errorf("3.0 reads as %d (%v)", whole.Index, err)
	}
}

func TestExtra(t *testing.T) {
	type open struct {
		Extra
		B int
	}
	in := map[string]any{"a": int64(1), "b": int64(2), "ccc": "x", "bb": nil}
	var got open
	if err := Unmarshal(encode(t, in), &got); err != nil {
		t.Fatal(err)
	}
	want := open{B: 2, Extra: Extra{"a": int64(1), "ccc": "x", "bb": nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if !bytes.Equal(encode(t, got), encode(t, in)) {
		t.Error("the extra keys are not where they belong")
	}
	got.Extra["b"] = "shadowed"
	if !bytes.Equal(encode(t, got), encode(t, in)) {
		t.Error("an extra key is written over a declared one")
	}
}

func TestUndeclaredKeysAreKept(t *testing.T) {
	p, err := Of(reflect.TypeOf(inner{}))
	if err != nil {
		t.Fatal(err)
	}
	in := encode(t, map[string]any{"x": 1, "z": []any{1, 2}, "a": "b"})
	var v inner
	var rest map[string]Raw
	d := cbor.NewDecoder(in)
	p.DecodeStruct(d, unsafe.Pointer(&v), &rest)
	if d.Err() != nil || v.X != 1 || len(rest) != 2 {
		t.Fatalf("%+v, %v, %v", v, rest, d.Err())
	}
	var e Encoder
	p.EncodeStruct(&e, unsafe.Pointer(&v), rest)
	if !bytes.Equal(e.B, in) {
		t.Errorf("%x came back as %x", in, e.B)
	}
}

func TestTuple(t *testing.T) {
	type pair struct {
		Tuple
		Word string
		N    int
	}
	in := []pair{{Word: "z", N: 1}, {Word: "a", N: 2}}
	b := encode(t, in)
	if got := hex.EncodeToString(b); got != "8282617a0182616102" {
		t.Errorf("encodes as %s", got)
	}
	var back []pair
	if err := Unmarshal(b, &back); err != nil || !reflect.DeepEqual(in, back) {
		t.Errorf("got %+v (%v)", back, err)
	}
	if err := Unmarshal(unhex(t, "8183617a0102"), &back); err == nil || !strings.Contains(err.Error(), "a list of 3 where one of 2") {
		t.Error(err)
	}
}

func TestTypesThatCannotBeSent(t *testing.T) {
	type loop struct{ Self []loop }
	for _, test := range []struct {
		v    any
		want string
	}{
		{make(chan int), "cannot be sent"},
		{map[int]string{}, "use string keys"},
		{struct{ F func() }{}, "F: a func cannot be sent"},
		{struct {
			A int `weft:"x"`
			X int
		}{}, `two fields "x"`},
		{struct {
			A int `default:"ten"`
		}{}, "not an integer that the field's type can hold"},
		{struct {
			A int8 `default:"128"`
		}{}, "can hold"},
		{struct {
			A uint `default:"-1"`
		}{}, "can hold"},
		{struct {
			A bool `default:"1"`
		}{}, "true or false"},
		{struct {
			A []int `default:"1"`
		}{}, "only numbers, text and bools"},
		{struct {
			A int `weft:"a,omitzero"`
		}{}, "unknown tag option"},
		{math.NaN(), "NaN"},
		{[]float64{math.Inf(1)}, "infinite"},
		{map[string]float64{"x": math.Inf(-1)}, "infinite"},
	} {
		if _, err := Append(nil, test.v); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: error %v, want %q", test.v, err, test.want)
		}
	}
	if _, err := Append(nil, loop{[]loop{{}}}); err != nil {
		t.Errorf("a type that contains itself: %v", err)
	}
	type ring struct{ Next *ring }
	r := &ring{}
	r.Next = r
	if _, err := Append(nil, r); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("a cycle: %v", err)
	}
}

func TestLiterals(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-1": -1, "0.1": 0.1, "-2.50": -2.5, "123456789012345": 123456789012345, "0.000000000000001": 1e-15,
	} {
		p, err := Of(reflect.TypeOf(0.0))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.literal(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got float64
		if err := Unmarshal(r, &got); err != nil || got != want {
			t.Errorf("%s reads as %v (%v)", text, got, err)
		}
	}
	p, err := Of(reflect.TypeOf(int64(0)))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "-", ".", "1.", ".5", "1e3", "0x1", "1_0", "9223372036854775808", "-9223372036854775809", "99999999999999999999"} {
		if r, err := p.literal(text); err == nil {
			t.Errorf("%q is taken for an integer: %x", text, r)
		}
	}
	for text, want := range map[string]int64{"-9223372036854775808": math.MinInt64, "9223372036854775807": math.MaxInt64, "-0": 0} {
		var got int64
		r, err := p.literal(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if err := Unmarshal(r, &got); err != nil || got != want {
			t.Errorf("%s reads as %d (%v)", text, got, err)
		}
	}
}

func TestSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"Index": "index", "UserID": "user_id", "HTTPPort": "http_port", "ItemA1": "item_a1", "X": "x", "ID": "id",
		"CurrentIndex": "current_index", "Already_Snake": "already_snake", "Q": "q", "IsOK2Go": "is_ok2_go",
	} {
		if got := SnakeCase(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
