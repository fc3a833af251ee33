package engine

import (
	"container/list"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A run that is cancelled, or whose deadline passes, is cleaned up after if some
// of its steps catch that: everything that it had under way is dropped, these
// steps are invoked, and the run ends as what it was ending as when they, and what
// follows from them, are through, or the grace period is over. Until then its
// record is that of a running run.

// ending says what a run that is being cleaned up after is ending as.
type ending struct {
	cause string // abi.CatchCancelled or abi.CatchTimeout
	// Of a timeout: what the deadline was set to, and the steps that were active
	// when it passed.
	span   int64
	active []string
}

// Ending reports whether an active run is being cleaned up after: to clients it has
// ended, but for its record.
func (s *Session) Ending(runID string) bool {
	r, ok := s.runs[runID]
	return ok && r.ending != nil
}

// message is for people: what happened to the run.
func (e *ending) message() string {
	if e.cause == abi.CatchTimeout {
		return "Workflow timed out after " + showSeconds(e.span)
	}
	return "Workflow was cancelled"
}

// timeOut ends a run at its deadline.
func (s *Session) timeOut(r *run, span int64) {
	e := &ending{cause: abi.CatchTimeout, span: span}
	for _, st := range r.graph.steps {
		if r.pools[st.index].busy+r.pools[st.index].suspended > 0 {
			e.active = append(e.active, st.name)
		}
	}
	s.cleanUp(r, e)
}

// cancel ends a run because somebody asked for it: at once if it is being
// cleaned up after already, or is blocked, as its steps cannot be relied on then.
func (s *Session) cancel(r *run) {
	switch {
	case r.ending != nil:
		s.conclude(r)
	case r.rec.Blocked != nil:
		r.ending = &ending{cause: abi.CatchCancelled}
		s.conclude(r)
	default:
		s.cleanUp(r, &ending{cause: abi.CatchCancelled})
	}
}

// cleanUp begins the end of a run that is not blocked, and comes to it at once if
// no step catches it.
func (s *Session) cleanUp(r *run, e *ending) {
	r.ending = e
	steps := r.graph.cleaners[e.cause]
	if len(steps) == 0 {
		s.conclude(r)
		return
	}
	s.drop(r)
	r.forget()
	r.rec.Paused, r.rec.WaitingFor, r.rec.Kept = false, nil, nil
	grace := int64(r.limits.CleanupTime)
	r.deadline = s.arm(&timer{kind: timerGrace, at: later(s.now, grace), span: grace, run: r})
	s.changed(r)
	f := failure{err: &abi.Error{Code: e.cause, Message: e.message()}, elapsed: s.now - r.begun}
	ev := s.newEvent(abi.Event{Type: abi.TypeStepFailed, Body: f.body(abi.Null)})
	for _, st := range steps {
		s.invoke(r, st, []abi.Event{ev}, r.outermost, nil)
	}
}

// conclude ends a run as what it was ending as.
func (s *Session) conclude(r *run) {
	e := r.ending
	if e.cause == abi.CatchTimeout {
		s.end(r, host.StatusFailed, runtimeEvent(abi.TypeWorkflowTimedOut, timedOutBody(e.span, e.active)))
		r.rec.Error, r.rec.ErrorCode = e.message(), host.RunTimeout
		r.rec.ErrorStep = strings.Join(e.active, ", ")
	} else {
		s.end(r, host.StatusCancelled, runtimeEvent(abi.TypeWorkflowCancelled, abi.EmptyMap))
		r.rec.ErrorCode = host.RunCancelled
	}
	s.over(r)
}

// drop takes the invocations of a run, those that wait too, and its deadline out
// of the session. Attempts that run are abandoned.
func (s *Session) drop(r *run) {
	for inv := r.oldest; inv != nil; inv = inv.newer {
		s.visited++
		switch {
		case inv.phase == phaseRunning && r.rec.Blocked == nil:
			s.seats--
			s.emit(inv.abandon())
		case inv.phase == phaseSuspended:
			s.disarm(inv.suspended.timer)
			delete(s.calls, inv.id)
			s.emit(inv.abandon())
		case inv.halfway: // its record is kept for when it goes on
			s.emit(inv.abandon())
		}
		s.disarm(inv.timer)
		delete(s.invocations, inv.id)
		s.leave(inv, true)
	}
	s.disarm(r.deadline)
	r.alive, r.seated, r.oldest, r.newest = 0, 0, nil, nil
}

// forget drops what a run keeps between its invocations: queues, collections,
// joins, buffers, and the events that nobody has waited for yet.
func (r *run) forget() {
	r.pools = make([]pool, len(r.graph.steps))
	r.outermost, r.collections, r.buffers = &collection{}, nil, nil
	r.waiting, r.standing, r.outside, r.inbox = nil, list.List{}, 0, inbox{}
}
