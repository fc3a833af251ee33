package fair

import "container/heap"

// Timers holds the next due time of each key, in Unix nanoseconds.
type Timers[K comparable] struct {
	items []timer[K]
	index map[K]int
}

type timer[K comparable] struct {
	key K
	at  int64
}

// Set notes the due time of a key (below 0: none) and reports whether it
// is now the earliest of all.
func (h *Timers[K]) Set(key K, at int64) bool {
	if at < 0 {
		h.Remove(key)
		return false
	}
	if i, ok := h.index[key]; ok {
		// Most ticks leave the next timer as it is.
		if h.items[i].at == at {
			return false
		}
		h.items[i].at = at
		heap.Fix(h, i)
	} else {
		heap.Push(h, timer[K]{key, at})
	}
	// The caller sleeps until the earliest timer, and must wake only if that has changed.
	return h.items[0].key == key
}

// Remove forgets the timer of a key.
func (h *Timers[K]) Remove(key K) {
	if i, ok := h.index[key]; ok {
		heap.Remove(h, i)
	}
}

// DueAt reports whether the timer of a key is due at a time.
func (h *Timers[K]) DueAt(key K, at int64) bool {
	i, ok := h.index[key]
	return ok && h.items[i].at <= at
}

// First gives the key that is due first, and when.
func (h *Timers[K]) First() (key K, at int64, ok bool) {
	if len(h.items) == 0 {
		return key, 0, false
	}
	return h.items[0].key, h.items[0].at, true
}

// Len, Less and Swap implement heap.Interface.
func (h *Timers[K]) Len() int           { return len(h.items) }
func (h *Timers[K]) Less(i, j int) bool { return h.items[i].at < h.items[j].at }
func (h *Timers[K]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.index[h.items[i].key], h.index[h.items[j].key] = i, j
}

// Push appends an item; see heap.Interface.
func (h *Timers[K]) Push(x any) {
	it := x.(timer[K])
	if h.index == nil {
		h.index = map[K]int{}
	}
	h.index[it.key] = len(h.items)
	h.items = append(h.items, it)
}

// Pop removes the last item; see heap.Interface.
func (h *Timers[K]) Pop() any {
	n := len(h.items) - 1
	it := h.items[n]
	h.items = h.items[:n]
	delete(h.index, it.key)
	return it
}
