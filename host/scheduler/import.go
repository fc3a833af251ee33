package scheduler

import (
	"context"
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// An export is what a fork of the run would begin with (export.go). An import, on this
// server or another, is a fork of that: it has new ids and the rest of the run's waits. A
// client may have changed the export, so the server does not trust it: the versions must be
// the tenant's own, the limits are the server's, and the engine checks the rest.

// imported is a snapshot that a start has brought, ready to begin a session.
type imported struct {
	begin engine.Adopt
	runID string // of the run that continues; "" if none does
}

// read checks a snapshot that a start has brought, and makes of it what begins the
// session of the new run.
func (st *start) read(ctx context.Context, key host.SessionKey) (*imported, error) {
	s, req := st.s, st.req
	from := req.Snapshot
	if from.Workflow != req.Workflow {
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot is of workflow '%s', not '%s'", from.Workflow, req.Workflow)
	}
	p := s.past.Past(key)
	p.Key = host.SessionKey{Tenant: req.Tenant, Session: from.HandlerID}
	var held []engine.HeldAttempt
	var err error
	p.Engine, err = engine.Restore(key, s.cfg.graph, from.Session)
	// The limits in the snapshot are a client's word: the server's own replace them.
	if err == nil {
		err = p.Engine.Limit(func(version string) (host.Limits, error) { return st.allowed(version) })
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
	return st.importOf(ctx, p, held, key)
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
func (st *start) allowed(version string) (host.Limits, error) {
	s, tenant := st.s, st.req.Tenant
	mod, err := s.cfg.Modules.ByDigest(version)
	if err == nil {
		mod, err = s.cfg.Modules.Newest(tenant, mod.Graph.Workflow())
	}
	if err == nil && mod.Digest == version {
		return mod.Limits(s.cfg.Limits, tenant), nil
	}
	if host.CodeOf(err) == host.CodeUnavailable {
		return host.Limits{}, err
	}
	return host.Limits{}, host.Errorf(host.CodeInvalidArgument, "it is of version %s of a workflow, which is not the newest here", version)
}

// importOf forks what was restored into the session of the new run.
func (st *start) importOf(ctx context.Context, p *history.Past, held []engine.HeldAttempt, key host.SessionKey) (*imported, error) {
	s, req := st.s, st.req
	out := &imported{}
	if p.Engine.Begun(req.Snapshot.RunID) {
		out.runID = s.reserved.NewID()
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
	t := engine.ForkTarget{Key: key, RunID: out.runID, HandlerID: req.HandlerID, At: s.now(), Trace: s.traceOf(ctx, nil)}
	s.cfg.Entropy(t.Seed[:])
	goesOn := ""
	if out.runID != "" {
		goesOn = req.Snapshot.RunID
	}
	runs, _, err := p.Engine.Fork(goesOn, t)
	if err == nil {
		out.begin.Snapshot, err = p.Engine.Snapshot()
	}
	if err != nil {
		return nil, refused(err)
	}
	out.begin.Held = by.Of(runs, req.Snapshot.HandlerID)
	return out, nil
}

// fromSnapshot begins the run by a snapshot: the run in it continues, or a new one starts
// on its state.
func (st *start) fromSnapshot(ctx context.Context) error {
	s, req := st.s, st.req
	_, err := s.cfg.Store.Handler(ctx, req.Tenant, req.HandlerID)
	if err == nil {
		return host.Errorf(host.CodeConflict, "Handler '%s' exists: a snapshot begins a new one", req.HandlerID)
	} else if !errors.Is(err, host.ErrNotFound) {
		return host.Unavailable(err)
	}
	imp, err := st.read(ctx, host.SessionKey{Tenant: req.Tenant, Session: st.held.Session})
	if err == nil && imp.runID == "" {
		req.Event, err = s.startEvent(ctx, req.Tenant, &st.mod, req.Event)
	}
	if err != nil {
		return err
	}
	ss, err := st.session(ctx)
	if err != nil {
		return err
	}
	err = st.goOn(ss, imp)
	if err == nil && imp.runID == "" {
		err = st.tick(ctx, ss)
	}
	if err != nil {
		st.pos = 0 // what was imported without a run stays, and is a session of its own
		ss.release()
	}
	return err
}

// goOn begins an empty session by what was imported. The session stays pinned by it.
func (st *start) goOn(ss *session, imp *imported) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.eng.Seq() != 0 {
		return host.Errorf(host.CodeConflict, "Session '%s' has been used: a snapshot needs an empty session", ss.key.Session)
	}
	var with extras
	var end chan ended
	if imp.runID != "" {
		end = ss.endOf(imp.runID, st.req.Wait)
		with.repeats = st.claim.Rows(imp.runID)
	}
	run, pos, err := ss.adopt(imp.begin, imp.runID, with)
	if err != nil {
		delete(ss.ended, imp.runID)
		return refused(err)
	}
	st.ss, st.run, st.end, st.pos = ss, run, end, pos
	return nil
}
