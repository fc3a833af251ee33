package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// Fork lets a run go on a second time from a position of its past; see host.Runs.
func (s *Scheduler) Fork(ctx context.Context, tenant, id string, at uint64) (host.Fork, error) {
	if err := s.taking(tenant); err != nil {
		return host.Fork{}, err
	}
	run, err := s.Get(ctx, tenant, id)
	if err != nil {
		return host.Fork{}, err
	}
	release, err := s.AskStart(ctx, host.StartAsk{Tenant: tenant})
	if err != nil {
		return host.Fork{}, err
	}
	defer release()
	p, err := s.pastAt(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, run.RunID, at)
	if err != nil {
		return host.Fork{}, err
	}
	for {
		out, err := s.forkOf(ctx, p, run.RunID)
		if !errors.Is(err, errDead) {
			return out, err
		}
		// The id was drawn before, and is taken: draw another. p has been used up.
		if p, err = s.pastAt(ctx, p.ss.key, run.RunID, at); err != nil {
			return host.Fork{}, err
		}
	}
}

// finder looks for a position, and for the last one before it where a run can be
// forked.
type finder struct {
	run     string
	at      uint64
	nearest uint64
	met     bool // the position is there
}

// see implements onlooker.
func (f *finder) see(_ *past, e *engine.Entry) bool { return e.Seq <= f.at }

// seen implements onlooker.
func (f *finder) seen(p *past, e *engine.Entry, _ []engine.Command) error {
	f.met = e.Seq == f.at
	if p.eng.Begun(f.run) && p.ledger.restful() {
		f.nearest = e.Seq
	}
	return nil
}

// pastAt folds a session up to a position at which a run can be forked.
func (s *Scheduler) pastAt(ctx context.Context, key host.SessionKey, runID string, at uint64) (*past, error) {
	p, f := s.newPast(key), &finder{run: runID, at: at}
	if err := p.walk(ctx, at, f); err != nil {
		return nil, err
	}
	switch {
	case p.first > at && at != 0:
		return nil, cutAway(p.first)
	case !f.met:
		return nil, host.Errorf(host.CodeInvalidArgument, "The journal has no entry %d", at)
	case f.nearest == at:
		return p, nil
	case f.nearest != 0 && p.eng.Begun(runID):
		return nil, host.Errorf(host.CodeConflict, "Entry %d is within what was written as one: no fork can begin there, the nearest entry before where one can is %d", at, f.nearest)
	case f.nearest != 0:
		return nil, host.Errorf(host.CodeConflict, "The run had ended at entry %d: the nearest entry before where a fork can begin is %d", at, f.nearest)
	}
	return nil, host.Errorf(host.CodeInvalidArgument, "The run was not active at entry %d, nor shortly before", at)
}

// forkOf begins the fork of a run in a session of its own.
func (s *Scheduler) forkOf(ctx context.Context, p *past, runID string) (host.Fork, error) {
	t := engine.ForkTarget{RunID: s.newID(), HandlerID: s.newID(), At: s.now()}
	t.Key = host.SessionKey{Tenant: p.ss.key.Tenant, Session: t.HandlerID}
	s.cfg.Entropy(t.Seed[:])
	if was, ok := p.eng.Record(runID); ok {
		t.Trace = s.traceOf(ctx, &was)
	}
	held := p.heldBy()
	runs, anew, err := p.eng.Fork(runID, t)
	if err != nil {
		return host.Fork{}, refused(err)
	}
	snapshot, err := p.eng.Snapshot()
	if err != nil {
		return host.Fork{}, refused(err)
	}
	begin := engine.Adopt{Snapshot: snapshot, Held: held.of(runs, p.ss.key.Session)}
	if size := len(snapshot) + sizeOfHeld(begin.Held); size > maxSnapshot {
		return host.Fork{}, host.Errorf(host.CodeLimitExceeded, "The run with its state takes %d bytes, more than a fork may begin with (%d)", size, maxSnapshot)
	}
	if err := s.cfg.Quotas.Ready(ctx, t.Key.Tenant); err != nil {
		return host.Fork{}, err
	}
	ss := s.begin(t.Key)
	if ss == nil {
		return host.Fork{}, errDead
	}
	defer ss.release()
	ss.mu.Lock()
	forked, pos, err := ss.adopt(begin, t.RunID)
	ss.mu.Unlock()
	if err != nil {
		return host.Fork{}, refused(err)
	}
	out := host.Fork{Run: forked, Anew: anew}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Fork{}, unavailable(err)
	}
	return out, nil
}

// adopt begins the session by what was another, and gives the record of a run in it.
// Called with mu held.
func (ss *session) adopt(t engine.Adopt, runID string) (host.Run, uint64, error) {
	if runID != "" {
		if err := ss.place(false); err != nil {
			return host.Run{}, 0, err
		}
	}
	l := newLedger()
	l.adopt(&engine.Entry{Held: t.Held})
	ss.suspended = l.copies()
	_, pos, err := ss.tick(t, nil)
	if err != nil {
		ss.giveBack()
		return host.Run{}, 0, err
	}
	run, _ := ss.eng.Record(runID)
	return run, pos, nil
}

// heldByRun are records of attempts, by the run that they are of.
type heldByRun map[string][]engine.HeldAttempt

// heldBy gives the records of the attempts that have not ended.
func (p *past) heldBy() heldByRun {
	out := heldByRun{}
	for inv, o := range p.ledger.records {
		if view, ok := p.eng.Invocation(inv); ok && view.Attempt == o.attempt {
			out[view.RunID] = append(out[view.RunID], engine.HeldAttempt{Invocation: inv, Attempt: o.attempt, Open: o.open, Calls: slices.Clip(o.record), Burnt: o.spent()})
		}
	}
	return out
}

// of gives the records of the runs that go on, each with the ids under which it
// began: its guest has seen them.
func (h heldByRun) of(runs []engine.ForkedRun, session string) []engine.HeldAttempt {
	var out []engine.HeldAttempt
	for _, r := range runs {
		for _, held := range h[r.Was] {
			if held.Open != nil && held.Open.RunID == "" {
				open := *held.Open
				open.RunID, open.SessionID = r.Was, session
				held.Open = &open
			}
			out = append(out, held)
		}
	}
	slices.SortFunc(out, func(a, b engine.HeldAttempt) int { return int(a.Invocation) - int(b.Invocation) })
	return out
}
