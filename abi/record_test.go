package abi_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

// row has the shapes that journal rows have.
type row struct {
	_     struct{} `cbor:",toarray"`
	Kind  string
	Body  abi.Raw
	Event abi.Event
	Maybe *abi.Event
	Err   *abi.Error
	All   []abi.Event
	Raws  map[string]abi.Raw
	At    int64
}

// column has the shapes of a database column that may grow.
type column struct {
	Name  string   `cbor:"1,keyasint"`
	Value abi.Raw  `cbor:"2,keyasint,omitzero"`
	Tags  []string `cbor:"3,keyasint,omitempty"`
}

func TestRecordsRoundTrip(t *testing.T) {
	for _, want := range []row{
		{Kind: "full", Body: mustValue(object{"a": list{1, 1.0}}), Event: itemEvent(1), Maybe: new(itemEvent(2)), Err: &flakyErr,
			All: itemEvents(3), Raws: map[string]abi.Raw{"null": abi.Null, "none": nil}, At: math.MinInt64},
		{Kind: "sparse", Event: itemEvent(1)},
		{Kind: "deep", Body: mustValue(nest(1, abi.MaxValueDepth)), Event: itemEvent(1), All: []abi.Event{}},
	} {
		b, err := abi.Marshal(want)
		if err != nil {
			t.Fatalf("%s: %v", want.Kind, err)
		}
		var got row
		if err := abi.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", want.Kind, err)
		}
		clear(b) // nothing of the record may be left in got
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s came back as\n%#v, want\n%#v", want.Kind, got, want)
		}
	}
}

func TestRecordsWithKeys(t *testing.T) {
	b, err := abi.Marshal(column{Name: "n"})
	if err != nil || !bytes.Equal(b, unhex(t, "a1 01 616e")) {
		t.Errorf("%x (%v)", b, err)
	}
	want := column{Name: "n", Value: mustValue(2.0), Tags: []string{"x"}}
	if b, err = abi.Marshal(want); err != nil {
		t.Fatal(err)
	}
	var got column
	if err := abi.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v (%v)", got, err)
	}
}

func TestRecordsAreDeterministic(t *testing.T) {
	m := map[string]int{"b": 1, "a": 2, "cc": 3}
	want, err := abi.Marshal(m)
	if err != nil || abi.Diag(want) != `{"a": 2, "b": 1, "cc": 3}` {
		t.Fatalf("%s (%v)", abi.Diag(want), err)
	}
	for range 50 {
		if b, err := abi.Marshal(m); err != nil || !bytes.Equal(b, want) {
			t.Fatalf("%x, then %x (%v)", want, b, err)
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	for _, c := range []struct{ hex, want string }{
		{"a2 01 616e 04 00", "unknown field"},
		{"a2 01 616e 01 616d", "duplicate map key"},
		{"a1 01 c1 00", "tag"},
		{"a1 01 7f 616e ff", "indefinite"},
		{"a1 01 61ff", "UTF-8"},
		{"a1 02 f97e00", "NaN"},
		{"a1 02 a2 6161 01 6161 02", "a: duplicate key"},
		{"a1 02 a1 01 02", "a map key must be text"},
		{"a1 01 616e 00", "extraneous data"},
		{"a1 01", "EOF"},
		{"", "EOF"},
		{strings.Repeat("81", 200) + "00", "nested level"},
	} {
		var got column
		err := abi.Unmarshal(unhex(t, c.hex), &got)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.hex, err, c.want)
		}
	}
	var v any
	if err := abi.Unmarshal(make([]byte, abi.MaxRecord+1), &v); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%v", err)
	}
}

func TestMarshalRefuses(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{math.NaN(), "NaN"},
		{math.Inf(1), "infinity"},
		{abi.Event{}, "type: must be 1 to 256"},
		{[]abi.Raw{{0x82, 0x01}}, "EOF"},
		{make(chan int), "unsupported type"},
	} {
		if b, err := abi.Marshal(c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %x, %v, want %q", c.value, b, err, c.want)
		}
	}
}
