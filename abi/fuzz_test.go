package abi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
)

// addVectors seeds a fuzz target with the vectors, good and bad.
func addVectors(f *testing.F, add func(b []byte)) {
	f.Helper()
	for _, dir := range []string{vectorDir, invalidDir} {
		for _, name := range vectorFiles(f, dir) {
			add(readFile(f, dir, name+".cbor"))
		}
	}
}

func FuzzValue(f *testing.F) {
	addVectors(f, func(b []byte) { f.Add(b, uint64(len(b))) })
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		before := bytes.Clone(b)
		check := abi.CheckValue(b, abi.MaxValueDepth)
		r, err := abi.Canonical(b, abi.MaxValueDepth)
		if !bytes.Equal(b, before) {
			t.Fatal("the input was changed")
		}
		if (check == nil) != (err == nil) {
			t.Fatalf("CheckValue says %v, Canonical %v", check, err)
		}
		_ = abi.Diag(b)
		if err != nil {
			return
		}
		var other any
		if err := reference.Unmarshal(b, &other); err != nil {
			t.Fatalf("the general library refuses it: %v", err)
		}
		checkCanonical(t, r, seed)
	})
}

// checkCanonical holds what comes out of Canonical against everything that
// must agree with it.
func checkCanonical(t *testing.T, r abi.Raw, seed uint64) {
	if again, err := abi.Canonical(r, abi.MaxValueDepth); err != nil || !bytes.Equal(again, r) || &again[0] != &r[0] {
		t.Fatalf("canonical form %x is not kept: %x (%v)", r, again, err)
	}
	v, err := abi.DecodeValue(r)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := abi.EncodeValue(v); err != nil || !bytes.Equal(back, r) {
		t.Fatalf("%x came back as %x (%v)", r, back, err)
	}
	loose := loosen(rand.New(rand.NewPCG(seed, 0)), r)
	if c, err := abi.Canonical(loose, abi.MaxValueDepth); err != nil || !bytes.Equal(c, r) {
		t.Fatalf("%x became %x, want %x (%v)", loose, c, r, err)
	}
	j, err := abi.ToJSON(r)
	if err != nil || !json.Valid(j) {
		t.Fatalf("%x became %s (%v)", r, j, err)
	}
	if c, err := abi.FromJSON(j); err != nil || !bytes.Equal(c, r) {
		t.Fatalf("%x came back from JSON as %x (%v)", r, c, err)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":[1,-2,3.5,1e3,-0.0],"a":{"$bytes":"AAE="},"":null}`, `"\ud83d\ude00\u2028\n"`, `[[[[{}]]]]`, ` true `,
		`{"a":1,"a":2}`, `18446744073709551616`, `1e999`, `"\ud800"`, `{"$bytes":"A"}`, "\"\xff\"", `01`, `[1,]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := abi.FromJSON(b)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q is not JSON", b)
		}
		if again, err := abi.Canonical(r, abi.MaxValueDepth); err != nil || !bytes.Equal(again, r) {
			t.Fatalf("%q gave %x, which is not canonical (%v)", b, r, err)
		}
		j, err := abi.ToJSON(r)
		if err != nil || !json.Valid(j) {
			t.Fatalf("%x became %s (%v)", r, j, err)
		}
		if again, err := abi.FromJSON(j); err != nil || !bytes.Equal(again, r) {
			t.Fatalf("%q became %s, which became %x, not %x (%v)", b, j, again, r, err)
		}
	})
}

func FuzzMessages(f *testing.F) {
	addVectors(f, func(b []byte) { f.Add(b) })
	all := maps.Clone(rules)
	maps.Copy(all, responses)
	names := slices.Sorted(maps.Keys(all))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range names {
			if name != "value" { // FuzzValue's
				checkMessage(t, name, all[name], b)
			}
		}
	})
}

// checkMessage decodes b; what decodes must re-encode canonically to something
// that decodes equal.
func checkMessage(t *testing.T, name string, c codec, b []byte) {
	v, err := c.decode(b)
	if err != nil {
		return
	}
	encoded, err := c.encode(v)
	if err != nil {
		t.Fatalf("%s: %x decodes to %#v, which does not encode: %v", name, b, v, err)
	}
	if r, err := abi.Canonical(encoded, abi.MaxMessageDepth); err != nil || !bytes.Equal(r, encoded) {
		t.Fatalf("%s: %x is not canonical (%v)", name, encoded, err)
	}
	again, err := c.decode(encoded)
	if err != nil {
		t.Fatalf("%s: %x was encoded but does not decode: %v", name, encoded, err)
	}
	if !reflect.DeepEqual(again, v) {
		t.Fatalf("%s: decoded\n%#v, then\n%#v", name, v, again)
	}
}
