package engine

import (
	"container/heap"
	"container/list"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// run is an active run.
type run struct {
	rec     host.Run
	graph   *Graph // of rec.Version
	limits  host.Limits
	seed    [32]byte
	handler *handler
	parent  *parentLink // nil: a client started it
	result  *abi.Event  // that it completed with

	pools       []pool // by step
	outermost   *collection
	collections map[uint64]*collection // open ones, without the outermost
	buffers     map[bufferKey]*buffer
	waiting     map[string]*waiting // by event type
	outside     int                 // invocations that wait for events
	standing    list.List           // of *invocation: those that stand still, the longest first
	inbox       inbox
	deadline    *timer  // of the run, or of its clean-up
	work        bool    // the deadline counts only while an attempt is open
	stopped     int64   // since when the deadline stands still
	seated      int     // invocations that hold a worker slot
	stalls      bool    // it ends when nothing is left to do
	silent      string  // the step that gave nothing last
	last        *step   // that ended last, by the entry that is being folded
	begun       int64   // when its start event was routed
	ending      *ending // while it is cleaned up after, else nil
	heldAt      int64   // since when it is paused or blocked
	age         int64   // of a child; see firstStart

	// The invocations that have not ended, oldest first.
	oldest, newest *invocation
	alive          int

	routed      int // events, against the limit
	streamBytes int // of the workflow's own events
	// unhandled events of the entry that is being folded.
	unhandled []emission
}

// begin makes a run active. Its start event is routed by the caller.
func (s *Session) begin(runID string, p *StartPart, g *Graph) *run {
	h := s.handlerOf(p.HandlerID)
	h.run = runID
	r := &run{
		rec:   s.record(runID, p, g),
		graph: g, limits: p.Limits.Complete(), seed: p.Seed, handler: h, begun: s.now, age: p.Age, work: p.Work, stalls: p.Stalls,
		pools:     make([]pool, len(g.steps)),
		outermost: &collection{},
	}
	if p.Parent != nil {
		r.parent = &parentLink{session: p.Parent.Session, stream: p.Parent.Stream, depth: p.Parent.Depth}
	}
	s.runs[runID] = r
	s.noteRan(g.Workflow(), p.Version)
	if p.Timeout > 0 {
		r.deadline = s.arm(&timer{kind: timerDeadline, at: later(s.now, p.Timeout), span: p.Timeout, run: r})
		s.count(r)
	}
	return r
}

// firstStart is when the run at the top of the run's tree first started, in Unix
// nanoseconds: the run's age among those that wait for a core. A child has the age
// of its root, so that a parent never waits for a child behind younger runs.
func (r *run) firstStart() int64 {
	if r.age > 0 {
		return r.age
	}
	return r.rec.Started
}

// record is the record of a run that its entry has just made.
func (s *Session) record(runID string, p *StartPart, g *Graph) host.Run {
	return host.Run{
		Tenant: s.key.Tenant, HandlerID: p.HandlerID, RunID: runID, SessionID: s.key.Session,
		Workflow: g.Workflow(), Version: p.Version, Status: host.StatusRunning, Started: s.now, Updated: s.now,
		Trace: p.Trace,
	}
}

// settle ends the folding of an entry for a run that goes on: it tells of the
// events that nobody took and, if nothing but the outside can move the
// run, that it is idle.
func (s *Session) settle(r *run, tellIdle bool) {
	idle := r.alive == r.outside
	for _, e := range r.unhandled {
		s.publishInternal(r, abi.TypeUnhandled, unhandledBody(r.graph, e, idle))
	}
	clear(r.unhandled)
	r.unhandled = r.unhandled[:0]
	if r.ending != nil { // nothing comes from outside any more
		if r.alive == 0 {
			s.conclude(r)
		}
		return
	}
	if s.stalled(r) {
		return
	}
	if tellIdle && idle && !r.held() {
		s.publishInternal(r, abi.TypeIdle, abi.EmptyMap)
	}
	now, kept := r.waitingFor(idle, s.now), r.kept()
	if !slices.Equal(now, r.rec.WaitingFor) || !slices.Equal(kept, r.rec.Kept) {
		r.rec.WaitingFor, r.rec.Kept = now, kept
		s.changed(r)
	}
}

// stalled ends a run in which nothing is left to do: it has no invocation, and no event
// that comes from outside would begin one.
func (s *Session) stalled(r *run) bool {
	if !r.stalls || r.alive > 0 || r.graph.fed {
		return false
	}
	step, what := r.silent, "no step has taken the start event"
	switch {
	case step != "":
		what = "step " + step + " has returned no event"
	case r.last != nil:
		step = r.last.name
		what = "nothing follows from what step " + step + " has returned"
	}
	s.fail(r, failure{
		step: step, elapsed: s.now - r.begun,
		err: &abi.Error{Code: host.RunStalled, Message: "nothing is left to do, and the run has no result: " + what},
	})
	return true
}

// changed announces that the record of a run is another one.
func (s *Session) changed(r *run) {
	r.rec.Updated = s.now
	s.emit(RunChanged{Run: r.rec})
}

// end gives a run its final status and takes everything of it out of the
// session. last is its terminal event.
func (s *Session) end(r *run, status host.Status, last host.StreamEvent) host.StreamEvent {
	last.Terminal = true
	last = s.publish(r, last)
	s.drop(r)
	r.rec.Status, r.rec.Completed, r.rec.Blocked, r.rec.WaitingFor = status, s.now, nil, nil
	r.rec.Kept = nil
	delete(s.runs, r.rec.RunID)
	return last
}

// over announces the end of a run, when its record is complete.
func (s *Session) over(r *run) {
	s.changed(r)
	s.ended = r.rec
	s.emit(RunEnded{RunID: r.rec.RunID, HandlerID: r.rec.HandlerID})
	s.tellParent(r)
}

// complete ends a run with the stop event that a step returned.
func (s *Session) complete(r *run, stop abi.Event) {
	if r.ending != nil {
		s.conclude(r)
		return
	}
	last := s.end(r, host.StatusCompleted, r.streamEvent(stop))
	r.rec.Result, r.result = &last, &stop
	s.over(r)
}

// fail ends a run with a failure of a step.
func (s *Session) fail(r *run, f failure) {
	if r.ending != nil {
		s.conclude(r)
		return
	}
	s.end(r, host.StatusFailed, runtimeEvent(abi.TypeWorkflowFailed, f.body(nil)))
	r.rec.Error, r.rec.ErrorCode = f.err.Message, f.err.Code
	r.rec.ErrorStep, r.rec.ErrorAttempt = f.step, f.attempts
	s.over(r)
}

// block stops a run where it stands: its attempts are abandoned but keep their
// slots, its timers stand still, and events that come wait in the queues. One that
// is being cleaned up after ends instead: nobody is to help it any more.
func (s *Session) block(r *run, reason host.Blocked) {
	if r.ending != nil {
		s.conclude(r)
		return
	}
	for inv := r.oldest; inv != nil; inv = inv.newer {
		s.visited++
		switch inv.phase {
		case phaseRunning:
			s.seats--
			held := inv.abandon()
			held.Held = true
			s.emit(held)
		case phaseSuspended:
			s.disarm(inv.suspended.timer)
		}
		s.disarm(inv.timer)
	}
	if !r.rec.Paused {
		r.heldAt = s.now
	}
	r.rec.Blocked = &reason
	s.count(r)
	s.changed(r)
}

// abandon is the command that ends the invocation's attempt.
func (inv *invocation) abandon() Abandon {
	return Abandon{Invocation: inv.id, RunID: inv.run.rec.RunID, Step: inv.step.name, Attempt: inv.attempt}
}

// held reports whether the run may begin no attempts.
func (r *run) held() bool { return r.rec.Paused || r.rec.Blocked != nil }

// pause lets attempts under way go on, and begins no others. The timers that
// count serving time stand still; others go on, and what they bring waits.
func (s *Session) pause(r *run) {
	if r.rec.Blocked == nil {
		r.heldAt = s.now
		for inv := r.oldest; inv != nil; inv = inv.newer {
			s.visited++
			if inv.timer != nil && inv.timer.kind.servingTime() {
				s.disarm(inv.timer)
			}
		}
	}
	r.rec.Paused = true
	s.count(r)
	s.changed(r)
}

// resumeRun undoes pause and block: attempts that were abandoned begin again,
// with their record, and timers that stood still go on.
func (s *Session) resumeRun(r *run) {
	blocked := r.rec.Blocked != nil
	r.rec.Paused, r.rec.Blocked = false, nil
	s.changed(r)
	rearm := func(t *timer) {
		if t == nil || t.slot >= 0 {
			return
		}
		if t.kind.servingTime() {
			t.at = later(t.at, s.now-r.heldAt)
		}
		heap.Push(&s.timers.heap, t)
		s.timers.byID[t.id] = t
	}
	s.count(r)
	for inv := r.oldest; inv != nil; inv = inv.newer {
		s.visited++
		rearm(inv.timer)
		switch {
		case inv.phase == phaseSuspended:
			rearm(inv.suspended.timer)
		case inv.phase == phaseRunning && blocked:
			s.seats++
			s.emit(StartAttempt{Invocation: inv.id})
		}
	}
	for _, st := range r.graph.steps {
		for p := &r.pools[st.index]; p.first != nil && p.busy < st.workers; {
			s.refill(r, st)
		}
	}
	s.settle(r, true)
}

// later adds a span to a time without running over.
func later(at, span int64) int64 {
	if span > 0 && at > (1<<63-1)-span {
		return 1<<63 - 1
	}
	return at + span
}
