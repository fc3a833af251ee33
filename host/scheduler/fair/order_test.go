package fair

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// placed is an item with a place, which a test knows by its number.
func placed(n uint64, p Place) Item[thing] {
	it := item("t", n)
	it.Place = p
	return it
}

// serve gives the numbers of the next attempts in the order in which they begin.
func serve(q *Queue[thing], n int) (order []uint64) {
	for range n {
		it, ok := q.Pop(nobody)
		if !ok {
			break
		}
		order = append(order, it.Of.n)
		q.end("t", 1_000_000)
	}
	return order
}

func TestRunsOfATenantGoOnByAge(t *testing.T) {
	q := newQueue(1)
	for i, age := range []int64{50, 20, 40, 10, 30} {
		q.Push("t", placed(uint64(i), Place{Age: age}))
	}
	q.Push("t", placed(5, Place{Age: 10})) // a child of the oldest
	q.Push("t", placed(6, Place{First: true, Age: 99}))
	if got, want := serve(q, 9), []uint64{6, 3, 5, 1, 4, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("began in the order %v, want %v", got, want)
	}
}

// Of eight turns, five are of runs that go on, two of those that took long, and one of
// new ones; classes that are empty pass theirs on in the same proportion.
func TestClassesHaveTheirTurns(t *testing.T) {
	states := []Place{Going: {}, Long: {Class: Long}, New: {Class: New}}
	for _, tt := range []struct{ there, want []int }{
		{[]int{1, 1, 1}, []int{50, 20, 10}},
		{[]int{1, 0, 1}, []int{50, 0, 10}},
		{[]int{0, 1, 1}, []int{0, 20, 10}},
		{[]int{1, 1, 0}, []int{50, 20, 0}},
		{[]int{0, 0, 1}, []int{0, 0, 10}},
	} {
		q, sum := newQueue(1), 0
		for c, there := range tt.there {
			for range there * 100 {
				q.Push("t", placed(uint64(c), states[c]))
			}
			sum += tt.want[c]
		}
		got := make([]int, classes)
		for _, c := range serve(q, sum) {
			got[c]++
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("classes %v had %v turns, want %v", tt.there, got, tt.want)
		}
	}
}

// No class starves, whatever comes and goes: from the moment that a class has an
// attempt, it is served within eight turns of its tenant. New and long runs are served
// in the order in which they came, and an attempt of a class that goes by age waits
// for older runs only.
func TestNoClassStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(1)
		type waiting struct {
			c   Class
			age int64
			n   uint64
		}
		var all []waiting
		since := [classes]int{} // turns since the class was served while it waited
		n := uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "come") {
				n++
				w := waiting{c: rapid.SampledFrom([]Class{Going, Going, Long, New}).Draw(t, "class"), n: n,
					age: int64(rapid.IntRange(0, 20).Draw(t, "age"))}
				q.Push("t", placed(w.n, Place{Class: w.c, Age: w.age}))
				all = append(all, w)
			}
			if len(all) == 0 {
				continue
			}
			it, ok := q.Pop(nobody)
			if !ok {
				t.Fatal("a token is free, and nobody gets it")
			}
			q.end("t", 1_000_000)
			i := slices.IndexFunc(all, func(w waiting) bool { return w.n == it.Of.n })
			served := all[i]
			for _, w := range all {
				if w.c == served.c && (w.c == Going && w.age < served.age || (w.c != Going || w.age == served.age) && w.n < served.n) {
					t.Fatalf("%+v went before %+v", served, w)
				}
			}
			all = slices.Delete(all, i, i+1)
			for c := range classes {
				since[c]++
				if c == served.c || !slices.ContainsFunc(all, func(w waiting) bool { return w.c == c }) {
					since[c] = 0
				}
				if since[c] > 8 {
					t.Fatal(fmt.Sprintf("class %d waited for %d turns", c, since[c]))
				}
			}
		}
	})
}
