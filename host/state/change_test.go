package state

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

func TestEncodeChanges(t *testing.T) {
	changes := []Change{
		{Op: OpSet, Path: []Elem{{Key: "a"}, {Index: 300, List: true}, {Key: ""}}, Value: fromJSON(t, `{"b":1.0}`)},
		{Op: OpDelete, Path: []Elem{{Key: "x.y"}}},
		{Op: OpSet, Value: Empty()},
	}
	b := EncodeChanges(changes)
	js, err := abi.ToJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[["set",["a",300,""],{"b":1.0}],["delete",["x.y"]],["set",[],{}]]`; string(js) != want {
		t.Errorf("%s, want %s", js, want)
	}
	if cap(b) != len(b) {
		t.Errorf("%d bytes were reckoned as %d", len(b), cap(b))
	}
	got, err := DecodeChanges(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := EncodeChanges(got); !bytes.Equal(again, b) {
		t.Errorf("%x re-encodes to %x", b, again)
	}
	if none, err := DecodeChanges(EncodeChanges(nil)); err != nil || len(none) != 0 {
		t.Errorf("no changes come back as %v, %v", none, err)
	}
}

func TestDecodeChangesRefuses(t *testing.T) {
	deep := fromJSON(t, strings.Repeat("[", 63)+"1"+strings.Repeat("]", 63))
	for _, text := range []string{
		`1`, `{}`, `[1]`, `[[]]`, `[["set"]]`, `[["set","a",1]]`, `[["set",["a"]]]`, `[["set",["a"],1,2]]`, `[["delete",["a"],1]]`,
		`[["move",["a"]]]`, `[[1,["a"],1]]`, `[["set",[null],1]]`, `[["set",[-1],1]]`, `[["set",[1.0],1]]`,
		`[["set",[9223372036854775808],1]]`, `[["set",["a"],1],["set"]]`,
		`[["set",[` + strings.Repeat(`"a",`, 64) + `"a"],1]]`,
	} {
		if _, err := DecodeChanges(rawJSON(t, text)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", text, err)
		}
	}
	tooDeep := EncodeChanges([]Change{{Op: OpSet, Path: []Elem{{Key: "a"}, {Key: "b"}}, Value: deep}})
	for _, b := range [][]byte{nil, {0x81}, {0x80, 0}, {0x9f, 0xff}, tooDeep} {
		if _, err := DecodeChanges(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func TestFoldRefuses(t *testing.T) {
	root := fromJSON(t, `{"l":[1],"m":{},"n":1}`)
	one := fromJSON(t, `1`)
	key := func(k string) Elem { return Elem{Key: k} }
	index := func(i uint64) Elem { return Elem{Index: i, List: true} }
	for name, c := range map[string]Change{
		"unknown operation":     {Op: "move", Path: []Elem{key("n")}},
		"set without value":     {Op: OpSet, Path: []Elem{key("n")}},
		"delete with value":     {Op: OpDelete, Path: []Elem{key("n")}, Value: one},
		"root to scalar":        {Op: OpSet, Value: one},
		"delete root":           {Op: OpDelete},
		"missing container":     {Op: OpSet, Path: []Elem{key("x"), key("y")}, Value: one},
		"scalar container":      {Op: OpSet, Path: []Elem{key("n"), key("y")}, Value: one},
		"key in a list":         {Op: OpSet, Path: []Elem{key("l"), key("0")}, Value: one},
		"index in a map":        {Op: OpSet, Path: []Elem{key("m"), index(0)}, Value: one},
		"beyond the end":        {Op: OpSet, Path: []Elem{key("l"), index(2)}, Value: one},
		"far beyond the end":    {Op: OpSet, Path: []Elem{key("l"), index(1 << 63)}, Value: one},
		"through the end":       {Op: OpSet, Path: []Elem{key("l"), index(1), key("x")}, Value: one},
		"delete what is not":    {Op: OpDelete, Path: []Elem{key("x")}},
		"delete beyond the end": {Op: OpDelete, Path: []Elem{key("l"), index(1)}},
		"too deep":              {Op: OpSet, Path: make([]Elem, 65), Value: one},
	} {
		n, err := Fold(root, []Change{{Op: OpSet, Path: []Elem{key("ok")}, Value: one}, c})
		if !errors.Is(err, ErrCorrupt) || n != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := Fold(nil, nil); err != nil || n != Empty() {
		t.Errorf("nothing folded is %v, %v", n, err)
	}
}

func TestShowElems(t *testing.T) {
	tests := []struct {
		at   []Elem
		want string
	}{
		{nil, ""},
		{[]Elem{{Key: "a"}, {Index: 3, List: true}, {Key: "b"}}, "a.3.b"},
		{[]Elem{{Key: "a.b"}, {Key: ""}}, `"a.b".""`},
		{[]Elem{{Key: strings.Repeat("x", 300)}, {Key: "b"}}, strings.Repeat("x", 256) + "..."},
	}
	for _, tt := range tests {
		if got := showElems(tt.at); got != tt.want {
			t.Errorf("%v shows as %s, want %s", tt.at, got, tt.want)
		}
	}
}

// TestChangeOld: a change tells where it is made and what was there.
func TestChangeOld(t *testing.T) {
	raw, err := abi.FromJSON([]byte(`{"a": {"b": [1, {"c": 2}]}, "x.y": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	root, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	key := func(k string) Elem { return Elem{Key: k} }
	index := func(i uint64) Elem { return Elem{List: true, Index: i} }
	for _, c := range []struct {
		path []Elem
		at   string
		old  string // "": nothing
	}{
		{nil, "", `{"a":{"b":[1,{"c":2}]},"x.y":3}`},
		{[]Elem{key("a"), key("b"), index(1), key("c")}, "a.b.1.c", "2"},
		{[]Elem{key("a"), key("b"), index(2)}, "a.b.2", ""},
		{[]Elem{key("a"), key("n")}, "a.n", ""},
		{[]Elem{key("x.y")}, `"x.y"`, "3"},
		{[]Elem{key("a"), index(0)}, "a.0", ""},
		{[]Elem{key("x.y"), key("z")}, `"x.y".z`, ""},
	} {
		ch := Change{Op: OpDelete, Path: c.path}
		got := ""
		if n := ch.Old(root); n != nil {
			text, err := abi.ToJSON(n.Encode())
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if ch.At() != c.at || got != c.old {
			t.Errorf("%v: at %q is %s, want at %q %s", c.path, ch.At(), got, c.at, c.old)
		}
	}
}
