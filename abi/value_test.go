package abi_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

// randomValue returns a value of DecodeValue's Go types.
func randomValue(rng *rand.Rand, depth int) any {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch rng.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return rng.IntN(2) == 0
	case 2:
		return int64(rng.Uint64() >> rng.IntN(64))
	case 3:
		return uint64(1<<63) | rng.Uint64()
	case 4:
		return math.Ldexp(rng.Float64()-0.5, rng.IntN(200)-100)
	case 5:
		return strings.Repeat(string(rune(rng.IntN(0xd7ff))), rng.IntN(30))
	case 6:
		return append([]byte{}, strings.Repeat("\xff", rng.IntN(30))...)
	case 7:
		return repeated(rng.IntN(6), func(int) any { return randomValue(rng, depth-1) })
	default:
		m := object{}
		for range rng.IntN(30) {
			m[strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(4))] = randomValue(rng, depth-1)
		}
		return m
	}
}

func TestRandomValuesRoundTrip(t *testing.T) {
	rng := seeded(t)
	for range 2000 {
		v := randomValue(rng, 5)
		r, err := abi.EncodeValue(v)
		if err != nil {
			t.Fatalf("%#v: %v", v, err)
		}
		if back, err := abi.DecodeValue(r); err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("%#v came back as %#v (%v)", v, back, err)
		}
		loose := loosen(rng, r)
		if c, err := abi.Canonical(loose, abi.MaxValueDepth); err != nil || !bytes.Equal(c, r) {
			t.Fatalf("%x became\n%x, want\n%x (%v)", loose, c, r, err)
		}
		j, err := abi.ToJSON(r)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := abi.FromJSON(j); err != nil || !bytes.Equal(c, r) {
			t.Fatalf("%s became\n%x, want\n%x (%v)", j, c, r, err)
		}
		// The general library agrees about what is well-formed, and in which order.
		var other any
		if err := reference.Unmarshal(r, &other); err != nil {
			t.Fatalf("%x: %v", r, err)
		}
	}
}

func TestEncodeValueTypes(t *testing.T) {
	inner := mustValue(object{"b": 1, "a": 2})
	for _, c := range []struct {
		value any
		want  string
	}{
		{7, "7"}, {-7, "-7"}, {int64(7), "7"}, {uint64(7), "7"}, {7.0, "7.0"},
		{abi.Raw(nil), "null"}, {inner, `{"a": 2, "b": 1}`},
		{[]any(nil), "[]"}, {[]string(nil), "[]"}, {[]byte(nil), "h''"}, {map[string]any(nil), "{}"},
		{[]string{"b", "a"}, `["b", "a"]`},
		{[]abi.Raw{inner, nil}, `[{"a": 2, "b": 1}, null]`},
		{map[string]string{"bb": "1", "a": "2", "c": "3"}, `{"a": "2", "c": "3", "bb": "1"}`},
		{map[string]abi.Raw{"x": inner, "": abi.Null}, `{"": null, "x": {"a": 2, "b": 1}}`},
		{abi.Raw(unhex(t, "a2 6162 1801 6161 02")), `{"a": 2, "b": 1}`},
	} {
		r, err := abi.EncodeValue(c.value)
		if err != nil || abi.Diag(r) != c.want {
			t.Errorf("%#v: %s, want %s (%v)", c.value, abi.Diag(r), c.want, err)
		}
	}
}

func TestEncodeValueRefuses(t *testing.T) {
	cyclic := object{}
	cyclic["self"] = cyclic
	for _, c := range []struct {
		value any
		want  string
	}{
		{math.NaN(), "NaN and infinities are not allowed"},
		{object{"a": list{math.Inf(-1)}}, "a.0: NaN"},
		{struct{}{}, "a struct {} is not a value"},
		{object{"n": float32(1)}, "n: a float32 is not a value"},
		{list{1, "\xff"}, "1: text is not valid UTF-8"},
		{object{"\xff": 1}, `"\xff": text is not valid UTF-8`},
		{map[string]string{"k": "\xff"}, "k: text is not valid UTF-8"},
		{object{"$bytes": "AA=="}, `a map whose only key is "$bytes"`},
		{nest(1, abi.MaxValueDepth+1), "nested too deep"},
		{cyclic, "self.self: nested too deep"},
		{list{abi.Raw{}}, "0: unexpected end of data"},
		{list{abi.Raw{0x01, 0x02}}, "0: trailing data"},
		{list{abi.Raw{0x82, 0x01}}, "0: unexpected end of data"},
		{list{abi.Raw(unhex(t, "a3 6162 01 6161 02 6162 03"))}, "0.b: duplicate key"},
		{nest(mustValue(nest(1, 10)), abi.MaxValueDepth-9), "nested too deep"},
	} {
		_, err := abi.EncodeValue(c.value)
		var fault *abi.DataError
		if !errors.As(err, &fault) || fault.Offset != -1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q without an offset", c.value, err, c.want)
		}
	}
}

func TestDecodedValuesAreCopies(t *testing.T) {
	r := mustValue(object{"blob": []byte("abc"), "text": "abc"})
	v, err := abi.DecodeValue(r)
	if err != nil {
		t.Fatal(err)
	}
	clear(r)
	if want := (object{"blob": []byte("abc"), "text": "abc"}); !reflect.DeepEqual(v, want) {
		t.Errorf("%v", v)
	}
}
