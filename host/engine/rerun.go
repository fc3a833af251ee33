package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// A run that has failed can go on where it did: as a new run of its handler, made
// of what the failed one was just before, on the state that the session has now.
// The invocation that failed begins anew, with all of its attempts before it; what
// else was open goes on as in a fork. As the failed run is over, and was of this
// session, the ids inside (invocations, events, calls) are free again, and the
// records of attempts go on to fit.

// Rerun lets a run go on that has failed: the snapshot is what [Session.Rerun] made
// of its past.
type Rerun struct {
	RunID    string
	Snapshot []byte
	Held     []HeldAttempt // records of attempts that go on
}

func (Rerun) tick() {}

// Rerun turns the session, a copy from just before a run failed, into that of the
// run that goes on in its place: with invocation, if it is one of the run's, begun
// anew, and with its whole timeout. version is "", or the one with which it goes on.
// See [Session.Fork] for the rest.
//
// # Errors
//
// As [Session.Fork] and [Session.MayMigrate].
func (s *Session) Rerun(runID string, invocation uint64, version string, t ForkTarget) (runs []ForkedRun, anew []host.Renewed, err error) {
	r, err := s.activeRun(runID)
	if err != nil {
		return nil, nil, err
	}
	if r.held() {
		s.resumeRun(r)
	}
	if inv := s.invocations[invocation]; inv != nil && inv.run == r {
		s.beginAgain(inv)
	}
	if d := r.deadline; d != nil {
		s.disarm(d)
		r.deadline = s.arm(&timer{kind: timerDeadline, at: later(s.now, d.span), span: d.span, run: r})
		s.count(r)
	}
	r.routed, r.streamBytes = 0, 0 // counts of the run that failed
	if version != "" && version != r.rec.Version {
		g, err := s.MayMigrate(runID, version)
		if err != nil {
			return nil, nil, err
		}
		s.move(r, version, g)
	}
	if runs, anew, err = s.Fork(runID, t); err == nil {
		s.root = state.Empty() // the session's own is another by now
	}
	return runs, anew, err
}

// beginAgain puts an invocation back to before its first attempt, but for what it
// was answered: events, results of children, answers of resources.
func (s *Session) beginAgain(inv *invocation) {
	s.unseat(inv, "")
	for key, c := range inv.children {
		if key[0] != '=' || c.err != nil {
			delete(inv.children, key)
		}
	}
	inv.forgetFailures() // with what was read before somebody else was first
	for id, c := range inv.asked {
		if c.value == nil {
			delete(inv.asked, id)
		}
	}
	s.nextAttempt(inv)
	inv.attempt, inv.lastErr, inv.suspensions = 1, nil, 0
	inv.began, inv.askedBytes = false, 0
	for _, c := range inv.asked {
		inv.askedBytes += len(c.part.Payload) + len(c.value)
	}
	s.seatOrQueue(inv)
	s.refill(inv.run, inv.step)
}

// startOver makes the attempts that a block has cut off those that come next.
func (s *Session) startOver(r *run) {
	for inv := r.oldest; inv != nil; inv = inv.newer {
		if inv.phase != phaseRunning {
			continue
		}
		s.visited++
		s.nextAttempt(inv)
		if t := inv.timer; t != nil {
			t.at = later(r.heldAt, t.span) // it goes on from there
		}
	}
}

// decideRerun refuses what cannot be joined before it becomes an entry.
func (s *Session) decideRerun(e *Entry, t Rerun) (decision, error) {
	saved, err := readSnapshot(t.Snapshot)
	if err != nil {
		return decision{}, err
	}
	probe, err := Restore(s.key, s.graphs, t.Snapshot)
	if err != nil {
		return decision{}, err
	}
	if _, err := probe.activeRun(t.RunID); err != nil {
		return decision{}, err
	}
	if err := s.mayJoin(saved, probe); err != nil {
		return decision{}, err
	}
	e.Kind, e.RunID, e.Rerun, e.Held = EntryRetry, t.RunID, t.Snapshot, t.Held
	return decision{entry: e}, nil
}

