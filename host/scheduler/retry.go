package scheduler

import (
	"context"
	"errors"
	"maps"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/versions"
)

// Retry continues a run that has failed or is blocked; see host.Runs.
func (s *Scheduler) Retry(ctx context.Context, tenant, id string, newest bool) (host.Fork, error) {
	if err := s.taking(tenant); err != nil {
		return host.Fork{}, err
	}
	run, err := s.past.Get(ctx, tenant, id)
	switch {
	case err != nil:
		return host.Fork{}, err
	// A blocked run has not ended: it continues in place.
	case run.Blocked != nil && !newest:
		rec, err := beginAnew(ctx, s, tenant, id)
		return host.Fork{Run: rec}, err
	case run.Blocked != nil:
		return host.Fork{}, host.Errorf(host.CodeConflict, "Handler '%s' is blocked and keeps its version: migrate its workflow, or retry it with the version that it has", run.HandlerID)
	case run.Status != host.StatusFailed:
		return host.Fork{}, host.Errorf(host.CodeConflict, "Handler '%s' has not failed, it is %s: there is nothing to retry", run.HandlerID, run.Status)
	}
	release, err := s.AskStart(ctx, host.StartAsk{Tenant: tenant})
	if err != nil {
		return host.Fork{}, err
	}
	defer release()
	defer s.cfg.Modules.Starting()()
	re := &retry{s: s, key: host.SessionKey{Tenant: tenant, Session: run.SessionID}, failed: &run, newest: newest}
	if re.failure, err = s.past.FailureOf(ctx, re.key, run.RunID); err != nil {
		return host.Fork{}, err
	}
	t, anew, err := re.prepare(ctx)
	if err != nil {
		return host.Fork{}, err
	}
	out, err := re.begin(ctx, t)
	out.Anew = anew
	return out, err
}

// retry is a failed run that continues as another run in its place.
type retry struct {
	s       *Scheduler
	key     host.SessionKey
	failed  *host.Run
	failure *history.Failure
	newest  bool // with the version of new runs
}

// latest checks in the store that the failed run is the latest of its handler. The caller
// has reserved the handler, so no other start takes it meanwhile.
func (re *retry) latest(ctx context.Context) error {
	failed := re.failed
	h, err := re.s.cfg.Store.Handler(ctx, failed.Tenant, failed.HandlerID)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return history.ErrNoHandler
	case err != nil:
		return host.Unavailable(err)
	case h.Run.RunID != failed.RunID:
		return notLatest(failed)
	}
	return nil
}

func notLatest(failed *host.Run) error {
	return host.Errorf(host.CodeConflict, "Run '%s' is not the latest of handler '%s': only that can be retried", failed.RunID, failed.HandlerID)
}

// beginAnew continues a blocked run without the records of the attempts that were cut
// off: they begin again.
func beginAnew(ctx context.Context, s *Scheduler, tenant, id string) (host.Run, error) {
	return s.steer(ctx, tenant, id, func(ss *session, runID string) (uint64, error) {
		_, pos, err := ss.tick(engine.Resume{RunID: runID, Anew: true}, extras{})
		return pos, err
	})
}

