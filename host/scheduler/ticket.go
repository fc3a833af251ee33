package scheduler

import (
	"log/slog"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// ticket is a write ticket: whoever else wants to write at, above or below its
// paths waits. It lives in memory only: it goes with the edit's end, any end of
// the attempt, and the process, so it cannot leak or deadlock. An attempt has one
// at most. Tickets do not overlap.
//
// It is handed on in the order of the queue: the first who waits has it before
// being run again, so that it does not lose to somebody who comes later.
type ticket struct {
	holder *attempt
	paths  []state.Path
	queue  []writer
}

// writer is an attempt's place in a queue.
type writer struct {
	at    *attempt
	paths []state.Path  // that it wants to write
	wake  chan struct{} // of a client, instead of at: closed when it may try again
}

func overlap(a, b []state.Path) bool {
	return slices.ContainsFunc(a, func(p state.Path) bool {
		return slices.ContainsFunc(b, func(q state.Path) bool { return state.Overlaps(p, q) })
	})
}

// Begin gives the value at a path for an edit; see hostcall.Live.
func (l live) Begin(p state.Path, want bool) (*state.Node, bool, error) {
	at, ss := l.at, l.at.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if at.abandoned || ss.dead {
		return nil, false, engine.ErrStale
	}
	paths := []state.Path{p}
	if ss.mustPark(at, paths) {
		return nil, false, ss.s.cfg.Parked
	}
	if want && !slices.ContainsFunc(ss.tickets, func(t *ticket) bool { return t.holder == at }) {
		ss.tickets = append(ss.tickets, &ticket{holder: at, paths: paths})
	}
	n, ok := state.Get(ss.eng.State(), p)
	return n, ok, nil
}

// End gives back the ticket of an edit that came to nothing.
func (l live) End() {
	ss := l.at.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.giveUp(l.at)
}

// mustPark puts an attempt in the queue of a ticket that covers one of the paths,
// if another holds it. Called with mu held.
func (ss *session) mustPark(at *attempt, paths []state.Path) bool {
	t := ss.coveredBy(at, paths)
	if t != nil {
		t.queue = append(t.queue, writer{at: at, paths: paths})
	}
	return t != nil
}

// coveredBy gives a ticket of another than the attempt that covers one of the paths;
// nil: none does. Called with mu held.
func (ss *session) coveredBy(at *attempt, paths []state.Path) *ticket {
	for _, t := range ss.tickets {
		if t.holder != at && overlap(t.paths, paths) {
			return t
		}
	}
	return nil
}

// holds reports whether the attempt holds a ticket. Called with mu held.
func (ss *session) holds(at *attempt) bool {
	return slices.ContainsFunc(ss.tickets, func(t *ticket) bool { return t.holder == at })
}

// giveUp frees the ticket that the attempt holds, and its place in a queue. Called
// with mu held.
func (ss *session) giveUp(at *attempt) {
	for i, t := range ss.tickets {
		if t.holder == at {
			ss.tickets = slices.Delete(ss.tickets, i, i+1)
			ss.handOn(t.queue)
			return
		}
		if j := slices.IndexFunc(t.queue, func(w writer) bool { return w.at == at }); j >= 0 {
			t.queue = slices.Delete(t.queue, j, j+1)
			return
		}
	}
}

// handOn gives tickets to those who waited for one that is free: to the first, and
// to those behind who want other paths than those before them.
func (ss *session) handOn(queue []writer) {
	for _, w := range queue {
		if w.wake != nil {
			close(w.wake) // it takes none: its write is one tick
			continue
		}
		if w.at.abandoned || ss.mustPark(w.at, w.paths) {
			continue
		}
		ss.tickets = append(ss.tickets, &ticket{holder: w.at, paths: w.paths})
		if w.at.parked {
			w.at.parked = false
			ss.s.cores.ready(w.at)
		} else {
			w.at.unparked = true // its guest is still on the way out
		}
	}
}

// writes lists the paths that a request writes.
func writes(req engine.Request) []state.Path {
	switch r := req.(type) {
	case engine.CommitState:
		return []state.Path{r.Path}
	case engine.EditState:
		return editPaths(r.Edits)
	case engine.RunWorkflow:
		if r.Shared && r.Start != nil {
			return []state.Path{nil} // the workflow's defaults may be filled in
		}
	}
	return nil
}

// editPaths lists the paths that edits write.
func editPaths(edits []abi.Edit) []state.Path {
	paths := make([]state.Path, 0, len(edits))
	for i := range edits {
		if edits[i].Op == abi.OpTest {
			continue
		}
		p, err := state.Touches(edits[i])
		if err != nil {
			continue // refused by the reducer, by name
		}
		paths = append(paths, p)
	}
	return paths
}

// slogLevel is the level of a guest's log line; the numbers are slog's.
func slogLevel(l int64) slog.Level { return slog.Level(l) }