// mayJoin reports whether nothing in a snapshot is there already.
func (s *Session) mayJoin(saved *savedSession, probe *Session) error {
	for _, h := range saved.Handlers {
		if _, active, _ := s.HandlerRun(h.ID); active {
			return host.Errorf(host.CodeConflict, "Handler %s is already running", clip(h.ID))
		}
		if _, known := s.runs[h.Run]; known || s.notBegun(h.Run) != nil || s.children[h.Run] != nil {
			return host.Errorf(host.CodeConflict, "Run %s is already active", clip(h.Run))
		}
	}
	for id := range probe.invocations {
		if s.invocations[id] != nil || id > s.lastInvocation {
			return badSnapshot("invocation %d is not of a run that was here before", id)
		}
	}
	for id := range probe.children {
		if s.children[id] != nil {
			return badSnapshot("child %s is there already", clip(id))
		}
	}
	past := []uint64{saved.LastEvent, saved.LastCollection, saved.LastWait, saved.LastCall}
	for i, last := range []uint64{s.lastEvent, s.lastCollection, s.lastWait, s.lastCall} {
		if past[i] > last {
			return badSnapshot("it has given numbers that were not given here")
		}
	}
	if len(saved.Turns) > 0 {
		return badSnapshot("it has runs that wait for their turn")
	}
	return nil
}

// foldRerun adds the runs of the entry to the session.
func (s *Session) foldRerun(e *Entry) error {
	saved, err := readSnapshot(e.Rerun)
	if err == nil {
		err = s.join(saved)
	}
	if err != nil {
		return fmt.Errorf("%w: entry %d: %w", errCorrupt, e.Seq, err)
	}
	if s.runs[e.RunID] == nil {
		return corrupt(e, "it has no run %s", clip(e.RunID))
	}
	var open []*invocation
	var out []*outcall
	for _, h := range saved.Handlers {
		r := s.runs[h.Run]
		if r == nil {
			continue
		}
		s.emit(RunChanged{Run: r.rec})
		s.noteRan(r.graph.Workflow(), r.rec.Version)
		for inv := r.oldest; inv != nil; inv = inv.newer {
			s.visited++
			if inv.phase == phaseRunning {
				open = append(open, inv)
			}
			if c := s.calls[inv.id]; c != nil {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(open, func(a, b *invocation) int { return cmp.Compare(a.seat, b.seat) })
	for _, inv := range open {
		s.emit(StartAttempt{Invocation: inv.id})
	}
	slices.SortFunc(out, func(a, b *outcall) int { return cmp.Compare(a.order, b.order) })
	for _, c := range out {
		s.emit(CallOut{Invocation: c.inv.id})
	}
	return nil
}

// join adds the runs of a snapshot, with what they have open. Timers, worker slots
// and messages get new numbers, in their order: others have been given meanwhile.
func (s *Session) join(saved *savedSession) error {
	if _, err := saved.check(); err != nil {
		return err
	}
	for _, h := range saved.Handlers {
		if h.ID == "" {
			return badSnapshot("a handler has no name")
		}
		s.handlerOf(h.ID).run = h.Run
	}
	l, sent := newLoader(s, saved), s.outbox
	s.outbox = outbox{}
	if err := each(saved.Runs, "run", l.run); err != nil {
		return err
	}
	if err := each(saved.Outbox, "message", l.message); err != nil {
		return err
	}
	fresh := s.outbox.all()
	s.outbox = sent
	for i := range fresh {
		s.post(fresh[i])
	}
	for _, number := range sortedKeys(l.seats) {
		s.lastSeat++
		l.seats[number].seat = s.lastSeat
	}
	for _, id := range sortedKeys(l.armed) {
		s.lastTimer++
		l.armed[id].id = s.lastTimer
	}
	return l.settle()
}
