package engine

import (
	"cmp"
	"container/heap"
	"slices"
)

// timerKind says what happens when a timer fires.
type timerKind uint8

const (
	timerDeadline timerKind = iota + 1 // the run times out
	timerAttempt                       // the attempt fails with a timeout
	timerRetry                         // the next attempt is due
	timerSleep                         // a sleep is over
	timerWait                          // a wait took too long
	timerGrace                         // the run's clean-up is over
)

func (k timerKind) String() string {
	return [...]string{timerDeadline: "deadline", timerAttempt: "attempt", timerRetry: "retry", timerSleep: "sleep", timerWait: "wait", timerGrace: "grace"}[k]
}

// servingTime reports whether the timer counts only the time in which the server serves.
// Other timers count wall-clock time.
func (k timerKind) servingTime() bool {
	return k == timerDeadline || k == timerAttempt || k == timerGrace
}

// TimerKind returns what happens when an armed timer fires: deadline, attempt, retry,
// sleep, wait or grace. It returns "" if no such timer is armed.
func (s *Session) TimerKind(id uint64) string {
	if t, ok := s.timers.byID[id]; ok {
		return t.kind.String()
	}
	return ""
}

// ArmedTimer is a running timer: see [Session.Timers].
type ArmedTimer struct {
	At   int64  // when it is due, in Unix nanoseconds
	Kind string // as [Session.TimerKind] returns it
}

// Timers returns the armed timers in the order in which they fire. It is meant for tests
// of workflows, which advance the time when nothing else can happen.
func (s *Session) Timers() []ArmedTimer {
	sorted := slices.SortedFunc(slices.Values(s.timers.heap), func(a, b *timer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
	out := make([]ArmedTimer, len(sorted))
	for i, t := range sorted {
		out[i] = ArmedTimer{At: t.at, Kind: t.kind.String()}
	}
	return out
}

// timer fires once, at a time.
type timer struct {
	id   uint64
	kind timerKind
	at   int64 // Unix nanoseconds
	span int64 // the duration it was set to
	run  *run
	inv  *invocation // nil for a deadline and a grace period
	slot int         // in the heap; -1: not armed
}

// timers is a heap of the armed timers, earliest first. Of two timers with the same time,
// the one armed first is first.
type timers struct {
	heap timerHeap
	byID map[uint64]*timer
}

func (t *timers) first() *timer {
	if len(t.heap) == 0 {
		return nil
	}
	return t.heap[0]
}

// arm gives the timer an id and starts it.
func (s *Session) arm(t *timer) *timer {
	s.lastTimer++
	t.id = s.lastTimer
	heap.Push(&s.timers.heap, t)
	s.timers.byID[t.id] = t
	return t
}

// disarm stops a timer. A nil or stopped timer is left alone.
func (s *Session) disarm(t *timer) {
	if t == nil || t.slot < 0 {
		return
	}
	heap.Remove(&s.timers.heap, t.slot)
	delete(s.timers.byID, t.id)
}

// shift postpones the timers that count serving time.
func (s *Session) shift(lost int64) {
	for _, t := range s.timers.heap {
		s.visited++
		if t.kind.servingTime() {
			// Moving times in place breaks the heap until the Init below.
			t.at = later(t.at, lost)
		}
	}
	heap.Init(&s.timers.heap)
}

// timerHeap implements heap.Interface.
type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].id < h[j].id
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.slot = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.slot = -1
	return t
}
