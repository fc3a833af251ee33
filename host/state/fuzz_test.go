package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"", "a", "a.b.0", "items.-1.x", "..", `a\.b.\\.c\d`, "a.\xff", "01.-0.+1", "99999999999999999999"} {
		f.Add(s)
	}
	root := fromJSON(f, `{"a":{"b":[1,[2]],"0":3},"items":[{"x":1}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			wantCode(t, err, abi.StatusInvalidMessage)
			return
		}
		again, err := ParsePath(p.String())
		if len(p.String()) <= abi.MaxPath && (err != nil || !slices.Equal(again, p)) || len(p) > abi.MaxPathSegments || p.String() != s && !strings.Contains(s, `\`) {
			t.Fatalf("%q comes back as %q of %d segments", s, p, len(p))
		}
		old, there := Get(root, p)
		next, changes, err := Replace(root, p, fromJSON(t, `{"new":true}`))
		if err != nil {
			if there {
				t.Fatalf("%q is there, but: %v", s, err)
			}
			return
		}
		if got, ok := Get(next, p); !ok || Equal(got, old) {
			t.Fatalf("%q was not written", s)
		}
		checkFold(t, root, changes, next)
	})
}

func FuzzDecodeApply(f *testing.F) {
	for _, seed := range []struct{ state, edits string }{
		{`{}`, `[["set","a.b",1],["append","l",[1,2]],["increment","n",1.5]]`},
		{`{"l":[1,2,3],"m":{"k":"v"}}`, `[["delete","l.-1"],["merge","m",{"k":null,"x":{}}],["test","l.0",1]]`},
		{`{"n":18446744073709551615}`, `[["increment","n",-1],["clear"]]`},
		{`{"m":{"$bytes":1,"x":2}}`, `[["delete","m.x"]]`},
	} {
		f.Add([]byte(rawJSON(f, seed.state)), []byte(rawJSON(f, seed.edits)))
	}
	f.Fuzz(func(t *testing.T, stateBytes, editBytes []byte) {
		root, err := Decode(stateBytes)
		if err != nil {
			return
		}
		checkSound(t, root)
		if !root.IsMap() {
			return
		}
		edits, err := abi.DecodeEdits(editBytes)
		if err != nil {
			return
		}
		before := root.Encode()
		next, results, changes, err := Apply(root, edits, nil)
		if string(root.Encode()) != string(before) {
			t.Fatal("the old tree changed")
		}
		if err != nil {
			return
		}
		if len(results) != len(edits) {
			t.Fatalf("%d results of %d edits", len(results), len(edits))
		}
		checkFold(t, root, changes, next)
		replaced, changes, err := Replace(root, nil, next)
		if err != nil || !Equal(replaced, next) {
			t.Fatalf("replace gives another tree: %v", err)
		}
		checkFold(t, root, changes, replaced)
	})
}

func FuzzDecodeChanges(f *testing.F) {
	for _, s := range []string{`[]`, `[["set",["a",0],1]]`, `[["delete",["a"]],["set",[],{}]]`} {
		f.Add([]byte(rawJSON(f, s)))
	}
	root := fromJSON(f, `{"a":[1],"b":{"c":{}}}`)
	f.Fuzz(func(t *testing.T, b []byte) {
		changes, err := DecodeChanges(b)
		if err != nil {
			return
		}
		next, err := Fold(root, changes)
		if err != nil {
			return
		}
		if err := sound(next); err != nil {
			t.Fatal(err)
		}
	})
}
