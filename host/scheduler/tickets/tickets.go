// Package tickets has the write tickets of a session: who has parts of its state to itself
// for a while, and who waits for them.
//
// It must not depend on what a holder is, or how its writes are made. Its types have no mutex:
// the caller holds the session's.
package tickets

import (
	"slices"

	"github.com/weftrun/weft/host/state"
)

// ticket is a write ticket: other writers at, above or below its paths wait. It lives in
// memory only. It ends with the edit, with the attempt, and with the process, so it cannot
// leak or deadlock. A holder has one
// at most. Tickets do not overlap.
//
// It is handed on in the order of the queue: the first who waits has it before
// being run again, so that it does not lose to somebody who comes later.
type ticket[H comparable] struct {
	holder H
	paths  []state.Path
	queue  []writer[H]
}

// writer is a place in a queue.
type writer[H comparable] struct {
	holder H
	paths  []state.Path  // that it wants to write
	wake   chan struct{} // of a client, instead of a holder: closed when it may try again
}

// Holders is what a table has to know of those who wait.
type Holders[H comparable] interface {
	// Wanted reports whether one that waits still wants to write.
	Wanted(h H) bool
	// Granted says that one that has waited has its ticket now.
	Granted(h H)
}

// Table has the tickets of a session.
type Table[H comparable] struct {
	holders Holders[H]
	tickets []*ticket[H]
}

// Init begins without tickets.
func (t *Table[H]) Init(holders Holders[H]) { t.holders = holders }

// Len is the number of tickets.
func (t *Table[H]) Len() int { return len(t.tickets) }

// Holds reports whether a holder has a ticket.
func (t *Table[H]) Holds(h H) bool {
	return slices.ContainsFunc(t.tickets, func(o *ticket[H]) bool { return o.holder == h })
}

// Take gives a holder a ticket of paths that no other ticket covers, unless it has one.
func (t *Table[H]) Take(h H, paths []state.Path) {
	if !t.Holds(h) {
		t.tickets = append(t.tickets, &ticket[H]{holder: h, paths: paths})
	}
}

// Queue puts a holder in the queue of a ticket that covers one of the paths, if another
// holds it; false: none does.
func (t *Table[H]) Queue(h H, paths []state.Path) bool {
	for _, o := range t.tickets {
		if o.holder != h && overlap(o.paths, paths) {
			o.queue = append(o.queue, writer[H]{holder: h, paths: paths})
			return true
		}
	}
	return false
}

// Await puts a client in the queue of a ticket that covers one of the paths. free is closed
// when the client may try again; nil: there is no such ticket.
func (t *Table[H]) Await(paths []state.Path) (free chan struct{}) {
	for _, o := range t.tickets {
		if overlap(o.paths, paths) {
			free = make(chan struct{})
			o.queue = append(o.queue, writer[H]{paths: paths, wake: free})
			return free
		}
	}
	return nil
}

// GiveUp frees the ticket of a holder, or its place in a queue.
func (t *Table[H]) GiveUp(h H) {
	for i, o := range t.tickets {
		if o.holder == h {
			t.tickets = slices.Delete(t.tickets, i, i+1)
			t.handOn(o.queue)
			return
		}
		if j := slices.IndexFunc(o.queue, func(w writer[H]) bool { return w.wake == nil && w.holder == h }); j >= 0 {
			o.queue = slices.Delete(o.queue, j, j+1)
			return
		}
	}
}

// handOn gives tickets to those who waited for one that is free: to the first, and
// to those behind who want other paths than those before them.
func (t *Table[H]) handOn(queue []writer[H]) {
	for _, w := range queue {
		// A client takes no ticket: its write is one tick.
		if w.wake != nil {
			close(w.wake)
			continue
		}
		if !t.holders.Wanted(w.holder) || t.Queue(w.holder, w.paths) {
			continue
		}
		t.tickets = append(t.tickets, &ticket[H]{holder: w.holder, paths: w.paths})
		t.holders.Granted(w.holder)
	}
}
