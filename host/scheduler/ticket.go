package scheduler

import (
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
	if ss.tickets.Queue(at, paths) {
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
