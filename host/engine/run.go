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
	result  *abi.Event  // the stop event of a run that has completed

	pools       []pool // by step
	outermost   *collection
	collections map[uint64]*collection // open ones, without the outermost
	buffers     map[bufferKey]*buffer
	waiting     map[string]*waiting // by event type
	outside     int                 // suspended invocations that wait for an event
	standing    list.List           // of *invocation: those that stand still, longest first
	inbox       inbox
	deadline    *timer  // of the run, or of its clean-up
	work        bool    // the deadline counts only while an attempt of the run is open
	stopped     int64   // when the deadline was stopped
	seated      int     // invocations that hold a worker slot
	stalls      bool    // the run ends when nothing is left to do
	silent      string  // the last step that returned nothing
	last        *step   // the step whose invocation the present entry has ended
	begun       int64   // when its start event was routed
	ending      *ending // set while the run is being cleaned up
	heldAt      int64   // when the run was paused or blocked
	age         int64   // of a child; see firstStart

	// The invocations that have not ended, oldest first, and their number.
	oldest, newest *invocation
	alive          int

	routed      int // events, counted against the limit
	streamBytes int // bytes of the workflow's own events
	// unhandled are the events of the present entry that no step took.
	unhandled []emission
}

// begin makes a run active. The caller routes its start event.
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
	// The deadline starts stopped if it counts only open attempts: there are none yet.
	if p.Timeout > 0 {
		r.deadline = s.arm(&timer{kind: timerDeadline, at: later(s.now, p.Timeout), span: p.Timeout, run: r})
		s.count(r)
	}
	return r
}

// firstStart is when the run at the top of the run's tree first started, in Unix
// nanoseconds. Runs that wait for a core are ordered by it. A child has the age of its
// root, so a parent never waits for a child that is queued behind younger runs.
func (r *run) firstStart() int64 {
	if r.age > 0 {
		return r.age
	}
	return r.rec.Started
}

// record is the record of a run when it is created.
func (s *Session) record(runID string, p *StartPart, g *Graph) host.Run {
	rec := host.Run{
		Tenant: s.key.Tenant, HandlerID: p.HandlerID, RunID: runID, SessionID: s.key.Session,
		Workflow: g.Workflow(), Version: p.Version, Status: host.StatusRunning, Started: s.now, Updated: s.now,
		Trace: p.Trace,
	}
	if p.Parent != nil {
		rec.ParentRun, rec.ParentStep = p.Parent.RunID, p.Parent.Step
	}
	return rec
}

// settle ends the folding of an entry for a run that continues. It reports unhandled
// events and, if only the outside can move the run, reports the run as idle.
func (s *Session) settle(r *run, tellIdle bool) {
	// Idle: every invocation that is left waits for an event.
	idle := r.alive == r.outside
	for _, e := range r.unhandled {
		s.publishInternal(r, abi.TypeUnhandled, unhandledBody(r.graph, e, idle))
	}
	clear(r.unhandled)
	r.unhandled = r.unhandled[:0]
	if r.ending != nil { // a run in clean-up takes no events from outside
		if r.alive == 0 {
			s.conclude(r)
		}
		return
	}
	if s.stalled(r) {
		return
	}
	// The record of a held run says why nothing happens in it.
	if tellIdle && idle && !r.held() {
		s.publishInternal(r, abi.TypeIdle, abi.EmptyMap)
	}
	// Compare first: most entries leave the lists alone, and a change is one more
	// row to store.
	now, kept := r.waitingFor(idle, s.now), r.kept()
	if !slices.Equal(now, r.rec.WaitingFor) || !slices.Equal(kept, r.rec.Kept) {
		r.rec.WaitingFor, r.rec.Kept = now, kept
		s.changed(r)
	}
}

