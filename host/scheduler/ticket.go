package scheduler

import (
	"log/slog"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

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
	if want {
		ss.tickets.Take(at, paths)
	}
	n, ok := state.Get(ss.eng.State(), p)
	return n, ok, nil
}

// End gives back the ticket of an edit that failed.
func (l live) End() {
	ss := l.at.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.tickets.GiveUp(l.at)
}

// mustPark puts an attempt in the queue of a ticket that covers one of the paths,
// if another holds it. The caller holds mu.
func (ss *session) mustPark(at *attempt, paths []state.Path) bool {
	return ss.tickets.Queue(at, paths)
}

// holders is a session as its write tickets see it.
type holders struct{ *session }

// Wanted implements tickets.Holders.
func (holders) Wanted(at *attempt) bool { return !at.abandoned }

// Granted implements tickets.Holders.
func (h holders) Granted(at *attempt) {
	// A guest that is still on the way out is run again by at.end.
	if !at.parked {
		at.unparked = true
		return
	}
	at.parked = false
	h.s.cores.ready(at)
}

// slogLevel is the level of a guest's log line; the numbers are slog's.
func slogLevel(l int64) slog.Level { return slog.Level(l) }