// prepare makes the tick that continues the run from just before it failed.
func (re *retry) prepare(ctx context.Context) (t engine.Rerun, anew []host.Renewed, err error) {
	s, key, run, f, newest := re.s, re.key, re.failed, re.failure, re.newest
	p, err := s.past.Before(ctx, key, f.At)
	if err != nil {
		return t, nil, err
	}
	now, err := s.cfg.Modules.Newest(key.Tenant, run.Workflow)
	// A run that keeps its version can continue although its workflow was deleted.
	if err != nil && (newest || host.CodeOf(err) != host.CodeNotFound) {
		return t, nil, err
	}
	version := ""
	if newest {
		version = now.Digest
	}
	// It continues with what new runs get: grants and limits may have changed since it failed.
	if err == nil {
		if err := now.CheckResources(s.cfg.Resources, key.Tenant); err != nil {
			return t, nil, err
		}
		limits := func(string) (host.Limits, error) { return now.Limits(s.cfg.Limits, key.Tenant), nil }
		if err := p.Engine.Limit(limits); err != nil {
			return t, nil, refused(err)
		}
	}
	// Before the rerun, which gives the run other ids.
	held := p.HeldByRun()
	// The attempts that continue must make the calls of their records with that version, too.
	// The step that failed begins anew, without a record.
	if newest {
		if err := re.rehearse(ctx, &now, history.Cast(p.Key, p.Engine, p.Ledger, run.RunID, f.Invocation)); err != nil {
			return t, nil, err
		}
	}
	target := engine.ForkTarget{Key: key, RunID: s.reserved.NewID(), HandlerID: run.HandlerID, At: s.now()}
	s.cfg.Entropy(target.Seed[:])
	if was, ok := p.Engine.Record(run.RunID); ok {
		target.Trace = s.traceOf(ctx, &was)
	}
	runs, anew, err := p.Engine.Rerun(run.RunID, f.Invocation, version, target)
	if err != nil {
		return t, nil, refused(err)
	}
	t.RunID = target.RunID
	if t.Snapshot, err = p.Engine.Snapshot(); err != nil {
		return t, nil, refused(err)
	}
	for _, h := range held.Of(runs, key.Session) {
		if h.Invocation != f.Invocation {
			t.Held = append(t.Held, h)
		}
	}
	if size := len(t.Snapshot) + history.SizeOfHeld(t.Held); size > maxSnapshot {
		return t, nil, host.Errorf(host.CodeLimitExceeded, "The run has %d bytes; a retry can continue with at most %d", size, maxSnapshot)
	}
	return t, anew, nil
}

// rehearse refuses a version with which an attempt would depart from its record.
func (re *retry) rehearse(ctx context.Context, m *versions.Module, parts []history.Part) error {
	for i := range parts {
		d, err := re.s.rehearse(ctx, m, &parts[i])
		if err != nil {
			return err
		}
		if d != nil {
			return host.Errorf(host.CodeConflict, "Step %s cannot continue with the newest version: %s", d.Step, d.Message)
		}
	}
	return nil
}

// begin begins the run that continues in the place of the failed run.
func (re *retry) begin(ctx context.Context, t engine.Rerun) (host.Fork, error) {
	s, key, failed := re.s, re.key, re.failed
	st, err := s.reserved.Take(ctx, &host.StartRequest{Tenant: key.Tenant, Workflow: failed.Workflow, HandlerID: failed.HandlerID, SessionID: key.Session})
	if err != nil {
		return host.Fork{}, err
	}
	defer st.GiveBack()
	if err := re.latest(ctx); err != nil {
		return host.Fork{}, err
	}
	if err := s.cfg.Quotas.Ready(ctx, key.Tenant); err != nil {
		return host.Fork{}, err
	}
	ss, err := s.table.acquire(ctx, key, false)
	if err != nil {
		return host.Fork{}, err
	}
	defer ss.release()
	ss.mu.Lock()
	run, pos, err := ss.rerun(failed, t)
	ss.mu.Unlock()
	st.Pos = pos
	if err != nil {
		if errors.Is(err, errDead) {
			return host.Fork{}, history.ErrNoHandler
		}
		return host.Fork{}, refused(err)
	}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Fork{}, host.Unavailable(err)
	}
	return host.Fork{Run: run}, nil
}

// rerun is the tick of [retry.begin]. The caller holds mu.
func (ss *session) rerun(failed *host.Run, t engine.Rerun) (host.Run, uint64, error) {
	latest, active, _ := ss.eng.HandlerRun(failed.HandlerID)
	switch {
	case active:
		return host.Run{}, 0, handlers.AlreadyRunning(failed.HandlerID)
	case latest != failed.RunID:
		return host.Run{}, 0, notLatest(failed)
	}
	places, err := ss.place(false)
	if err != nil {
		return host.Run{}, 0, err
	}
	l := history.NewLedger()
	l.Add(t.Held)
	maps.Copy(ss.suspended, l.Copies())
	_, pos, err := ss.tick(t, extras{places: places})
	if err != nil {
		ss.giveBack(places)
		for inv := range l.Records {
			delete(ss.suspended, inv)
		}
		return host.Run{}, 0, err
	}
	run, _ := ss.eng.Record(t.RunID)
	return run, pos, nil
}
