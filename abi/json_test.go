package abi_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFromJSON(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`null`, "null"},
		{" \t\r\n true \n", "true"},
		{`0`, "0"}, {`-0`, "0"}, {`-1`, "-1"},
		{`18446744073709551615`, "18446744073709551615"},
		{`-9223372036854775808`, "-9223372036854775808"},
		{`0.0`, "0.0"}, {`-0.0`, "-0.0"}, {`-0e5`, "-0.0"},
		{`1.0`, "1.0"}, {`1e2`, "100.0"}, {`1E+2`, "100.0"}, {`100e-2`, "1.0"},
		{`1e400e`, ""}, {`1e-999`, "0.0"}, {`9007199254740993`, "9007199254740993"},
		{`18446744073709551616.0`, "18446744073709552000.0"},
		{`[]`, "[]"}, {`[ ]`, "[]"}, {`{}`, "{}"}, {`{ }`, "{}"},
		{`[1,[2,[3]]]`, "[1, [2, [3]]]"},
		{`{"b":1,"a":2,"":3,"aa":4}`, `{"": 3, "a": 2, "b": 1, "aa": 4}`},
		{`{"b":{"y":1,"x":[{"q":0,"p":0}]},"a":{}}`, `{"a": {}, "b": {"x": [{"p": 0, "q": 0}], "y": 1}}`},
		{`"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\uDE00"`, `"\"\\/\b\f\n\r\t\u0000é😀"`},
		{`"\u0041b\u0063"`, `"Abc"`},
		{`{"\u0062":1,"a":2}`, `{"a": 2, "b": 1}`},
		{`{"$bytes":""}`, "h''"}, {`{"$bytes":"AP8="}`, "h'00ff'"}, {`{"\u0024bytes":"QQ\u003d="}`, "h'41'"},
		{`[{"$bytes":"AAEC"},{"$bytes":"AA==","x":1}]`, `[h'000102', {"x": 1, "$bytes": "AA=="}]`},
		{`{"z":{"$bytes":"AA=="},"y":{"b":0,"a":0}}`, `{"y": {"a": 0, "b": 0}, "z": h'00'}`},
	} {
		r, err := abi.FromJSON([]byte(c.json))
		if c.want == "" {
			if err == nil {
				t.Errorf("%s was accepted", c.json)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.json, err)
		} else if got := abi.Diag(r); got != c.want {
			t.Errorf("%s: %s, want %s", c.json, got, c.want)
		}
	}
}

