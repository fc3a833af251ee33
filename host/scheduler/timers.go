package scheduler

import (
	"container/heap"

	"github.com/weftrun/weft/host"
)

// timerHeap holds the next due time of each loaded session.
type timerHeap struct {
	items []timerItem
	index map[host.SessionKey]int
}

type timerItem struct {
	key host.SessionKey
	at  int64
}

// set notes a session's due time (host.WakeNever: none) and reports whether it
// is now the earliest of all.
func (h *timerHeap) set(key host.SessionKey, at int64) bool {
	if at == host.WakeNever {
		h.remove(key)
		return false
	}
	if i, ok := h.index[key]; ok {
		if h.items[i].at == at {
			return false
		}
		h.items[i].at = at
		heap.Fix(h, i)
	} else {
		heap.Push(h, timerItem{key, at})
	}
	return h.items[0].key == key
}

func (h *timerHeap) remove(key host.SessionKey) {
	if i, ok := h.index[key]; ok {
		heap.Remove(h, i)
	}
}

// dueAt reports whether a session's timer is due at a time.
func (h *timerHeap) dueAt(key host.SessionKey, at int64) bool {
	i, ok := h.index[key]
	return ok && h.items[i].at <= at
}

func (h *timerHeap) first() (host.SessionKey, int64, bool) {
	if len(h.items) == 0 {
		return host.SessionKey{}, 0, false
	}
	return h.items[0].key, h.items[0].at, true
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *timerHeap) Len() int           { return len(h.items) }
func (h *timerHeap) Less(i, j int) bool { return h.items[i].at < h.items[j].at }
func (h *timerHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.index[h.items[i].key], h.index[h.items[j].key] = i, j
}
func (h *timerHeap) Push(x any) {
	it := x.(timerItem)
	if h.index == nil {
		h.index = map[host.SessionKey]int{}
	}
	h.index[it.key] = len(h.items)
	h.items = append(h.items, it)
}
func (h *timerHeap) Pop() any {
	n := len(h.items) - 1
	it := h.items[n]
	h.items = h.items[:n]
	delete(h.index, it.key)
	return it
}
