package abi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/weftrun/weft/abi"
)

// seeded returns a generator whose seed a failing test shows.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// reference decodes with the general library, which is as strict as its
// options can make it: what differs from a value is tested by itself.
var reference = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		NaN: cbor.NaNDecodeForbidden, Inf: cbor.InfDecodeForbidden, UTF8: cbor.UTF8RejectInvalid,
		MaxNestedLevels: abi.MaxMessageDepth,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()

func TestEveryHalfFloat(t *testing.T) {
	for bits := range 1 << 16 {
		half := binary.BigEndian.AppendUint16([]byte{0xf9}, uint16(bits))
		finite := bits>>10&0x1f != 0x1f
		if err := abi.CheckValue(half, 0); (err == nil) != finite {
			t.Fatalf("%x: %v", half, err)
		}
		if !finite {
			continue
		}
		var want float64
		if err := reference.Unmarshal(half, &want); err != nil {
			t.Fatal(err)
		}
		got, err := abi.DecodeValue(half)
		if err != nil || math.Float64bits(got.(float64)) != math.Float64bits(want) {
			t.Fatalf("%x decodes to %v, want %v (%v)", half, got, want, err)
		}
		single := binary.BigEndian.AppendUint32([]byte{0xfa}, math.Float32bits(float32(want)))
		double := binary.BigEndian.AppendUint64([]byte{0xfb}, math.Float64bits(want))
		for _, wide := range [][]byte{single, double} {
			if r, err := abi.Canonical(wide, 0); err != nil || !bytes.Equal(r, half) {
				t.Fatalf("%x becomes %x, want %x (%v)", wide, r, half, err)
			}
		}
	}
}

func TestRandomFloatsTakeTheShortestForm(t *testing.T) {
	rng := seeded(t)
	enc, err := cbor.EncOptions{ShortestFloat: cbor.ShortestFloat16}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		f := math.Float64frombits(rng.Uint64())
		switch rng.IntN(3) {
		case 0: // most single floats near the range of half ones
			f = float64(math.Float32frombits(rng.Uint32()))
		case 1:
			f = math.Ldexp(float64(rng.IntN(1<<12)-1<<11), rng.IntN(48)-32)
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		want, err := enc.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := abi.EncodeValue(f); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%g: %x, want %x (%v)", f, got, want, err)
		}
	}
}

func TestCanonicalKeepsCanonicalBytes(t *testing.T) {
	b := mustValue(object{"b": list{1, 2.5}, "a": "x"})
	r, err := abi.Canonical(b, abi.MaxValueDepth)
	if err != nil {
		t.Fatal(err)
	}
	if &r[0] != &b[0] {
		t.Error("canonical bytes were copied")
	}
	if cap(r) != len(r) {
		t.Error("an append to the result would write into the source")
	}
}

func TestCanonicalDoesNotTouchItsInput(t *testing.T) {
	rng := seeded(t)
	for _, v := range valueVectors {
		loose := loosen(rng, mustValue(v.want))
		before := bytes.Clone(loose)
		if _, err := abi.Canonical(loose, abi.MaxValueDepth); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(loose, before) {
			t.Errorf("%s: the input was changed", v.name)
		}
	}
}

func TestDepthCountsOpenContainers(t *testing.T) {
	for depth := range 5 {
		b := mustValue(nest("x", depth))
		if err := abi.CheckValue(b, depth); err != nil {
			t.Errorf("depth %d refused: %v", depth, err)
		}
		if depth == 0 {
			continue
		}
		err := abi.CheckValue(b, depth-1)
		if err == nil || !strings.Contains(err.Error(), "nested too deep") {
			t.Errorf("depth %d accepted within %d: %v", depth, depth-1, err)
		}
	}
}

func TestLimits(t *testing.T) {
	value := func(v any) []byte { return mustValue(v) }
	for _, c := range []struct {
		name   string
		limits abi.Limits
		fits   []byte
		not    []byte
		want   string
	}{
		{"bytes", abi.Limits{MaxBytes: 4}, value("abc"), value("abcd"), "longer than 4 bytes"},
		{"depth", abi.Limits{MaxDepth: 2}, value(list{list{}}), value(list{list{list{}}}), "nested too deep"},
		{"items", abi.Limits{MaxElements: 3}, value(list{1, list{2}}), value(list{1, list{2, 3}}), "more than 3 elements"},
		{"pairs", abi.Limits{MaxElements: 4}, value(object{"a": object{"b": 1}}), value(object{"a": object{"b": list{1}}}), "more than 4 elements"},
		{"text", abi.Limits{MaxText: 3}, value("abc"), value("abcd"), "string longer than 3 bytes"},
		{"blob", abi.Limits{MaxText: 3}, value([]byte("abc")), value([]byte("abcd")), "string longer than 3 bytes"},
		{"key", abi.Limits{MaxText: 3}, value(object{"abc": 1}), value(object{"abcd": 1}), "string longer than 3 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.limits.CheckValue(c.fits); err != nil {
				t.Errorf("what fits: %v", err)
			}
			if _, err := c.limits.Canonical(c.fits); err != nil {
				t.Errorf("what fits: %v", err)
			}
			err := c.limits.CheckValue(c.not)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if _, err2 := c.limits.Canonical(c.not); err2 == nil || err2.Error() != err.Error() {
				t.Errorf("Canonical says %v, CheckValue %v", err2, err)
			}
		})
	}
}

