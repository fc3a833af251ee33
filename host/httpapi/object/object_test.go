package object

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
)

// merged is the expected result of Merge, computed with Go maps.
func merged(t *testing.T, base, over map[string]any, drop string) abi.Raw {
	t.Helper()
	all := map[string]any{}
	for _, m := range []map[string]any{base, over} {
		maps.Copy(all, m)
	}
	delete(all, drop)
	raw, err := abi.EncodeValue(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMerge(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	random := func() map[string]any {
		m := map[string]any{}
		for range rng.IntN(40) {
			m[strings.Repeat("k", rng.IntN(3))+string(rune('a'+rng.IntN(6)))] = []any{rng.IntN(1000), "x", nil, 1.5, []byte{1}, map[string]any{"a": true}}
		}
		return m
	}
	for range 200 {
		base, over, drop := random(), random(), string(rune('a'+rng.IntN(6)))
		rawBase, rawOver := merged(t, base, nil, ""), merged(t, over, nil, "")
		if got, want := Merge(rawBase, rawOver, drop), merged(t, base, over, drop); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: Merge of %v and %v without %q:\n got %x\nwant %x", seed, base, over, drop, got, want)
		}
	}
}

func TestLookup(t *testing.T) {
	raw, err := abi.FromJSON([]byte(`{"a":[1,{"result":2}],"result":{"b":"c"},"zz":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := abi.ToJSON(Lookup(raw, "result")); err != nil || string(got) != `{"b":"c"}` {
		t.Errorf("Lookup = %s, %v", got, err)
	}
	if got := Lookup(raw, "nope"); got != nil {
		t.Errorf("Lookup = %x", got)
	}
	if got := Lookup(abi.Null, "nope"); got != nil {
		t.Errorf("Lookup = %x", got)
	}
}
