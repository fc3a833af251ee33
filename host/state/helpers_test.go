package state

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
)

// testingTB is what testing.TB and *rapid.T have in common.
type testingTB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// fromJSON builds a node from JSON text.
func fromJSON(tb testingTB, text string) *Node {
	tb.Helper()
	n, err := Decode(rawJSON(tb, text))
	if err != nil {
		tb.Fatalf("decode %s: %v", text, err)
	}
	return n
}

func rawJSON(tb testingTB, text string) abi.Raw {
	tb.Helper()
	r, err := abi.FromJSON([]byte(text))
	if err != nil {
		tb.Fatalf("JSON %s: %v", text, err)
	}
	return r
}

func toJSON(tb testingTB, n *Node) string {
	tb.Helper()
	if n == nil {
		return "absent"
	}
	b, err := abi.ToJSON(n.Encode())
	if err != nil {
		tb.Fatalf("to JSON: %v", err)
	}
	return string(b)
}

func mustPath(tb testingTB, s string) Path {
	tb.Helper()
	p, err := ParsePath(s)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func mustGet(tb testingTB, root *Node, path string) *Node {
	tb.Helper()
	n, ok := Get(root, mustPath(tb, path))
	if !ok {
		tb.Fatalf("nothing at %q", path)
	}
	return n
}

// mustApply applies edits and checks that the changes fold to the same tree.
func mustApply(tb testingTB, root *Node, edits ...abi.Edit) (*Node, []Change) {
	tb.Helper()
	next, _, changes, err := Apply(root, edits, nil)
	if err != nil {
		tb.Fatal(err)
	}
	checkFold(tb, root, changes, next)
	return next, changes
}

func set(path string, v abi.Raw) abi.Edit { return abi.Edit{Op: abi.OpSet, Path: path, Value: v} }

// checkFold checks that the changes, by way of their encoding, make want of
// old, and that want is a sound tree.
func checkFold(tb testingTB, old *Node, changes []Change, want *Node) {
	tb.Helper()
	b := EncodeChanges(changes)
	if err := abi.CheckValue(b, abi.MaxMessageDepth); err != nil {
		tb.Fatalf("encoded changes: %v", err)
	}
	decoded, err := DecodeChanges(b)
	if err != nil {
		tb.Fatal(err)
	}
	if again := EncodeChanges(decoded); !bytes.Equal(again, b) {
		tb.Fatalf("changes %x re-encode to %x", b, again)
	}
	for _, cs := range [][]Change{changes, decoded} {
		got, err := Fold(old, cs)
		if err != nil {
			tb.Fatalf("fold %v: %v", showChanges(tb, cs), err)
		}
		if !Equal(got, want) {
			tb.Fatalf("fold %v\n of %s\ngave %s\nwant %s", showChanges(tb, cs), toJSON(tb, old), toJSON(tb, got), toJSON(tb, want))
		}
		checkSound(tb, got)
	}
	checkSound(tb, want)
}

func showChanges(tb testingTB, changes []Change) []string {
	tb.Helper()
	out := []string{}
	for _, c := range changes {
		s := fmt.Sprintf("%s %s", c.Op, showElems(c.Path))
		if c.Value != nil {
			s += " " + toJSON(tb, c.Value)
		}
		out = append(out, s)
	}
	return out
}

// checkSound checks the invariants of a whole tree.
func checkSound(tb testingTB, root *Node) {
	tb.Helper()
	if err := sound(root); err != nil {
		tb.Fatal(err)
	}
	b := root.Encode()
	if len(b) != root.Bytes() {
		tb.Fatalf("%d bytes, the node says %d", len(b), root.Bytes())
	}
	again, err := Decode(b)
	if err != nil {
		tb.Fatalf("decode what was encoded: %v", err)
	}
	if !Equal(root, again) || again.Depth() != root.Depth() {
		tb.Fatal("a decoded tree is another one")
	}
}

func sound(n *Node) error {
	if n.body == nil {
		if n.enc == "" || kindOf(n.enc[0]) != n.kind {
			return fmt.Errorf("scalar %x of kind %v", n.enc, n.kind)
		}
		return nil
	}
	if (n.body.keys != nil) != (n.kind == kindMap) {
		return errors.New("keys in a list or none in a map")
	}
	_, err := soundPage(n.body)
	return err
}

// soundPage checks a page and returns its height.
func soundPage(p *page) (height int, err error) {
	again := &page{}
	if p.kids == nil {
		again = newLeaf(p.keys, p.vals)
		for _, v := range p.vals {
			if err := sound(v); err != nil {
				return 0, err
			}
		}
	} else {
		again = newInner(p.kids)
	}
	width := len(p.kids) + len(p.vals)
	switch {
	case p.kids != nil && p.vals != nil, width > fanout, p.keys != nil && len(p.keys) != width:
		return 0, fmt.Errorf("page of %d kids, %d values, %d keys", len(p.kids), len(p.vals), len(p.keys))
	case again.count != p.count || again.size != p.size || again.depth != p.depth:
		return 0, fmt.Errorf("page says %d, %d, %d, has %d, %d, %d", p.count, p.size, p.depth, again.count, again.size, again.depth)
	}
	for i, k := range p.keys {
		if i > 0 && compareKeys(p.keys[i-1], k) >= 0 {
			return 0, fmt.Errorf("key %q after %q", k, p.keys[i-1])
		}
		if p.kids != nil && p.kids[i].keys[0] != k {
			return 0, fmt.Errorf("inner key %q of a kid that begins with %q", k, p.kids[i].keys[0])
		}
	}
	for i, kid := range p.kids {
		h, err := soundPage(kid)
		if err != nil {
			return 0, err
		}
		if kid.count == 0 || i > 0 && h != height {
			return 0, errors.New("an empty page below the root, or leaves of different depth")
		}
		height = h
		if i > 0 {
			if l := p.kids[i-1]; len(l.kids)+len(l.vals)+len(kid.kids)+len(kid.vals) <= fanout {
				return 0, errors.New("neighbours that fit in one page")
			}
		}
	}
	return height + 1, nil
}

// fresh counts the nodes and pages of n that old does not share: what an
// edit made.
func fresh(old, n *Node) int {
	known := map[any]bool{}
	visitAll(old, func(x any) bool { known[x] = true; return true })
	made := 0
	visitAll(n, func(x any) bool {
		if known[x] {
			return false
		}
		made++
		return true
	})
	return made
}

// visitAll calls f with each node and page, and goes below it if f says so.
func visitAll(n *Node, f func(any) bool) {
	if n == nil || !f(n) || n.body == nil {
		return
	}
	var pages func(p *page)
	pages = func(p *page) {
		if !f(p) {
			return
		}
		for _, kid := range p.kids {
			pages(kid)
		}
		for _, v := range p.vals {
			visitAll(v, f)
		}
	}
	pages(n.body)
}

// wantCode checks an error's code.
func wantCode(tb testingTB, err error, code abi.Status) {
	tb.Helper()
	_ = coded(tb, err, code)
}

// coded gives the error with the code that err has to be.
func coded(tb testingTB, err error, code abi.Status) *Error {
	tb.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code.Code() {
		tb.Fatalf("error %v, want code %s", err, code.Code())
	}
	return e
}
