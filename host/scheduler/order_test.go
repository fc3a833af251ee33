package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ofRun is an attempt of a run that a test knows by its number.
func ofRun(n uint64, w runDemand) readyItem {
	it := item("t", n)
	it.at.work = &w
	return it
}

// serve gives the numbers of the next attempts in the order in which they begin.
func serve(q *fairQueue, n int) (order []uint64) {
	for range n {
		it, ok := q.pop(nobody)
		if !ok {
			break
		}
		order = append(order, it.at.inv)
		q.end("t", 1_000_000)
	}
	return order
}

func TestRunsOfATenantGoOnByAge(t *testing.T) {
	q := newQueue(1)
	for i, age := range []int64{50, 20, 40, 10, 30} {
		q.push("t", ofRun(uint64(i), runDemand{begun: true, age: age}))
	}
	child := ofRun(5, runDemand{child: true, age: 10}) // of the oldest
	q.push("t", child)
	ticket := ofRun(6, runDemand{begun: true, used: 2 * longRun, age: 99})
	ticket.ticket = true
	q.push("t", ticket)
	if got, want := serve(q, 9), []uint64{6, 3, 5, 1, 4, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("began in the order %v, want %v", got, want)
	}
}

// Of eight turns, five are of runs that go on, two of those that took long, and one of
// new ones; classes that are empty pass theirs on in the same proportion.
func TestClassesHaveTheirTurns(t *testing.T) {
	states := []runDemand{classGoing: {begun: true}, classLong: {begun: true, used: longRun}, classNew: {}}
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
				q.push("t", ofRun(uint64(c), states[c]))
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
			c   class
			age int64
			n   uint64
		}
		var all []waiting
		since := [classes]int{} // turns since the class was served while it waited
		n := uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "come") {
				n++
				w := waiting{c: rapid.SampledFrom([]class{classGoing, classGoing, classLong, classNew}).Draw(t, "class"), n: n,
					age: int64(rapid.IntRange(0, 20).Draw(t, "age"))}
				state := runDemand{begun: w.c != classNew, age: w.age}
				if w.c == classLong {
					state.used = longRun + 5
				}
				q.push("t", ofRun(w.n, state))
				all = append(all, w)
			}
			if len(all) == 0 {
				continue
			}
			it, ok := q.pop(nobody)
			if !ok {
				t.Fatal("a token is free, and nobody gets it")
			}
			q.end("t", 1_000_000)
			i := slices.IndexFunc(all, func(w waiting) bool { return w.n == it.at.inv })
			served := all[i]
			for _, w := range all {
				if w.c == served.c && (w.c == classGoing && w.age < served.age || (w.c != classGoing || w.age == served.age) && w.n < served.n) {
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
