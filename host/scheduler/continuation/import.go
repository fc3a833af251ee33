package continuation

import (
	"context"
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// An export is what a fork of the run would begin with (export.go). An import, on this
// server or another, is a fork of that: it has new ids and the rest of the run's waits. A
// client may have changed the export, so the server does not trust it: the versions must be
// the tenant's own, the limits are the server's, and the engine checks the rest.

// Imported is a snapshot that a start has brought, ready to begin a session.
type Imported struct {
	Begin engine.Adopt
	RunID string // of the run that continues; "" if none does
}

// Import checks the snapshot that a start has brought, and makes of it what begins the
// session of the new run.
func (c *Continuer) Import(ctx context.Context, req *host.StartRequest, key host.SessionKey) (*Imported, error) {
	from := req.Snapshot
	if from.Workflow != req.Workflow {
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot is of workflow '%s', not '%s'", from.Workflow, req.Workflow)
	}
	p := c.cfg.Past.Past(key)
	p.Key = host.SessionKey{Tenant: req.Tenant, Session: from.HandlerID}
	var held []engine.HeldAttempt
	var err error
	p.Engine, err = engine.Restore(key, c.cfg.Graph, from.Session)
	// The limits in the snapshot are a client's word: the server's own replace them.
	if err == nil {
		err = p.Engine.Limit(func(version string) (host.Limits, error) { return c.allowed(req.Tenant, version) })
	}
	if err == nil {
		err = abi.Unmarshal(from.Held, &held)
	}
	switch {
	// The store could not say what is allowed, which says nothing of the snapshot.
	case host.CodeOf(err) == host.CodeUnavailable:
		return nil, err
	case err != nil:
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot cannot be used here: %s", explained(err))
	case !p.Engine.Begun(from.RunID) && p.Engine.Active() > 0:
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot cannot be used here: it is not of the run that it names")
	}
	return c.importOf(ctx, req, p, held, key)
}

// explained is what an error says to the client.
func explained(err error) string {
	var known *host.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

// allowed returns the limits of a version that the tenant's runs may continue with: the
// newest of its workflow. Others may be of other tenants, or gone.
func (c *Continuer) allowed(tenant, version string) (host.Limits, error) {
	mod, err := c.cfg.Modules.ByDigest(version)
	if err == nil {
		mod, err = c.cfg.Modules.Newest(tenant, mod.Graph.Workflow())
	}
	if err == nil && mod.Digest == version {
		return mod.Limits(c.cfg.Limits, tenant), nil
	}
	if host.CodeOf(err) == host.CodeUnavailable {
		return host.Limits{}, err
	}
	return host.Limits{}, host.Errorf(host.CodeInvalidArgument, "it is of version %s of a workflow, which is not the newest here", version)
}

// importOf forks what was restored into the session of the new run.
func (c *Continuer) importOf(ctx context.Context, req *host.StartRequest, p *history.Past, held []engine.HeldAttempt, key host.SessionKey) (*Imported, error) {
	out := &Imported{}
	if p.Engine.Begun(req.Snapshot.RunID) {
		out.RunID = c.cfg.Reserved.NewID()
	}
	by := history.HeldByRun{}
	for _, h := range held {
		// Only records of attempts that continue are of use.
		view, ok := p.Engine.Invocation(h.Invocation)
		if !ok || view.Attempt != h.Attempt {
			continue
		}
		if h.Open != nil {
			open := *h.Open
			open.Limits = view.Limits
			h.Open = &open
		}
		h.Crashes, h.Burnt = 0, nil // a client may have changed them
		by[view.RunID] = append(by[view.RunID], h)
	}
	t := engine.ForkTarget{Key: key, RunID: out.RunID, HandlerID: req.HandlerID, At: c.cfg.Now(), Trace: c.cfg.Trace(ctx, nil)}
	c.cfg.Entropy(t.Seed[:])
	goesOn := ""
	if out.RunID != "" {
		goesOn = req.Snapshot.RunID
	}
	runs, _, err := p.Engine.Fork(goesOn, t)
	if err == nil {
		out.Begin.Snapshot, err = p.Engine.Snapshot()
	}
	if err != nil {
		return nil, refusal.ToClient(err)
	}
	out.Begin.Held = by.Of(runs, req.Snapshot.HandlerID)
	return out, nil
}
