package engine

import (
	"container/list"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Steps may catch the cancellation of their run, or its timeout, to clean up. When such a
// run is cancelled or its deadline passes, the session drops all open work of the run and
// invokes these steps. The run ends when they, and everything that follows from them,
// have finished, or when the grace period is over. Until then its record says that it
// runs.

// ending says how a run that is being cleaned up will end.
type ending struct {
	cause string // abi.CatchCancelled or abi.CatchTimeout
	// Of a timeout: the length of the deadline, and the steps that were active when it
	// passed.
	span   int64
	active []string
}

// Ending reports whether an active run is being cleaned up. Clients see such a run as
// ended, except in its record.
func (s *Session) Ending(runID string) bool {
	r, ok := s.runs[runID]
	return ok && r.ending != nil
}

// message describes the end of the run for people.
func (e *ending) message() string {
	if e.cause == abi.CatchTimeout {
		return "Workflow timed out after " + showSeconds(e.span)
	}
	return "Workflow was cancelled"
}

// timeOut ends a run at its deadline.
func (s *Session) timeOut(r *run, span int64) {
	e := &ending{cause: abi.CatchTimeout, span: span}
	// Name the steps now: the clean-up drops their invocations.
	for _, st := range r.graph.steps {
		if r.pools[st.index].busy+r.pools[st.index].suspended > 0 {
			e.active = append(e.active, st.name)
		}
	}
	s.cleanUp(r, e)
}

// cancel ends a run on request. It ends the run at once if the run is already being
// cleaned up or is blocked: the steps of a blocked run cannot be relied on.
func (s *Session) cancel(r *run) {
	switch {
	case r.ending != nil:
		// The second request does not wait for the clean-up.
		s.conclude(r)
	case r.rec.Blocked != nil:
		r.ending = &ending{cause: abi.CatchCancelled}
		s.conclude(r)
	default:
		s.cleanUp(r, &ending{cause: abi.CatchCancelled})
	}
}

// cleanUp begins the end of a run that is not blocked, and ends it at once if no step
// catches the cause.
func (s *Session) cleanUp(r *run, e *ending) {
	r.ending = e
	steps := r.graph.cleaners[e.cause]
	if len(steps) == 0 {
		s.conclude(r)
		return
	}
	// What the run was doing must not go on beside its clean-up.
	s.drop(r)
	r.forget()
	// A paused run must clean up too.
	r.rec.Paused, r.rec.WaitingFor, r.rec.Kept = false, nil, nil
	grace := int64(r.limits.CleanupTime)
	r.deadline = s.arm(&timer{kind: timerGrace, at: later(s.now, grace), span: grace, run: r})
	s.changed(r)
	f := failure{err: &abi.Error{Code: e.cause, Message: e.message()}, elapsed: s.now - r.begun}
	// All steps get the same event: an event has one id however many steps take it.
	ev := s.newEvent(abi.Event{Type: abi.TypeStepFailed, Body: f.body(abi.Null)})
	for _, st := range steps {
		s.invoke(r, st, []abi.Event{ev}, r.outermost, nil)
	}
}

// conclude ends a run in the way that its ending says.
func (s *Session) conclude(r *run) {
	e := r.ending
	if e.cause == abi.CatchTimeout {
		s.end(r, host.StatusFailed, runtimeEvent(abi.TypeWorkflowTimedOut, timedOutBody(e.span, e.active)))
		// The record is completed after end, which publishes the terminal event first.
		r.rec.Error, r.rec.ErrorCode = e.message(), host.RunTimeout
		r.rec.ErrorStep = strings.Join(e.active, ", ")
	} else {
		s.end(r, host.StatusCancelled, runtimeEvent(abi.TypeWorkflowCancelled, abi.EmptyMap))
		r.rec.ErrorCode = host.RunCancelled
	}
	s.over(r)
}

// drop removes the invocations of a run, suspended ones included, and its deadline from
// the session. Running attempts are abandoned.
func (s *Session) drop(r *run) {
	for inv := r.oldest; inv != nil; inv = inv.newer {
		s.visited++
		switch {
		// A blocked run has abandoned its attempts already, and they do not count as
		// seats.
		case inv.phase == phaseRunning && r.rec.Blocked == nil:
			s.seats--
			s.emit(inv.abandon())
		case inv.phase == phaseSuspended:
			s.disarm(inv.suspended.timer)
			// An answer that is still to come finds no call, and is refused as stale.
			delete(s.calls, inv.id)
			s.emit(inv.abandon())
		case inv.halfway: // the caller keeps the record of a suspended attempt
			s.emit(inv.abandon())
		}
		s.disarm(inv.timer)
		delete(s.invocations, inv.id)
		s.leave(inv, true)
	}
	s.disarm(r.deadline)
	r.alive, r.seated, r.oldest, r.newest = 0, 0, nil, nil
}

// forget discards what a run keeps between its invocations: queues, collections, joins,
// buffers, and the events in its inbox.
func (r *run) forget() {
	r.pools = make([]pool, len(r.graph.steps))
	r.outermost, r.collections, r.buffers = &collection{}, nil, nil
	r.waiting, r.standing, r.outside, r.inbox = nil, list.List{}, 0, inbox{}
}
