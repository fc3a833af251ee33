package engine

import (
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// fold applies an entry. root is the state after the entry's changes if the caller has
// it, which saves working it out again.
func (s *Session) fold(e *Entry, root *state.Node) ([]Command, error) {
	// A journal that was cut begins with the snapshot that replaces the cut entries.
	if s.seq == 0 && e.begins() {
		if err := s.adopt(e); err != nil {
			return nil, err
		}
	}
	// A gap or a repeated entry means that the store lost or mixed up rows.
	if e.Seq != s.seq+1 {
		return nil, corrupt(e, "it follows entry %d", s.seq)
	}
	// Timers rely on a clock that does not go back.
	if e.At < s.now {
		return nil, corrupt(e, "its time is before that of the entry before")
	}
	s.seq, s.now = e.Seq, e.At
	s.visited++
	var err error
	switch e.Kind {
	case EntryStart:
		err = s.foldStart(e, root)
	case EntryQueue:
		err = s.foldQueue(e)
	case EntryBegin:
		err = s.foldBegin(e, root)
	case EntryTimer:
		err = s.foldTimer(e)
	case EntryEdit, EntrySend, EntryStream, EntryCollect, EntryFinish, EntryWait, EntrySleep, EntryChild, EntryResource:
		err = s.foldAttempt(e, root)
	case EntryPost, EntryCancel, EntryBlock, EntryPause, EntryResume:
		err = s.foldOutside(e)
	case EntryDelivered:
		err = s.foldDelivered(e)
	case EntryChildEnded:
		err = s.foldEnded(e)
	case EntryChildShown:
		err = s.foldShown(e)
	case EntryResourceAnswered:
		err = s.foldAnswered(e)
	case EntryAnswerPart:
		err = s.foldDelta(e)
	case EntryPatch:
		err = s.change(e, root)
	case EntrySnapshot: // the session already holds what the snapshot says
		// The session must be the same whether it is loaded from here or from further
		// back.
		if !e.Ran {
			s.ForgetRan()
		}
	// adopt has restored the snapshot. The runs must still be started.
	case EntryFork:
		if e.Seq != 1 {
			return nil, corrupt(e, "a fork is not the first entry of its session")
		}
		s.foldFork()
	case EntryRetry:
		err = s.foldRerun(e)
	case EntryMigrate:
		err = s.foldMigrate(e)
	case EntryShift:
		if e.Lost < 0 {
			return nil, corrupt(e, "it moves timers back")
		}
		s.shift(e.Lost)
	case EntryExtend:
		err = s.foldExtend(e)
	default:
		err = corrupt(e, "unknown kind %d", e.Kind)
	}
	// The commands are dropped on an error: the caller must not act on half an entry.
	out := s.out
	s.out = nil
	if err != nil {
		return nil, err
	}
	return out, nil
}

// change applies the entry's changes to the state.
func (s *Session) change(e *Entry, root *state.Node) error {
	if root != nil {
		s.root = root
		return nil
	}
	if len(e.Changes) == 0 {
		return nil
	}
	changes, err := state.DecodeChanges(e.Changes)
	if err == nil {
		root, err = state.Fold(s.root, changes)
	}
	if err != nil {
		return fmt.Errorf("%w: entry %d: %w", errCorrupt, e.Seq, err)
	}
	s.root = root
	return nil
}

func (s *Session) foldStart(e *Entry, root *state.Node) error {
	return s.foldRun(e, e.RunID, e.Start, root)
}

// foldRun folds the start of a run.
func (s *Session) foldRun(e *Entry, runID string, p *StartPart, root *state.Node) error {
	g, err := s.newRun(e, runID, p)
	if err != nil {
		return err
	}
	// The defaults of the workflow must be in the state before the first step can read it.
	if err := s.change(e, root); err != nil {
		return err
	}
	s.launch(s.begin(runID, p, g), p.Event)
	return nil
}

// launch routes the start event of a run that has just begun.
func (s *Session) launch(r *run, start abi.Event) {
	s.changed(r)
	r.routed++
	s.route(r, emission{event: start, in: r.outermost})
	s.settle(r, true)
}

// foldOutside folds the actions of clients and operators on a run.
func (s *Session) foldOutside(e *Entry) error {
	// A queued run is not among s.runs.
	if q, waits := s.turns.of(e.RunID); waits && e.Kind == EntryCancel {
		s.cancelQueued(q)
		return nil
	}
	r, ok := s.runs[e.RunID]
	if !ok {
		return corrupt(e, "unknown run")
	}
	switch e.Kind {
	case EntryCancel:
		s.cancel(r)
	case EntryBlock:
		if e.Block == nil || r.rec.Blocked != nil {
			return corrupt(e, "the run is blocked already, or the entry has no reason")
		}
		s.block(r, *e.Block)
	case EntryPause:
		if r.rec.Paused || r.ending != nil {
			return corrupt(e, "the run is paused already, or is ending")
		}
		s.pause(r)
	case EntryResume:
		if !r.held() || e.Anew && r.rec.Blocked == nil {
			return corrupt(e, "the run is neither paused nor blocked")
		}
		// The attempts must be new before resumeRun starts them.
		if e.Anew {
			s.startOver(r)
		}
		s.resumeRun(r)
	case EntryPost:
		if e.Event == nil || !r.graph.knows(e.Event.Type) || r.ending != nil {
			return corrupt(e, "it has no event of a known type, or the run is ending")
		}
		// An event of a client counts against the run's limit like an event of a step.
		r.routed++
		s.changed(r)
		s.route(r, emission{event: *e.Event, in: r.outermost, step: e.Step})
		s.settle(r, true)
	}
	return nil
}

// foldAttempt folds an effect of an open attempt.
func (s *Session) foldAttempt(e *Entry, root *state.Node) error {
	inv, err := s.openAttempt(e.Invocation, e.Attempt)
	if err != nil || inv.run.rec.RunID != e.RunID {
		return corrupt(e, "attempt %d of invocation %d is not open", e.Attempt, e.Invocation)
	}
	r := inv.run
	switch e.Kind {
	// An edit moves nothing in the run, so nothing has to settle.
	case EntryEdit:
		return s.change(e, root)
	case EntryCollect:
		if e.Collect == nil {
			return corrupt(e, "it collects nothing")
		}
		return s.foldCollect(e, inv)
	case EntryFinish:
		return s.foldFinish(e, inv, root)
	case EntryWait:
		return s.foldWait(e, inv)
	case EntrySleep:
		return s.foldSleep(e, inv)
	case EntryChild:
		return s.foldChild(e, inv, root)
	case EntryResource:
		return s.foldResource(e, inv)
	}
	if e.Event == nil || !r.graph.knows(e.Event.Type) {
		return corrupt(e, "it has no event of a known type")
	}
	effect := s.sent
	if e.Kind == EntryStream {
		effect = s.written
	}
	// If the effect broke a limit, the run is over and must not be touched.
	if effect(inv, *e.Event, e.Step) {
		s.settle(r, false)
	}
	return nil
}

func (r *run) kind(ev abi.Event) abi.EventKind { return r.graph.types[ev.Type].kind }

// admit counts n events that an invocation emits. If they exceed the limit, the run
// fails.
func (s *Session) admit(inv *invocation, n int) bool {
	r := inv.run
	if n <= r.limits.RunEvents-r.routed {
		r.routed += n
		return true
	}
	s.fail(r, inv.failure(refusal(host.RunLimitExceeded, "the run has more than %d events", r.limits.RunEvents), s.now))
	return false
}

// published puts one of the workflow's own events on the stream. If the stream's limit is
// exceeded, the run fails instead.
func (s *Session) published(inv *invocation, ev abi.Event) bool {
	r := inv.run
	n := len(ev.Type) + len(ev.Body)
	if n <= r.limits.StreamBytes-r.streamBytes {
		r.streamBytes += n
		s.publish(r, r.streamEvent(ev))
		return true
	}
	s.fail(r, inv.failure(refusal(host.RunLimitExceeded, "the run has written more than %d bytes to its stream", r.limits.StreamBytes), s.now))
	return false
}

// failure describes the failure of the invocation at the given time.
func (inv *invocation) failure(err *abi.Error, now int64) failure {
	return failure{step: inv.step.name, err: err, attempts: inv.attempt, elapsed: now - inv.start}
}

func (s *Session) foldFinish(e *Entry, inv *invocation, root *state.Node) error {
	p, r := e.Finish, inv.run
	if p == nil || !p.List && len(p.Events) > 1 {
		return corrupt(e, "it has no valid result")
	}
	for i := range p.Events {
		if !r.graph.knows(p.Events[i].Type) {
			return corrupt(e, "%s is not a known type", clip(p.Events[i].Type))
		}
	}
	// A failed attempt costs fuel too.
	r.rec.Fuel += p.Fuel
	if p.Err != nil {
		s.failed(inv, p.Err, e.Retry)
		return nil
	}
	if err := s.change(e, root); err != nil {
		return err
	}
	// Staged events go out before the events that the step returns.
	if goesOn, err := s.foldStaged(e, inv); err != nil || !goesOn {
		return err
	}
	// An invocation without a result may be why the run stalls: keep the step's name.
	output := ""
	if len(p.Events) > 0 {
		output = p.Events[0].Type
	} else {
		r.silent = inv.step.name
	}
	s.unseat(inv, output)
	s.remove(inv)
	r.rec.Steps++
	// A stop event ends the run. Other invocations of the run are dropped.
	if !p.List && len(p.Events) == 1 && r.kind(p.Events[0]) == abi.KindStop {
		s.complete(r, p.Events[0])
		return nil
	}
	if !s.admit(inv, len(p.Events)) {
		return nil
	}
	// The question must be on the stream before any step can react to the event.
	for _, ev := range p.Events {
		if r.kind(ev) == abi.KindInputRequired && !s.published(inv, ev) {
			return nil
		}
	}
	s.changed(r)
	s.refill(r, inv.step)
	// The events must be routed before the collection is released, or it could close
	// early.
	s.emitResult(inv, p)
	s.settle(r, true)
	return nil
}

// emitResult routes the events that an invocation returned. A list opens a collection.
func (s *Session) emitResult(inv *invocation, p *FinishPart) {
	r, in := inv.run, inv.in
	if p.List {
		in = s.open(r, inv.step, p.Events, inv.in, inv.lineage)
	}
	for _, ev := range p.Events {
		s.route(r, emission{event: ev, in: in, lineage: inv.lineage, shown: r.kind(ev) == abi.KindInputRequired})
	}
	// Release the part of the collection that stands for the emission itself.
	if p.List {
		s.release(r, in)
	}
	s.release(r, inv.in)
}

// failed ends an attempt that failed. A retry follows, or another step catches the
// failure, or the run fails.
func (s *Session) failed(inv *invocation, err *abi.Error, retry *RetryPart) {
	r := inv.run
	s.unseat(inv, "")
	f := inv.failure(err, s.now)
	catcher := inv.step.catcher
	switch {
	case retry != nil:
		// The invocation keeps its place in its collection, and other invocations may use
		// its worker while it waits.
		inv.lastErr = err
		s.nextAttempt(inv)
		inv.phase = phaseWaiting
		s.stand(inv)
		inv.timer = s.arm(&timer{kind: timerRetry, at: retry.Due, run: r, inv: inv})
		s.changed(r)
		s.refill(r, inv.step)
	case catcher != nil && inv.lineage.count(catcher.index) < catcher.maxRecoveries:
		// The limit of recoveries counts along the path of events, so a catcher that
		// fails again and again cannot keep the run alive for ever.
		s.remove(inv)
		r.rec.Steps++
		s.changed(r)
		s.refill(r, inv.step)
		// A caller must be able to recognise the failure of the step that should have
		// answered.
		f.key, f.value = inv.failedField()
		ev := s.newEvent(abi.Event{Type: abi.TypeStepFailed, Body: failedBody(f, inv)})
		s.invoke(r, catcher, []abi.Event{ev}, inv.in, inv.lineage.recovered(catcher.index))
		s.release(r, inv.in)
	default:
		// Nobody handles the failure: the run fails with it.
		s.remove(inv)
		r.rec.Steps++
		s.fail(r, f)
		return
	}
	s.settle(r, true)
}

// nextAttempt discards what belongs to the attempt and not to its invocation.
func (s *Session) nextAttempt(inv *invocation) {
	inv.attempt++
	inv.calls.fresh = 0
	inv.slept = 0
	s.leave(inv, false)
	inv.forgetFailures()
	for _, w := range inv.waiters {
		w.late = 0 // the number of a call means something else in the next attempt
	}
}

func (s *Session) foldTimer(e *Entry) error {
	t, ok := s.timers.byID[e.Timer]
	if !ok || t.run.rec.RunID != e.RunID || t.at > e.At {
		return corrupt(e, "timer %d is not due", e.Timer)
	}
	s.disarm(t)
	switch t.kind {
	case timerDeadline:
		s.timeOut(t.run, t.span)
	// The steps that clean up have used up their time.
	case timerGrace:
		s.conclude(t.run)
	case timerAttempt:
		// The attempt may still run: its caller must stop it before another attempt
		// begins.
		s.emit(t.inv.abandon())
		s.failed(t.inv, t.overdue(), e.Retry)
	case timerSleep:
		// The repeated call finds by its number that its sleep is over.
		t.inv.slept = t.inv.suspended.n
		s.resume(t.inv)
		s.settle(t.run, false)
	case timerWait:
		w := t.inv.suspended.waiter
		value, called := w.called()
		// The repeated call finds by its number that its time ran out.
		w.late = t.inv.suspended.n
		s.resume(t.inv)
		if called {
			// Nobody waits for the answer now, so nobody needs to work it out.
			s.withdraw(t.run, value)
		}
		s.settle(t.run, false)
	case timerRetry:
		// The time of the next attempt has come, but its step may have no free worker.
		t.inv.moveOn()
		t.inv.timer = nil
		s.changed(t.run)
		s.seatOrQueue(t.inv)
		s.settle(t.run, false)
	}
	return nil
}