// stalled fails a run in which nothing is left to do: it has no invocation, and no event
// from outside could begin one.
func (s *Session) stalled(r *run) bool {
	if !r.stalls || r.alive > 0 || r.graph.fed {
		return false
	}
	// Name the step that most likely lacks a result: it is the first thing to look at.
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

// changed announces a change of the run's record.
func (s *Session) changed(r *run) {
	r.rec.Updated = s.now
	s.emit(RunChanged{Run: r.rec})
}

// end gives a run its final status and removes everything of the run from the session.
// last is its terminal event.
func (s *Session) end(r *run, status host.Status, last host.StreamEvent) host.StreamEvent {
	last.Terminal = true
	last = s.publish(r, last)
	s.drop(r)
	r.rec.Status, r.rec.Completed, r.rec.Blocked, r.rec.WaitingFor = status, s.now, nil, nil
	r.rec.Kept = nil
	delete(s.runs, r.rec.RunID)
	return last
}

// over announces the end of a run whose record is complete.
func (s *Session) over(r *run) {
	s.changed(r)
	// Clients may ask for the record after the run is gone; see Record.
	s.ended = r.rec
	s.emit(RunEnded{RunID: r.rec.RunID, HandlerID: r.rec.HandlerID})
	s.tellParent(r)
}

// complete ends a run with the stop event that a step returned.
func (s *Session) complete(r *run, stop abi.Event) {
	// A result of the clean-up does not make a cancelled run a completed one.
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
	// The run ends as cancelled or timed out: clients have been promised that.
	if r.ending != nil {
		s.conclude(r)
		return
	}
	s.end(r, host.StatusFailed, runtimeEvent(abi.TypeWorkflowFailed, f.body(nil)))
	r.rec.Error, r.rec.ErrorCode = f.err.Message, f.err.Code
	r.rec.ErrorStep, r.rec.ErrorAttempt = f.step, f.attempts
	s.over(r)
}

// block stops a run where it stands. Its attempts are abandoned but keep their slots, its
// timers stop, and arriving events wait in queues. A run that is being cleaned up ends
// instead, because no client would resume it.
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
	// A pause stopped the timers before, and they count from then.
	if !r.rec.Paused {
		r.heldAt = s.now
	}
	r.rec.Blocked = &reason
	s.count(r)
	s.changed(r)
}

// abandon returns the command that ends the invocation's attempt.
func (inv *invocation) abandon() Abandon {
	return Abandon{Invocation: inv.id, RunID: inv.run.rec.RunID, Step: inv.step.name, Attempt: inv.attempt}
}

// held reports whether the run is paused or blocked. A held run begins no attempts.
func (r *run) held() bool { return r.rec.Paused || r.rec.Blocked != nil }

// pause lets open attempts continue but begins no others. Timers that count serving time
// stop. Other timers run on, and their effects wait.
func (s *Session) pause(r *run) {
	// A block has already stopped every timer of the run.
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

// resumeRun ends a pause and a block. Attempts that the block abandoned begin again with
// their records, and stopped timers continue.
func (s *Session) resumeRun(r *run) {
	blocked := r.rec.Blocked != nil
	r.rec.Paused, r.rec.Blocked = false, nil
	s.changed(r)
	rearm := func(t *timer) {
		// A pause stops only some timers: leave those that still run alone.
		if t == nil || t.slot >= 0 {
			return
		}
		// The time that the run was held does not count against a timeout.
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
		// A pause let the attempts run on. Only a block abandoned them.
		case inv.phase == phaseRunning && blocked:
			s.seats++
			s.emit(StartAttempt{Invocation: inv.id})
		}
	}
	// Slots may have become free while no attempt could begin.
	for _, st := range r.graph.steps {
		for p := &r.pools[st.index]; p.first != nil && p.busy < st.workers; {
			s.refill(r, st)
		}
	}
	s.settle(r, true)
}

// later adds a span to a time and saturates instead of overflowing.
func later(at, span int64) int64 {
	if span > 0 && at > (1<<63-1)-span {
		return 1<<63 - 1
	}
	return at + span
}