func TestTooLongMessagesAreRefusedUnread(t *testing.T) {
	long := make([]byte, abi.DefaultLimits.MaxBytes+1)
	_, err := abi.DecodeStepOutput(long)
	if err == nil || !strings.Contains(err.Error(), "longer than 33554432 bytes") {
		t.Errorf("message: %v", err)
	}
	if _, err := abi.FromJSON(long); err == nil || !strings.Contains(err.Error(), "longer than 33554432 bytes") {
		t.Errorf("JSON: %v", err)
	}
}

func TestErrorsNamePathAndOffset(t *testing.T) {
	_, err := abi.FromJSON([]byte(`{"a": [1, {"b.c": 99999999999999999999}]}`))
	var fault *abi.DataError
	if !errors.As(err, &fault) {
		t.Fatalf("a %T: %v", err, err)
	}
	if fault.Path != `a.1."b.c"` || fault.Offset != 18 || fault.Reason != "integer outside -2^63..2^64-1" {
		t.Errorf("%+v", fault)
	}
	const want = `a.1."b.c": integer outside -2^63..2^64-1 (at byte 18)`
	if err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
}

func TestForeignKeysAreShortInErrors(t *testing.T) {
	key := strings.Repeat("k", 5000)
	_, err := abi.FromJSON([]byte(`{"` + key + `": {"new\nline": {"": 1e999}}}`))
	if err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), `"new\nline"."": number too large`) {
		t.Errorf("%v", err)
	}
}

// Maps in reverse order on every level, around a long list: what is inside must
// come out whole, and must not be held once for each level above it.
func TestReorderingDeepMaps(t *testing.T) {
	inner := mustValue(repeated(100_000, func(i int) any { return int64(i) }))
	b := bytes.Clone(inner)
	for range abi.MaxValueDepth - 1 {
		b = slices.Concat([]byte{0xa2, 0x61, 'b'}, b, []byte{0x61, 'a', 0x00})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := abi.Canonical(b, abi.MaxValueDepth)
	runtime.ReadMemStats(&after)
	if err != nil || len(r) != len(b) {
		t.Fatalf("%d bytes, want %d (%v)", len(r), len(b), err)
	}
	if !bytes.HasPrefix(r, []byte{0xa2, 0x61, 'a', 0x00, 0x61, 'b', 0xa2, 0x61, 'a'}) || !bytes.HasSuffix(r, inner) {
		t.Errorf("begins %x", r[:20])
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(4*len(b)+1<<16); got > most {
		t.Errorf("%d bytes allocated for %d bytes of input, at most %d wanted", got, len(b), most)
	}
}

func TestDiag(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"f6", "null"},
		{"f93c00", "1.0"},
		{"8301f5a0", "[1, true, {}]"},
		{"a2616101616280", `{"a": 1, "b": []}`},
		{"42ff00", "h'ff00'"},
		{"40", "h''"},
		{"a1662462797465734100", `/ a map whose only key is "$bytes" stands for a byte string in JSON (at byte 0) / h'a1662462797465734100'`},
		{"820181f7", "/ 1.0: undefined is not allowed (at byte 3) / h'820181f7'"},
		{"", "/ unexpected end of data (at byte 0) / h''"},
	} {
		if got := abi.Diag(unhex(t, c.value)); got != c.want {
			t.Errorf("%s: %s, want %s", c.value, got, c.want)
		}
	}
	if long := abi.Diag(make([]byte, 100_000)); len(long) > 1000 {
		t.Errorf("%d bytes about something malformed", len(long))
	}
}

func TestStatusTable(t *testing.T) {
	for s := abi.StatusOK; s <= abi.StatusInternal; s++ {
		if back := abi.StatusOf(s.Code()); back != s {
			t.Errorf("%d -> %s -> %d", s, s.Code(), back)
		}
	}
	if abi.Status(11).Code() != "internal" || abi.Status(math.MaxUint32).Code() != "internal" {
		t.Error("an unknown status is not internal")
	}
	if abi.StatusOf("flaky") != abi.StatusInternal || abi.StatusOf("") != abi.StatusInternal {
		t.Error("an unknown code is not internal")
	}
	if e := (&abi.Error{Code: "conflict", Message: "it changed"}); e.Error() != "conflict: it changed" {
		t.Error(e.Error())
	}
	var table strings.Builder
	for s := abi.StatusInvalidMessage; s <= abi.StatusInternal; s++ {
		table.WriteString(s.Code() + " ")
	}
	cddl := string(readFile(t, "abi.cddl"))
	at := 0
	for code := range strings.FieldsSeq(table.String()) {
		i := strings.Index(cddl[at:], " "+code)
		if i < 0 {
			t.Fatalf("%s is not in its place in abi.cddl", code)
		}
		at += i
	}
}
