package continuation

import (
	"context"
	"maps"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// Export gives what a run is made of; see host.Runs. What it holds, and who believes it:
// see import.go.
func (c *Continuer) Export(ctx context.Context, tenant, id string) (host.RunSnapshot, error) {
	run, err := c.cfg.Past.Get(ctx, tenant, id)
	if err != nil {
		return host.RunSnapshot{}, err
	}
	p, pos, err := c.present(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID})
	if err != nil {
		return host.RunSnapshot{}, err
	}
	if err := c.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.RunSnapshot{}, host.Unavailable(err)
	}
	// A run that has ended since it was read is exported with its end.
	if _, active := p.Engine.Versions()[run.RunID]; !active {
		// It has ended meanwhile, or is deleted.
		if run, err = c.cfg.Past.RunOf(ctx, tenant, run.RunID); err != nil {
			return host.RunSnapshot{}, err
		}
	}
	out := host.RunSnapshot{Version: host.RunSnapshotVersion, Workflow: run.Workflow, HandlerID: run.HandlerID, RunID: run.RunID, Status: run.Status}
	t := engine.ForkTarget{Key: p.Key, RunID: run.RunID, HandlerID: run.HandlerID, At: p.Engine.Now()}
	c.cfg.Entropy(t.Seed[:])
	// The records come before the fork, which gives the run other ids.
	held, goesOn := p.HeldByRun(), run.RunID
	if run.Status.Final() {
		goesOn = ""
	}
	runs, _, err := p.Engine.Fork(goesOn, t)
	if err != nil {
		return host.RunSnapshot{}, refusal.ToClient(err)
	}
	out.Modules = slices.Sorted(maps.Values(p.Engine.Versions()))
	out.Modules = slices.Compact(out.Modules)
	if out.Session, err = p.Engine.Snapshot(); err == nil {
		out.Held, err = abi.Marshal(held.Of(runs, p.Key.Session))
	}
	if err != nil {
		return host.RunSnapshot{}, refusal.ToClient(err)
	}
	return out, nil
}

// present copies a session as it is now, and gives the queue position of that.
func (c *Continuer) present(ctx context.Context, key host.SessionKey) (*history.Past, uint64, error) {
	ss, err := c.cfg.Sessions.Existing(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	defer ss.Release()
	data, held, pos, err := ss.Copy()
	p := c.cfg.Past.Past(key)
	if err == nil {
		p.Engine, err = engine.Restore(key, c.cfg.Graph, data)
	}
	if err != nil {
		return nil, 0, refusal.ToClient(err)
	}
	p.Ledger.Adopt(&engine.Entry{Held: held})
	return p, pos, nil
}
