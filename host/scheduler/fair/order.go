package fair

import "container/heap"

// Which attempt of a tenant gets the tenant's next core is decided by classes, in a
// cycle of eight turns. An empty class passes its turns on.
//
//	going  5  runs that have had a core and have used less than LongRun: the oldest first
//	long   2  runs that have used more, first in, first out
//	new    1  runs that have not had a core, first in, first out
//
// So a flood of starts ends some runs early instead of all of them late, a run that
// computes for long does not stop the others of its tenant, and runs that wake up
// all the time do not keep new ones from beginning. A child is never new, and has the
// age of the run at the top of its tree: no parent waits for a child behind younger
// runs. An attempt that holds a write ticket goes before all others of going (First), since
// others of its session wait for the ticket.

// Class is one of a tenant's queues of items whose guest has not begun.
type Class uint8

// The classes.
const (
	Going Class = iota
	Long
	New
	classes
)

// LongRun is how many units a run may use before it is long: about a second of a core.
const LongRun = 3_000_000_000

// Place is where an item stands among the others of its tenant.
type Place struct {
	Class Class
	// First: it goes before all others of class Going.
	First bool
	// Age is when the run first started, in Unix nanoseconds: class Going serves the
	// oldest run first.
	Age int64
}

// cycle is whose turn it is.
var cycle = [8]Class{Going, Long, Going, New, Going, Long, Going, Going}

// order holds the attempts of a tenant whose guest has not begun.
type order[T any] struct {
	going oldest[T]
	lines [classes]fifo[Item[T]] // of long and new
	turn  int                    // in the cycle
}

func (o *order[T]) len() int {
	return len(o.going.items) + o.lines[Long].len() + o.lines[New].len()
}

func (o *order[T]) lenOf(c Class) int {
	if c == Going {
		return len(o.going.items)
	}
	return o.lines[c].len()
}

func (o *order[T]) push(it Item[T]) {
	if c := it.Place.Class; c != Going {
		o.lines[c].push(it)
		return
	}
	// Of runs of the same age, the attempt that came first begins first.
	o.going.last++
	heap.Push(&o.going, aged[T]{it, o.going.last})
}

// pop takes the next attempt; there is one.
func (o *order[T]) pop() Item[T] {
	for {
		c := cycle[o.turn]
		o.turn = (o.turn + 1) % len(cycle)
		// An empty class passes its turn on: the cycle never leaves a token unused.
		switch {
		case o.lenOf(c) == 0:
		case c == Going:
			return heap.Pop(&o.going).(aged[T]).Item
		default:
			return o.lines[c].pop()
		}
	}
}

// oldest is a heap of attempts: those with a write ticket first, then by the age of
// their runs, then as they came.
type oldest[T any] struct {
	items []aged[T]
	last  uint64 // place of the last one that came
}

type aged[T any] struct {
	Item[T]
	came uint64
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *oldest[T]) Len() int { return len(h.items) }
func (h *oldest[T]) Less(i, j int) bool {
	a, b := &h.items[i], &h.items[j]
	// Others of the session wait for the ticket that this attempt holds.
	if a.Place.First != b.Place.First {
		return a.Place.First
	}
	// The oldest run ends first, so that a flood of starts does not delay all runs.
	if x, y := a.Place.Age, b.Place.Age; x != y {
		return x < y
	}
	return a.came < b.came
}
func (h *oldest[T]) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *oldest[T]) Push(x any)    { h.items = append(h.items, x.(aged[T])) }
func (h *oldest[T]) Pop() any {
	n := len(h.items) - 1
	it := h.items[n]
	// The array must not keep an attempt that has left the heap.
	h.items[n] = aged[T]{}
	h.items = h.items[:n]
	return it
}
