package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

func TestParsePath(t *testing.T) {
	for _, s := range []string{"", "a", "a.b", "items.0", "items.-1", "-", "01", "ä.$x", "a b", strings.Repeat("a.", 63) + "a", strings.Repeat("x", 4096)} {
		p, err := ParsePath(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if p.String() != s {
			t.Errorf("%q comes back as %q", s, p)
		}
	}
	for s, want := range map[string][]string{
		`a\.b`: {"a.b"}, `a\.b.c\\.d`: {"a.b", `c\`, "d"}, `\.`: {"."}, `a\b`: {`a\b`}, `a\`: {`a\`}, `\\.\\\.`: {`\`, `\.`}, `1\.5`: {"1.5"},
	} {
		p, err := ParsePath(s)
		var got []string
		for _, segment := range p {
			got = append(got, segment.String())
		}
		again, _ := ParsePath(p.String())
		if err != nil || !slices.Equal(got, want) || !slices.Equal(again, p) {
			t.Errorf("%q: %q (%v), written as %q; want %q", s, got, err, p, want)
		}
	}
	for name, s := range map[string]string{
		"dot": ".", "leading": ".a", "trailing": "a.", "double": "a..b", "not UTF-8": "a.\xff",
		"65 segments": strings.Repeat("a.", 64) + "a", "4097 bytes": strings.Repeat("x", 4097),
	} {
		_, err := ParsePath(s)
		e := coded(t, err, abi.StatusInvalidMessage)
		if len(e.Path) > maxShown+3 {
			t.Errorf("%s: the error repeats %d bytes of path", name, len(e.Path))
		}
	}
}

func TestGet(t *testing.T) {
	root := fromJSON(t, `{"a":{"b":[10,{"c":null}],"0":"key","-1":"minus"},"":1,"x.y":2}`)
	tests := []struct{ path, want string }{
		{"", toJSON(t, root)},
		{"a.b.0", `10`}, {`x\.y`, `2`},
		{"a.b.1.c", `null`},
		{"a.b.-1.c", `null`},
		{"a.b.-2", `10`},
		{"a.0", `"key"`},
		{"a.-1", `"minus"`},
		{"a.b.2", "absent"},
		{"a.b.-3", "absent"},
		{"a.b.00", "absent"},
		{"a.b.+0", "absent"},
		{"a.b.-0", "absent"},
		{"a.b.99999999999999999999", "absent"},
		{"a.b.-9223372036854775808", "absent"},
		{"a.b.c", "absent"},
		{"a.z", "absent"},
		{"a.b.0.x", "absent"},
		{"a.b.1.c.d", "absent"},
		{"x.y", "absent"},
	}
	for _, tt := range tests {
		n, ok := Get(root, mustPath(t, tt.path))
		if got := toJSON(t, n); got != tt.want || ok != (tt.want != "absent") {
			t.Errorf("%q: %s, %v; want %s", tt.path, got, ok, tt.want)
		}
	}
	if _, ok := Get(nil, nil); ok {
		t.Error("there is something in no state")
	}
}

// TestReadsDoNotAllocate: readers are many and never wait.
func TestReadsDoNotAllocate(t *testing.T) {
	root := largeState(t, 1000)
	p := mustPath(t, "k500.field")
	allocs := testing.AllocsPerRun(100, func() {
		if n, ok := Get(root, p); !ok || n.Bytes()+n.Depth() == 0 {
			t.Error("nothing there")
		}
		_ = root.Bytes() + root.Depth()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestOverlaps(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"", "a.b", true},
		{"a", "a", true},
		{"a", "a.b.c", true},
		{"a.b", "a.c", false},
		{"a.b", "ab", false},
		{"a.1", "a.2", false},
		{"a.-1", "a.-2", false},
		{"a.-1", "a.2", true}, // a list of three
		{"a.-1.x", "a.2.y", false},
		{"a.-1", "a.b", false},
	}
	for _, tt := range tests {
		a, b := mustPath(t, tt.a), mustPath(t, tt.b)
		if Overlaps(a, b) != tt.want || Overlaps(b, a) != tt.want {
			t.Errorf("Overlaps(%q, %q), want %v", tt.a, tt.b, tt.want)
		}
	}
}

func TestTouches(t *testing.T) {
	tests := []struct {
		op         abi.Op
		path, want string
	}{
		{abi.OpSet, "a.0", "a.0"},
		{abi.OpDelete, "a.b", "a.b"},
		{abi.OpDelete, "a.0", "a"},
		{abi.OpDelete, "a.-1", "a"},
		{abi.OpAppend, "a", "a"},
		{abi.OpClear, "", ""},
		{abi.OpDelete, "", ""},
	}
	for _, tt := range tests {
		p, err := Touches(abi.Edit{Op: tt.op, Path: tt.path})
		if err != nil || p.String() != tt.want {
			t.Errorf("%s %q touches %q, %v; want %q", tt.op, tt.path, p, err, tt.want)
		}
	}
	if _, err := Touches(abi.Edit{Op: abi.OpSet, Path: "."}); err == nil {
		t.Error("a malformed path touches something")
	}
}
