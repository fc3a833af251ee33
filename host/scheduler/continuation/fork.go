package continuation

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/edits"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/state"
)

// Fork continues a run a second time, from a position of its past; see host.Runs.
func (c *Continuer) Fork(ctx context.Context, req host.ForkRequest) (host.Fork, error) {
	if err := c.cfg.Taking(req.Tenant); err != nil {
		return host.Fork{}, err
	}
	run, err := c.cfg.Past.Get(ctx, req.Tenant, req.ID)
	if err != nil {
		return host.Fork{}, err
	}
	release, err := c.cfg.AskStart(ctx, host.StartAsk{Tenant: req.Tenant})
	if err != nil {
		return host.Fork{}, err
	}
	defer release()
	for {
		p, err := c.cfg.Past.At(ctx, host.SessionKey{Tenant: req.Tenant, Session: run.SessionID}, run.RunID, req.At)
		if err != nil {
			return host.Fork{}, err
		}
		if err := c.revise(ctx, p, run.RunID, &req); err != nil {
			return host.Fork{}, err
		}
		out, err := c.forkOf(ctx, p, run.RunID, &req)
		if !errors.Is(err, refusal.ErrGone) {
			return out, err
		}
		// The id was drawn before, and is taken: draw another. p has been used up.
	}
}

// revise makes the changes of a fork on the past from which it continues. The fork begins
// with what follows from them, as if they had been entries of the past.
func (c *Continuer) revise(ctx context.Context, p *history.Past, runID string, req *host.ForkRequest) error {
	if req.Edits != nil || req.Patch != nil || req.State != nil {
		edit := host.SessionEdit{Tenant: req.Tenant, Session: p.Key.Session, Edits: req.Edits, Patch: req.Patch, State: req.State}
		e, err := c.cfg.Edits.Read(ctx, &edit)
		if err == nil {
			err = e.Make(ctx, func(context.Context, host.SessionKey, bool) (edits.Session, error) { return revised{p}, nil })
		}
		if err != nil {
			return refusal.ToClient(err)
		}
	}
	// The answer of a paused run waits.
	if req.Paused {
		if err := p.Reduce(engine.Pause{RunID: runID}); err != nil {
			return refusal.ToClient(err)
		}
	}
	if req.Answer == nil {
		return nil
	}
	was, _ := p.Engine.Record(runID)
	mod, err := c.cfg.Modules.ByDigest(was.Version)
	if err != nil {
		return err
	}
	if err := mod.Graph.CheckPost(req.Answer.Type, req.Step); err != nil {
		return err
	}
	event, err := c.cfg.Event(ctx, req.Tenant, was.Version, *req.Answer)
	if err != nil {
		return err
	}
	if err := p.Reduce(engine.PostEvent{RunID: runID, Event: event, Step: req.Step}); err != nil {
		return refusal.ToClient(err)
	}
	return nil
}

// revised is a past as package edits sees a session. Nobody else changes it.
type revised struct{ *history.Past }

// State implements edits.Session.
func (d revised) State() *state.Node { return d.Engine.State() }

// Ran implements edits.Session.
func (d revised) Ran() []string { return d.Engine.RanVersions() }

// View implements edits.Session.
func (d revised) View(*edits.Edit) (edits.View, error) {
	keep, err := d.Engine.KeptSchemas()
	return edits.View{State: d.Engine.State(), Keep: keep}, err
}

// Make implements edits.Session.
func (d revised) Make(e *edits.Edit) (free <-chan struct{}, err error) {
	return nil, d.Reduce(e.Tick(false))
}

// Release implements edits.Session.
func (d revised) Release() {}

// forkOf begins the fork of a run in a session of its own. A dry run stops before.
func (c *Continuer) forkOf(ctx context.Context, p *history.Past, runID string, req *host.ForkRequest) (host.Fork, error) {
	t := engine.ForkTarget{RunID: c.cfg.Reserved.NewID(), HandlerID: c.cfg.Reserved.NewID(), At: c.cfg.Now(), After: req.At}
	t.Key = host.SessionKey{Tenant: p.Key.Tenant, Session: t.HandlerID}
	c.cfg.Entropy(t.Seed[:])
	if was, ok := p.Engine.Record(runID); ok {
		t.Trace = c.cfg.Trace(ctx, &was)
	}
	held := p.HeldByRun()
	runs, anew, err := p.Engine.Fork(runID, t)
	if err != nil {
		return host.Fork{}, refusal.ToClient(err)
	}
	snapshot, err := p.Engine.Snapshot()
	if err != nil {
		return host.Fork{}, refusal.ToClient(err)
	}
	begin := engine.Adopt{Snapshot: snapshot, Held: held.Of(runs, p.Key.Session)}
	if size := len(snapshot) + history.SizeOfHeld(begin.Held); size > c.cfg.MaxSnapshot {
		return host.Fork{}, host.Errorf(host.CodeLimitExceeded, "The run with its state has %d bytes; a fork can begin with at most %d", size, c.cfg.MaxSnapshot)
	}
	if err := c.cfg.Ready(ctx, t.Key.Tenant); err != nil {
		return host.Fork{}, err
	}
	if req.DryRun {
		would, _ := p.Engine.Record(t.RunID)
		return host.Fork{Run: would, Anew: anew}, nil
	}
	ss := c.cfg.Sessions.New(t.Key)
	if ss == nil {
		return host.Fork{}, refusal.ErrGone
	}
	defer ss.Release()
	forked, pos, err := ss.Adopt(begin, t.RunID)
	if err != nil {
		return host.Fork{}, refusal.ToClient(err)
	}
	out := host.Fork{Run: forked, Anew: anew}
	if err := c.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Fork{}, host.Unavailable(err)
	}
	return out, nil
}
