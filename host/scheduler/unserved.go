package scheduler

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// Time in which nobody could do anything for want of a core counts against no timeout.
// For each run and each attempt the scheduler counts the time in which an attempt was
// open and none had a core: from its beginning to its token, while it has given the
// token up, and while it is put off. When a timeout is due the count moves it, by an
// entry, and begins anew; so nothing is written but where a timeout would have struck,
// or where the session leaves memory, and the count with it.

// leastUnserved is what is worth an entry, in nanoseconds.
const leastUnserved = 1_000_000

// enlist pins the session for an attempt, which wants a core since a time. The caller holds
// ss.mu.
func (ss *session) enlist(at *attempt, before, since int64) {
	s := ss.s
	s.mu.Lock()
	defer s.mu.Unlock()
	ss.pins++
	of := ss.unserved[at.view.RunID]
	if of == nil {
		of = &fair.Unserved{}
		ss.unserved[at.view.RunID] = of
	}
	at.service.Begin(of, before, since)
}

// leave notes that an attempt no longer wants a core, and returns the time by which its
// own timeout has not moved. The caller holds ss.mu.
func (at *attempt) leave() (unspent int64) {
	s := at.ss.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.service.End(s.now())
}

// unspent returns by how much a timeout must move, once. The caller holds ss.mu.
func (ss *session) unspent(t engine.Timeout) int64 {
	// A step that waits or sleeps has no attempt in memory: what it had saved up is in its
	// record.
	if at := ss.attempts[t.Invocation]; t.Invocation != 0 && at == nil {
		var by int64
		if o := ss.suspended[t.Invocation]; o != nil {
			by, o.Unserved = o.Unserved, 0
		}
		return by
	}
	s := ss.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch of := ss.unserved[t.RunID]; {
	case t.Invocation != 0:
		return ss.attempts[t.Invocation].service.Take(s.now())
	case of != nil:
		return of.Take(s.now())
	}
	return 0
}

// extend moves a timeout by the time without a core; false: there was none. The caller
// holds ss.mu.
func (ss *session) extend(t engine.Timeout) bool {
	// Less is not worth an entry, and the timeout would hardly be another.
	by := ss.unspent(t)
	if by < leastUnserved {
		return false
	}
	if _, _, err := ss.tick(engine.Extend{Of: t, By: by}, extras{}); err != nil {
		ss.log(context.Background(), slog.LevelError, "a timeout cannot be moved", "run", t.RunID, "error", err)
		return false
	}
	return true
}

// owes reports whether a session that leaves memory has counts that no entry has. The caller
// holds Scheduler.mu, while nobody has the session pinned.
func (ss *session) owes() bool {
	for _, of := range ss.unserved {
		if of.Sum() >= leastUnserved {
			return true
		}
	}
	for _, o := range ss.suspended {
		if o.Unserved >= leastUnserved {
			return true
		}
	}
	return false
}

// settleUnserved writes the counts of a session that is about to leave memory, which
// it does when they are durable. It gives a pin back.
func (ss *session) settleUnserved() {
	defer ss.release()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return
	}
	for _, t := range ss.eng.Timeouts() {
		ss.extend(t)
	}
	for _, o := range ss.suspended { // without a timeout
		o.Unserved = 0
	}
	ss.s.mu.Lock()
	defer ss.s.mu.Unlock()
	for _, of := range ss.unserved {
		of.Drop()
	}
}
