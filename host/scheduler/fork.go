package scheduler

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// Fork continues a run a second time, from a position of its past; see host.Runs.
func (s *Scheduler) Fork(ctx context.Context, tenant, id string, at uint64) (host.Fork, error) {
	if err := s.taking(tenant); err != nil {
		return host.Fork{}, err
	}
	run, err := s.past.Get(ctx, tenant, id)
	if err != nil {
		return host.Fork{}, err
	}
	release, err := s.AskStart(ctx, host.StartAsk{Tenant: tenant})
	if err != nil {
		return host.Fork{}, err
	}
	defer release()
	p, err := s.past.At(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, run.RunID, at)
	if err != nil {
		return host.Fork{}, err
	}
	for {
		out, err := s.forkOf(ctx, p, run.RunID)
		if !errors.Is(err, errDead) {
			return out, err
		}
		// The id was drawn before, and is taken: draw another. p has been used up.
		if p, err = s.past.At(ctx, p.Key, run.RunID, at); err != nil {
			return host.Fork{}, err
		}
	}
}

// forkOf begins the fork of a run in a session of its own.
func (s *Scheduler) forkOf(ctx context.Context, p *history.Past, runID string) (host.Fork, error) {
	t := engine.ForkTarget{RunID: s.reserved.NewID(), HandlerID: s.reserved.NewID(), At: s.now()}
	t.Key = host.SessionKey{Tenant: p.Key.Tenant, Session: t.HandlerID}
	s.cfg.Entropy(t.Seed[:])
	if was, ok := p.Engine.Record(runID); ok {
		t.Trace = s.traceOf(ctx, &was)
	}
	held := p.HeldByRun()
	runs, anew, err := p.Engine.Fork(runID, t)
	if err != nil {
		return host.Fork{}, refused(err)
	}
	snapshot, err := p.Engine.Snapshot()
	if err != nil {
		return host.Fork{}, refused(err)
	}
	begin := engine.Adopt{Snapshot: snapshot, Held: held.Of(runs, p.Key.Session)}
	if size := len(snapshot) + history.SizeOfHeld(begin.Held); size > maxSnapshot {
		return host.Fork{}, host.Errorf(host.CodeLimitExceeded, "The run with its state has %d bytes; a fork can begin with at most %d", size, maxSnapshot)
	}
	if err := s.cfg.Quotas.Ready(ctx, t.Key.Tenant); err != nil {
		return host.Fork{}, err
	}
	ss := s.table.begin(t.Key)
	if ss == nil {
		return host.Fork{}, errDead
	}
	defer ss.release()
	ss.mu.Lock()
	forked, pos, err := ss.adopt(begin, t.RunID, extras{})
	ss.mu.Unlock()
	if err != nil {
		return host.Fork{}, refused(err)
	}
	out := host.Fork{Run: forked, Anew: anew}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Fork{}, host.Unavailable(err)
	}
	return out, nil
}

// adopt begins the session by what was another, and gives the record of a run in it.
// The caller holds mu.
func (ss *session) adopt(t engine.Adopt, runID string, with extras) (host.Run, uint64, error) {
	if runID != "" {
		var err error
		if with.places, err = ss.place(false); err != nil {
			return host.Run{}, 0, err
		}
	}
	l := history.NewLedger()
	l.Adopt(&engine.Entry{Held: t.Held})
	ss.suspended = l.Copies()
	_, pos, err := ss.tick(t, with)
	if err != nil {
		ss.giveBack(with.places)
		return host.Run{}, 0, err
	}
	run, _ := ss.eng.Record(runID)
	return run, pos, nil
}
