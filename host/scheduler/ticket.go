package scheduler

import (
	"log/slog"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// ticket is the write ticket of a session's path: whoever else wants to write
// at, above or below it waits. It lives in memory only: it goes with the edit's
// end, any end of the attempt, and the process, so it cannot leak or deadlock.
type ticket struct {
	holder *attempt
	path   state.Path
	queue  []*attempt // who waits, in order
}

// Begin gives the value at a path for an edit; see hostcall.Live.
func (l live) Begin(p state.Path, want bool) (*state.Node, bool, error) {
	at, ss := l.at, l.at.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if at.abandoned || ss.dead {
		return nil, false, engine.ErrStale
	}
	if ss.mustPark(at, []state.Path{p}) {
		return nil, false, ss.s.cfg.Parked
	}
	if want && ss.ticket == nil {
		ss.ticket = &ticket{holder: at, path: p}
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

// mustPark puts an attempt in the queue of the ticket that covers one of the
// paths, if another holds it. Called with mu held.
func (ss *session) mustPark(at *attempt, paths []state.Path) bool {
	t := ss.ticket
	if t == nil || t.holder == at {
		return false
	}
	for _, p := range paths {
		if state.Overlaps(t.path, p) {
			t.queue = append(t.queue, at)
			return true
		}
	}
	return false
}

// giveUp frees the ticket if the attempt holds it, and its place in the queue.
// Called with mu held.
func (ss *session) giveUp(at *attempt) {
	t := ss.ticket
	if t == nil {
		return
	}
	if t.holder != at {
		for i, w := range t.queue {
			if w == at {
				t.queue = append(t.queue[:i], t.queue[i+1:]...)
				return
			}
		}
		return
	}
	ss.ticket = nil
	for _, w := range t.queue {
		switch {
		case w.parked:
			w.parked = false
			ss.s.ready(w)
		case !w.abandoned:
			w.unparked = true // its guest is still on the way out
		}
	}
}

// writes lists the paths that a request writes.
func writes(req engine.Request) []state.Path {
	switch r := req.(type) {
	case engine.CommitState:
		return []state.Path{r.Path}
	case engine.EditState:
		paths := make([]state.Path, 0, len(r.Edits))
		for i := range r.Edits {
			if r.Edits[i].Op == abi.OpTest {
				continue
			}
			p, err := state.ParsePath(r.Edits[i].Path)
			if err != nil {
				continue // refused by the reducer, by name
			}
			paths = append(paths, p)
		}
		return paths
	case engine.RunWorkflow:
		if r.Shared && r.Start != nil {
			return []state.Path{nil} // the workflow's defaults may be filled in
		}
	}
	return nil
}

// slogLevel is the level of a guest's log line; the numbers are slog's.
func slogLevel(l int64) slog.Level { return slog.Level(l) }
