package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// A run that has failed can continue from its failure: as a new run of its handler,
// restored from just before the failure, on the present state of the session. The
// invocation that failed begins again with its first attempt. Everything else that was
// open continues as in a fork. The failed run is over and belonged to this session, so
// the ids inside (invocations, events, calls) are free again and the records of attempts
// still fit.

// Rerun continues a run that has failed. Snapshot is the encoded session that
// [Session.Rerun] prepared.
type Rerun struct {
	RunID    string
	Snapshot []byte
	Held     []HeldAttempt // records of the attempts that continue
}

func (Rerun) tick() {}

// Rerun turns the session, a copy from just before a run failed, into one that holds the
// run that continues in its place. If invocation belongs to the run, it begins again. The
// run has its whole timeout again. version is "" or the version with which the run
// continues. For the rest see [Session.Fork].
//
// # Errors
//
// As [Session.Fork] and [Session.MayMigrate].
func (s *Session) Rerun(runID string, invocation uint64, version string, t ForkTarget) (runs []ForkedRun, anew []host.Renewed, err error) {
	r, err := s.activeRun(runID)
	if err != nil {
		return nil, nil, err
	}
	// The run may have been paused or blocked before it failed. The client has asked
	// for it to continue.
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
	t.Retry = true
	if runs, anew, err = s.Fork(runID, t); err == nil {
		s.root = state.Empty() // the session has a state of its own by now
	}
	return runs, anew, err
}

// beginAgain resets an invocation to before its first attempt. It keeps the answers that
// the invocation got: events, results of children, answers of resources.
func (s *Session) beginAgain(inv *invocation) {
	s.unseat(inv, "")
	for key, c := range inv.children {
		// A failed child must run again, and no attempt can ask for a child without an id.
		if key[0] != '=' || c.err != nil {
			delete(inv.children, key)
		}
	}
	inv.forgetFailures() // and the reads that lost against another writer
	// Only values are kept. Calls that failed or have no answer are made again.
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

// startOver replaces the attempts that a block interrupted by their next attempts.
func (s *Session) startOver(r *run) {
	for inv := r.oldest; inv != nil; inv = inv.newer {
		if inv.phase != phaseRunning {
			continue
		}
		s.visited++
		s.nextAttempt(inv)
		if t := inv.timer; t != nil {
			t.at = later(r.heldAt, t.span) // it runs on from that time
		}
	}
}

// decideRerun refuses a snapshot that cannot be joined, before it becomes an entry.
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

// mayJoin returns an error if anything in the snapshot exists in the session already.
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
			return badSnapshot("child %s exists already", clip(id))
		}
	}
	past := []uint64{saved.LastEvent, saved.LastCollection, saved.LastWait, saved.LastCall}
	// A number beyond the last one given would later be given a second time.
	for i, last := range []uint64{s.lastEvent, s.lastCollection, s.lastWait, s.lastCall} {
		if past[i] > last {
			return badSnapshot("it has given numbers that this session has not given")
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
		return corrupt(e, "it does not contain run %s", clip(e.RunID))
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
	// Start the attempts in the order in which they first got their slots.
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

// join adds the runs of a snapshot with their open work. Timers, worker slots and
// messages get new numbers in the same order, because the old numbers may be in use by
// now.
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
	// The messages of the snapshot follow those that already wait.
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
