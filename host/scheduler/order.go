package scheduler

import "container/heap"

// Which attempt of a tenant gets the tenant's next core is decided by classes, in a
// cycle of eight turns. An empty class passes its turns on.
//
//	going  5  runs that have had a core and have used less than longRun: the oldest first
//	long   2  runs that have used more, first in, first out
//	new    1  runs that have not had a core, first in, first out
//
// So a flood of starts ends some runs early instead of all of them late, a run that
// computes for long does not stop the others of its tenant, and runs that wake up
// all the time do not keep new ones from beginning. A child is never new, and has the
// age of the run at the top of its tree: no parent waits for a child behind younger
// runs. An attempt that holds a write ticket goes before all others of going, since
// others of its session wait for the ticket.

// class is one of a tenant's queues of attempts whose guest is to begin.
type class uint8

const (
	classGoing class = iota
	classLong
	classNew
	classes
)

// longRun is how many units a run may use before it is long: about a second of a core.
const longRun = 3_000_000_000

// cycle is whose turn it is.
var cycle = [8]class{classGoing, classLong, classGoing, classNew, classGoing, classLong, classGoing, classGoing}

// classOf gives the class of an attempt. Scheduler.mu guards the run's demand.
func (it *readyItem) classOf() class {
	switch w := it.at.work; {
	case it.ticket:
		return classGoing
	case w == nil || !w.begun && !w.child:
		return classNew
	case w.used < longRun:
		return classGoing
	}
	return classLong
}

// order holds the attempts of a tenant whose guest is to begin.
type order struct {
	going oldest
	lines [classes]fifo // of long and new
	turn  int           // in the cycle
}

func (o *order) len() int {
	return len(o.going.items) + o.lines[classLong].len() + o.lines[classNew].len()
}

func (o *order) lenOf(c class) int {
	if c == classGoing {
		return len(o.going.items)
	}
	return o.lines[c].len()
}

func (o *order) push(it readyItem) {
	if c := it.classOf(); c != classGoing {
		o.lines[c].push(it)
		return
	}
	o.going.last++
	heap.Push(&o.going, aged{it, o.going.last})
}

// pop takes the next attempt; there is one.
func (o *order) pop() readyItem {
	for {
		c := cycle[o.turn]
		o.turn = (o.turn + 1) % len(cycle)
		switch {
		case o.lenOf(c) == 0:
		case c == classGoing:
			return heap.Pop(&o.going).(aged).readyItem
		default:
			return o.lines[c].pop()
		}
	}
}

// oldest is a heap of attempts: those with a write ticket first, then by the age of
// their runs, then as they came.
type oldest struct {
	items []aged
	last  uint64 // place of the last one that came
}

type aged struct {
	readyItem
	place uint64
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *oldest) Len() int { return len(h.items) }
func (h *oldest) Less(i, j int) bool {
	a, b := &h.items[i], &h.items[j]
	if a.ticket != b.ticket {
		return a.ticket
	}
	if x, y := a.age(), b.age(); x != y {
		return x < y
	}
	return a.place < b.place
}
func (h *oldest) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *oldest) Push(x any)    { h.items = append(h.items, x.(aged)) }
func (h *oldest) Pop() any {
	n := len(h.items) - 1
	it := h.items[n]
	h.items[n] = aged{}
	h.items = h.items[:n]
	return it
}

// age is when the run first started; that of an attempt in tests may be unknown.
func (it *readyItem) age() int64 {
	if it.at.work == nil {
		return 0
	}
	return it.at.work.age
}
