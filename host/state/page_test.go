package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestListLikeSlice edits long lists by position.
func TestListLikeSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := make([]*Node, rapid.IntRange(0, 2500).Draw(t, "n"))
		for i := range model {
			model[i] = intNode(i)
		}
		list := &Node{kind: kindList, body: build(nil, model)}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			at := rapid.IntRange(0, len(model)).Draw(t, "at")
			n := rapid.SampledFrom([]int{1, 2, 40, 200}).Draw(t, "n")
			op := rapid.SampledFrom([]string{"set", "append", "delete"}).Draw(t, "op")
			for range n {
				v := intNode(step + 1000)
				switch {
				case op == "append":
					list = list.with(Elem{List: true, Index: uint64(len(model))}, v)
					model = append(slices.Clip(model), v)
				case at >= len(model):
				case op == "set":
					list = list.with(Elem{List: true, Index: uint64(at)}, v)
					model = slices.Clone(model)
					model[at] = v
				case op == "delete":
					list = list.without(Elem{List: true, Index: uint64(at)})
					model = slices.Concat(model[:at], model[at+1:])
				}
			}
			if err := sound(list); err != nil {
				t.Fatal(err)
			}
			if got := list.values(); !slices.Equal(got, model) {
				t.Fatalf("after step %d: %d elements, want %d", step, len(got), len(model))
			}
			if len(model) > 0 {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "i")
				if got := list.child(Elem{List: true, Index: uint64(i)}); got != model[i] {
					t.Fatalf("element %d is another", i)
				}
			}
		}
	})
}

// TestMapLikeMap inserts into and deletes from large maps, in random and in
// sorted order.
func TestMapLikeMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[string]*Node{}
		m := emptyMap
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			from := rapid.IntRange(0, 3000).Draw(t, "from")
			n := rapid.SampledFrom([]int{1, 3, 40, 300}).Draw(t, "n")
			stride := rapid.SampledFrom([]int{-1, 1, 7, 1009}).Draw(t, "stride")
			del := rapid.Bool().Draw(t, "delete")
			for i := range n {
				key := fmt.Sprint(((from+i*stride)%3000 + 3000) % 3000) // keys of several lengths
				e := Elem{Key: key}
				switch {
				case !del:
					model[key] = intNode(i + 1000)
					m = m.with(e, model[key])
				case model[key] != nil:
					delete(model, key)
					m = m.without(e)
				}
			}
			if err := sound(m); err != nil {
				t.Fatal(err)
			}
			if m.Len() != len(model) {
				t.Fatalf("%d entries, want %d", m.Len(), len(model))
			}
			for k, v := range m.body.all() {
				if model[k] != v || m.get(k) != v {
					t.Fatalf("another value at %q", k)
				}
			}
		}
	})
}

func intNode(i int) *Node {
	n, err := number{mag: uint64(i)}.node()
	if err != nil {
		panic(err)
	}
	return n
}

// TestDeepestTree checks the height that sequential growth and hostile
// deletions leave.
func TestDeepestTree(t *testing.T) {
	list := emptyList
	for i := range 100_000 {
		list = list.with(Elem{List: true, Index: uint64(i)}, intNode(i%50))
	}
	h, err := soundPage(list.body)
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	visitAll(list, func(x any) bool {
		if _, ok := x.(*page); ok {
			pages++
		}
		return true
	})
	if full := 100_000/fanout + 98 + 4 + 1; h != 4 || pages > full {
		t.Errorf("100,000 appended elements are %d pages, %d high; want %d full ones, 4 high", pages, h, full)
	}
	// Keep one element in sixteen: every page is left with two.
	for i := 99_999; i >= 0; i-- {
		if i%16 != 0 {
			list = list.without(Elem{List: true, Index: uint64(i)})
		}
	}
	h, err = soundPage(list.body)
	if err != nil {
		t.Fatal(err)
	}
	if list.Len() != 6250 || h > 4 {
		t.Errorf("%d elements, %d pages high", list.Len(), h)
	}
}
