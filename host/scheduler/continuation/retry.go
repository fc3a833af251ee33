package continuation

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/versions"
)

// Retry continues a run that has failed or is blocked; see host.Runs.
func (c *Continuer) Retry(ctx context.Context, tenant, id string, newest bool) (host.Fork, error) {
	if err := c.cfg.Taking(tenant); err != nil {
		return host.Fork{}, err
	}
	run, err := c.cfg.Past.Get(ctx, tenant, id)
	switch {
	case err != nil:
		return host.Fork{}, err
	// A blocked run has not ended: it continues in place.
	case run.Blocked != nil && !newest:
		rec, err := c.cfg.Anew(ctx, tenant, id)
		return host.Fork{Run: rec}, err
	case run.Blocked != nil:
		return host.Fork{}, host.Errorf(host.CodeConflict, "Handler '%s' is blocked and keeps its version: migrate its workflow, or retry it with the version that it has", run.HandlerID)
	case run.Status != host.StatusFailed:
		return host.Fork{}, host.Errorf(host.CodeConflict, "Handler '%s' has not failed, it is %s: there is nothing to retry", run.HandlerID, run.Status)
	}
	release, err := c.cfg.AskStart(ctx, host.StartAsk{Tenant: tenant})
	if err != nil {
		return host.Fork{}, err
	}
	defer release()
	defer c.cfg.Modules.Starting()()
	re := &retry{c: c, key: host.SessionKey{Tenant: tenant, Session: run.SessionID}, failed: &run, newest: newest}
	if re.failure, err = c.cfg.Past.FailureOf(ctx, re.key, run.RunID); err != nil {
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
	c       *Continuer
	key     host.SessionKey
	failed  *host.Run
	failure *history.Failure
	newest  bool // with the version of new runs
}

// latest checks in the store that the failed run is the latest of its handler. The caller
// has reserved the handler, so no other start takes it meanwhile.
func (re *retry) latest(ctx context.Context) error {
	failed := re.failed
	h, err := re.c.cfg.Store.Handler(ctx, failed.Tenant, failed.HandlerID)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return history.ErrNoHandler
	case err != nil:
		return host.Unavailable(err)
	case h.Run.RunID != failed.RunID:
		return NotLatest(failed)
	}
	return nil
}

// NotLatest returns the error for a failed run that is not the latest of its handler.
func NotLatest(failed *host.Run) error {
	return host.Errorf(host.CodeConflict, "Run '%s' is not the latest of handler '%s': only that can be retried", failed.RunID, failed.HandlerID)
}

// prepare makes the tick that continues the run from just before it failed.
func (re *retry) prepare(ctx context.Context) (t engine.Rerun, anew []host.Renewed, err error) {
	c, key, run, f, newest := re.c, re.key, re.failed, re.failure, re.newest
	p, err := c.cfg.Past.Before(ctx, key, f.At)
	if err != nil {
		return t, nil, err
	}
	now, err := c.cfg.Modules.Newest(key.Tenant, run.Workflow)
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
		if err := now.CheckResources(c.cfg.Resources, key.Tenant); err != nil {
			return t, nil, err
		}
		limits := func(string) (host.Limits, error) { return now.Limits(c.cfg.Limits, key.Tenant), nil }
		if err := p.Engine.Limit(limits); err != nil {
			return t, nil, refusal.ToClient(err)
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
	target := engine.ForkTarget{Key: key, RunID: c.cfg.Reserved.NewID(), HandlerID: run.HandlerID, At: c.cfg.Now()}
	c.cfg.Entropy(target.Seed[:])
	if was, ok := p.Engine.Record(run.RunID); ok {
		target.Trace = c.cfg.Trace(ctx, &was)
	}
	runs, anew, err := p.Engine.Rerun(run.RunID, f.Invocation, version, target)
	if err != nil {
		return t, nil, refusal.ToClient(err)
	}
	t.RunID = target.RunID
	if t.Snapshot, err = p.Engine.Snapshot(); err != nil {
		return t, nil, refusal.ToClient(err)
	}
	for _, h := range held.Of(runs, key.Session) {
		if h.Invocation != f.Invocation {
			t.Held = append(t.Held, h)
		}
	}
	if size := len(t.Snapshot) + history.SizeOfHeld(t.Held); size > c.cfg.MaxSnapshot {
		return t, nil, host.Errorf(host.CodeLimitExceeded, "The run has %d bytes; a retry can continue with at most %d", size, c.cfg.MaxSnapshot)
	}
	return t, anew, nil
}

// rehearse refuses a version with which an attempt would depart from its record.
func (re *retry) rehearse(ctx context.Context, m *versions.Module, parts []history.Part) error {
	for i := range parts {
		d, err := re.c.rehearse(ctx, m, &parts[i])
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
	c, key, failed := re.c, re.key, re.failed
	st, err := c.cfg.Reserved.Take(ctx, &host.StartRequest{Tenant: key.Tenant, Workflow: failed.Workflow, HandlerID: failed.HandlerID, SessionID: key.Session})
	if err != nil {
		return host.Fork{}, err
	}
	defer st.GiveBack()
	if err := re.latest(ctx); err != nil {
		return host.Fork{}, err
	}
	if err := c.cfg.Ready(ctx, key.Tenant); err != nil {
		return host.Fork{}, err
	}
	ss, err := c.cfg.Sessions.Existing(ctx, key)
	if err != nil {
		return host.Fork{}, err
	}
	defer ss.Release()
	run, pos, err := ss.Rerun(t, failed)
	st.Pos = pos
	if err != nil {
		if errors.Is(err, refusal.ErrGone) {
			return host.Fork{}, history.ErrNoHandler
		}
		return host.Fork{}, refusal.ToClient(err)
	}
	if err := c.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Fork{}, host.Unavailable(err)
	}
	return host.Fork{Run: run}, nil
}