func TestFromJSONRefuses(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for _, c := range []struct{ json, want string }{
		{``, "unexpected end of data (at byte 0)"},
		{`  `, "unexpected end of data (at byte 2)"},
		{`nul`, "not a JSON value"}, {`True`, "not a JSON value"}, {`nan`, "not a JSON value"},
		{`NaN`, "not a JSON value (at byte 0)"}, {`[Infinity]`, "0: not a JSON value (at byte 1)"}, {`-Infinity`, "expected a digit"},
		{`1 2`, "trailing data (at byte 2)"}, {`{}x`, "trailing data (at byte 2)"}, {"1\x00", "trailing data"},
		{"\xef\xbb\xbf1", "not a JSON value (at byte 0)"},
		{`01`, "leading zero"}, {`-01`, "leading zero"}, {`00`, "leading zero"}, {`01.5`, "leading zero"},
		{`+1`, "not a JSON value"}, {`.5`, "not a JSON value"}, {`1.`, "unexpected end"}, {`[1.]`, "expected a digit"},
		{`1e`, "unexpected end"}, {`[1e+]`, "expected a digit"}, {`-`, "unexpected end"}, {`0x10`, "trailing data"},
		{`1e999`, "number too large for a float"}, {`{"a":-1e999}`, "a: number too large for a float (at byte 5)"},
		{`18446744073709551616`, "integer outside"}, {`-9223372036854775809`, "integer outside"},
		{`{"a":{"b":[0,-99999999999999999999]}}`, "a.b.1: integer outside -2^63..2^64-1 (at byte 13)"},
		{`{"a":1,"a":2}`, "a: duplicate key (at byte 7)"}, {`{"a":1,"\u0061":2}`, "a: duplicate key (at byte 7)"},
		{`{"x":{"b":1,"a":2,"b":3}}`, "x.b: duplicate key (at byte 18)"},
		{`{"x":[{"a":0,"a":0}]}`, "x.0.a: duplicate key (at byte 13)"},
		{`{"$bytes":"AA==","$bytes":"AA=="}`, "$bytes: duplicate key"},
		{`"\ud83d"`, "lone surrogate in a string (at byte 1)"}, {`"\ude00\ud83d"`, "lone surrogate"},
		{`"\ud83d\u0041"`, "lone surrogate"}, {`"\ud83dx"`, "lone surrogate"}, {`{"\udfff":1}`, "lone surrogate"},
		{`"\ud83d\ud83d\ude00"`, "lone surrogate"},
		{"\"\xff\"", "not valid UTF-8"}, {"\"\xed\xa0\x80\"", "not valid UTF-8"}, {"\"\\n\xc3\"", "not valid UTF-8"},
		{"\"\xc3\\u0041\xa9\"", "not valid UTF-8"}, {"{\"\xc3\":1}", "not valid UTF-8"},
		{"\"a\nb\"", "control character in a string (at byte 2)"}, {"\"\x00\"", "control character"}, {"\"\\n\t\"", "control character"},
		{`"\x41"`, "unknown escape"}, {`"\u12g4"`, "expected four hexadecimal digits"}, {`"\u12`, "unexpected end"},
		{`"`, "unexpected end"}, {`"\`, "unexpected end"}, {`"abc`, "unexpected end"}, {`'a'`, "not a JSON value"},
		{`[1,]`, "not a JSON value (at byte 3)"}, {`[,1]`, "not a JSON value"}, {`[1 2]`, "expected , or ]"}, {`[1`, "unexpected end"}, {`[`, "unexpected end"},
		{`{"a":1,}`, "expected a key"}, {`{"a" 1}`, "a: expected : after a key"}, {`{"a":}`, "a: not a JSON value"}, {`{1:2}`, "expected a key"},
		{`{"a":1 "b":2}`, "expected , or }"}, {`{"a":1`, "unexpected end"}, {`{"a"`, "unexpected end"}, {`{`, "unexpected end"}, {`{a:1}`, "expected a key"},
		{`/**/1`, "not a JSON value"},
		{deep, "nested too deep (at byte 64)"},
		{strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "nested too deep (at byte 320)"},
		{strings.Repeat("[", 1_000_000), "nested too deep"},
		{strings.Repeat(`{"$bytes":`, 1_000_000), "nested too deep"},
		{`{"$bytes":1}`, `"$bytes" must hold a string of standard, padded base64`}, {`{"$bytes":null}`, "$bytes"},
		{`{"$bytes":{"$bytes":"AA=="}}`, "$bytes"}, {`{"$bytes":["AA=="]}`, "$bytes"},
		{`[{"$bytes":"AA="}]`, `0: "$bytes" must hold`}, {`{"$bytes":"AA"}`, "$bytes"}, {`{"$bytes":"A"}`, "$bytes"},
		{`{"$bytes":"A-_="}`, "$bytes"}, {`{"$bytes":"AA==\n"}`, "$bytes"}, {`{"$bytes":"A\nA=="}`, "$bytes"},
		{`{"$bytes":" AA=="}`, "$bytes"}, {`{"$bytes":"AB=="}`, "$bytes"}, {`{"$bytes":"AA==AA=="}`, "$bytes"},
	} {
		r, err := abi.FromJSON([]byte(c.json))
		name := c.json[:min(len(c.json), 60)]
		if err == nil {
			t.Errorf("%s was accepted as %s", name, abi.Diag(r))
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, want %q in it", name, err, c.want)
		}
	}
}

// A byte string is a scalar, also where it looks like an object.
func TestBytesFitAtTheDeepestLevel(t *testing.T) {
	r := mustValue(nest([]byte("x"), abi.MaxValueDepth))
	j, err := abi.ToJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := abi.FromJSON(j)
	if err != nil || !bytes.Equal(back, r) {
		t.Errorf("%s came back as %s (%v)", j, abi.Diag(back), err)
	}
	tooDeep := strings.Repeat("[", 64) + `{"other":1}` + strings.Repeat("]", 64)
	if _, err := abi.FromJSON([]byte(tooDeep)); err == nil || !strings.Contains(err.Error(), "nested too deep (at byte 64)") {
		t.Errorf("65 levels: %v", err)
	}
}

func TestToJSON(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{1.0, `1.0`}, {math.Copysign(0, -1), `-0.0`}, {0.1, `0.1`}, {1e20, `100000000000000000000.0`}, {1e21, `1e+21`},
		{1e-6, `0.000001`}, {1e-7, `1e-07`}, {-1.5e300, `-1.5e+300`}, {5e-324, `5e-324`},
		{uint64(math.MaxUint64), `18446744073709551615`}, {int64(math.MinInt64), `-9223372036854775808`},
		{[]byte{}, `{"$bytes":""}`}, {[]byte{0, 0xff}, `{"$bytes":"AP8="}`},
		{"<a href=\"x\">&</a>", `"<a href=\"x\">&</a>"`},
		{"\u2028\u2029\u0085", `"\u2028\u2029\u0085"`},
		{"\x00\x1f\x7f\b\f\n\r\t", "\"\\u0000\\u001f\x7f\\b\\f\\n\\r\\t\""},
		{"é漢😀", `"é漢😀"`},
		{object{"\n": 1, "a": list{object{}}}, `{"\n":1,"a":[{}]}`},
	} {
		got, err := abi.ToJSON(mustValue(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%v: %s, want %s (%v)", c.value, got, c.want, err)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func TestVectorsSurviveJSON(t *testing.T) {
	for _, v := range valueVectors {
		r := mustValue(v.want)
		j, err := abi.ToJSON(r)
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		if !json.Valid(j) {
			t.Errorf("%s: %s is not JSON", v.name, j)
		}
		if bytes.ContainsAny(j, "\n\r\u0085\u2028\u2029") {
			t.Errorf("%s: %s has a line end", v.name, j)
		}
		back, err := abi.FromJSON(j)
		if err != nil || !bytes.Equal(back, r) {
			t.Errorf("%s: %s came back as %s (%v)", v.name, j, abi.Diag(back), err)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	dst := []byte("data: ")
	got, err := abi.AppendJSON(dst, unhex(t, "a2 6162 01 6161 02")) // not in order
	if err != nil || string(got) != `data: {"a":2,"b":1}` {
		t.Errorf("%s (%v)", got, err)
	}
	got, err = abi.AppendJSON(dst, unhex(t, "a1 6162"))
	if err == nil || string(got) != "data: " {
		t.Errorf("%s (%v)", got, err)
	}
	if _, err := abi.ToJSON(nil); err == nil {
		t.Error("an absent Raw has a JSON form")
	}
}

func TestFromJSONBoundsItsOutput(t *testing.T) {
	// 4 bytes of JSON for 10 bytes of CBOR.
	j := "[" + strings.Repeat("1.1,", 4_000_000) + "1.1]"
	if _, err := abi.FromJSON([]byte(j)); err == nil || !strings.Contains(err.Error(), "longer than 33554432 bytes in CBOR") {
		t.Errorf("%v", err)
	}
	j = "[" + strings.Repeat("1,", 5_000_000) + "1]"
	if _, err := abi.FromJSON([]byte(j)); err == nil || !strings.Contains(err.Error(), "more than 4194304 elements") {
		t.Errorf("%v", err)
	}
	j = `"` + strings.Repeat("x", abi.DefaultLimits.MaxText+1) + `"`
	if _, err := abi.FromJSON([]byte(j)); err == nil || !strings.Contains(err.Error(), "string longer than 16777216 bytes") {
		t.Errorf("%v", err)
	}
}

func ExampleFromJSON() {
	_, err := abi.FromJSON([]byte(`{"order": {"lines": [{"price": 1e999}]}}`))
	fmt.Println(err)
	// Output: order.lines.0.price: number too large for a float (at byte 31)
}

func ExampleToJSON() {
	r, err := abi.EncodeValue(map[string]any{"whole": 2.0, "count": 2, "blob": []byte("hi")})
	if err != nil {
		fmt.Println(err)
	}
	j, err := abi.ToJSON(r)
	fmt.Println(string(j), err)
	// Output: {"blob":{"$bytes":"aGk="},"count":2,"whole":2.0} <nil>
}
