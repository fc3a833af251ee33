package journal

import "container/heap"

// waiter waits for a position to become durable. done has capacity 1 and receives one
// value.
type waiter struct {
	pos  uint64
	done chan error
}

// waiters is a heap ordered by position.
type waiters struct{ h waiterHeap }

func (w *waiters) push(x *waiter) { heap.Push(&w.h, x) }

// upTo removes and returns the waiters of positions at or below pos.
func (w *waiters) upTo(pos uint64) []*waiter {
	var out []*waiter
	for len(w.h) > 0 && w.h[0].pos <= pos {
		out = append(out, heap.Pop(&w.h).(*waiter))
	}
	return out
}

type waiterHeap []*waiter

func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].pos < h[j].pos }
func (h waiterHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *waiterHeap) Push(x any)        { *h = append(*h, x.(*waiter)) }
func (h *waiterHeap) Pop() any {
	old := *h
	n := len(old) - 1
	x := old[n]
	old[n] = nil
	*h = old[:n]
	return x
}
