package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
)

// A run leaves the server as what a fork of it would begin with, and comes back, or
// comes to another server, as a fork of that: under new ids, with what remained of
// its waits. A client may have changed what it brings, so nothing in it is believed
// that others rely on: versions have to be the tenant's own, limits are the
// server's, and the engine checks the rest.

// Export gives what a run is made of; see host.Runs.
func (s *Scheduler) Export(ctx context.Context, tenant, id string) (host.RunSnapshot, error) {
	run, err := s.past.Get(ctx, tenant, id)
	if err != nil {
		return host.RunSnapshot{}, err
	}
	p, pos, err := s.present(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID})
	if err != nil {
		return host.RunSnapshot{}, err
	}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.RunSnapshot{}, host.Unavailable(err)
	}
	if _, active := p.Engine.Versions()[run.RunID]; !active {
		// It has ended meanwhile, or is deleted.
		if run, err = s.past.RunOf(ctx, tenant, run.RunID); err != nil {
			return host.RunSnapshot{}, err
		}
	}
	out := host.RunSnapshot{Version: host.RunSnapshotVersion, Workflow: run.Workflow, HandlerID: run.HandlerID, RunID: run.RunID, Status: run.Status}
	t := engine.ForkTarget{Key: p.Key, RunID: run.RunID, HandlerID: run.HandlerID, At: p.Engine.Now()}
	s.cfg.Entropy(t.Seed[:])
	held, goesOn := p.HeldByRun(), run.RunID
	if run.Status.Final() {
		goesOn = ""
	}
	runs, _, err := p.Engine.Fork(goesOn, t)
	if err != nil {
		return host.RunSnapshot{}, refused(err)
	}
	out.Modules = slices.Sorted(maps.Values(p.Engine.Versions()))
	out.Modules = slices.Compact(out.Modules)
	if out.Session, err = p.Engine.Snapshot(); err == nil {
		out.Held, err = abi.Marshal(held.Of(runs, p.Key.Session))
	}
	if err != nil {
		return host.RunSnapshot{}, refused(err)
	}
	return out, nil
}

// present copies a session as it is now, and gives the queue position of that.
func (s *Scheduler) present(ctx context.Context, key host.SessionKey) (*history.Past, uint64, error) {
	ss, err := s.acquire(ctx, key, false)
	if err != nil {
		return nil, 0, err
	}
	defer ss.release()
	ss.mu.Lock()
	data, err := ss.eng.Snapshot()
	held, pos := ss.ledger.Held(), ss.lastPos
	ss.mu.Unlock()
	p := s.past.Past(key)
	if err == nil {
		p.Engine, err = engine.Restore(key, ss.s.graph, data)
	}
	if err != nil {
		return nil, 0, refused(err)
	}
	p.Ledger.Adopt(&engine.Entry{Held: held})
	return p, pos, nil
}

// imported is a snapshot that a start has brought, ready to begin a session.
type imported struct {
	begin engine.Adopt
	runID string // of the run that goes on; "": none does
}

// read checks a snapshot that a start has brought, and makes of it what begins the
// session of the new run.
func (s *Scheduler) read(ctx context.Context, req *host.StartRequest, key host.SessionKey) (*imported, error) {
	from := req.Snapshot
	if from.Workflow != req.Workflow {
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot is of workflow '%s', not '%s'", from.Workflow, req.Workflow)
	}
	p := s.past.Past(key)
	p.Key = host.SessionKey{Tenant: req.Tenant, Session: from.HandlerID}
	var held []engine.HeldAttempt
	var err error
	p.Engine, err = engine.Restore(key, s.graph, from.Session)
	if err == nil {
		err = p.Engine.Limit(func(version string) (host.Limits, error) { return s.allowed(req.Tenant, version) })
	}
	if err == nil {
		err = abi.Unmarshal(from.Held, &held)
	}
	switch {
	case host.CodeOf(err) == host.CodeUnavailable:
		return nil, err
	case err != nil:
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot cannot be used here: %s", explained(err))
	case !p.Engine.Begun(from.RunID) && p.Engine.Active() > 0:
		return nil, host.Errorf(host.CodeInvalidArgument, "The snapshot cannot be used here: it is not of the run that it names")
	}
	return s.importOf(ctx, p, held, req, key)
}

// explained is what an error says to the client.
func explained(err error) string {
	var known *host.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

// allowed gives the limits of a version that a tenant's runs may go on with: the
// newest of its workflow. Others may be of other tenants, or gone.
func (s *Scheduler) allowed(tenant, version string) (host.Limits, error) {
	mod, err := s.cfg.Modules.ByDigest(version)
	if err == nil {
		mod, err = s.cfg.Modules.Newest(tenant, mod.Graph.Workflow())
	}
	if err == nil && mod.Digest == version {
		return mod.limits(s.cfg.Limits, tenant), nil
	}
	if host.CodeOf(err) == host.CodeUnavailable {
		return host.Limits{}, err
	}
	return host.Limits{}, host.Errorf(host.CodeInvalidArgument, "it is of version %s of a workflow, which is not the newest here", version)
}

// importOf forks what was restored into the session of the new run.
func (s *Scheduler) importOf(ctx context.Context, p *history.Past, held []engine.HeldAttempt, req *host.StartRequest, key host.SessionKey) (*imported, error) {
	out := &imported{}
	if p.Engine.Begun(req.Snapshot.RunID) {
		out.runID = s.newID()
	}
	by := history.HeldByRun{}
	for _, h := range held {
		view, ok := p.Engine.Invocation(h.Invocation)
		if !ok || view.Attempt != h.Attempt {
			continue
		}
		if h.Open != nil {
			open := *h.Open
			open.Limits = view.Limits
			h.Open = &open
		}
		h.Crashes, h.Burnt = 0, nil // a client's word for it is none
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

// startFrom begins a run by a snapshot: the run in it goes on, or a new one starts
// on its state.
func (s *Scheduler) startFrom(ctx context.Context, req *host.StartRequest, mod Module, once *idempotency.Claim) (begun, error) {
	st, err := s.reserve(ctx, req)
	if err != nil {
		return begun{}, err
	}
	b, err := s.beginFrom(ctx, st, req, mod, once)
	if err != nil {
		st.unreserve()
	}
	return b, err
}

// beginFrom is startFrom once its handler is reserved.
func (s *Scheduler) beginFrom(ctx context.Context, st *reservation, req *host.StartRequest, mod Module, once *idempotency.Claim) (begun, error) {
	_, err := s.cfg.Store.Handler(ctx, req.Tenant, req.HandlerID)
	if err == nil {
		return begun{}, host.Errorf(host.CodeConflict, "Handler '%s' exists: a snapshot begins a new one", req.HandlerID)
	} else if !errors.Is(err, host.ErrNotFound) {
		return begun{}, host.Unavailable(err)
	}
	imp, err := s.read(ctx, req, host.SessionKey{Tenant: req.Tenant, Session: st.session})
	if err == nil && imp.runID == "" {
		req.Event, err = s.startEvent(ctx, req.Tenant, mod, req.Event)
	}
	if err != nil {
		return begun{}, err
	}
	ss, err := s.sessionOf(ctx, st)
	if err != nil {
		return begun{}, err
	}
	run, pos, end, err := ss.goOn(imp, req.Wait, once)
	if err == nil && imp.runID == "" {
		run, pos, end, err = ss.start(ctx, req, mod, once)
	}
	if err != nil {
		ss.release()
		return begun{}, err
	}
	st.pos = pos
	return begun{ss: ss, st: st, run: run, end: end, pos: pos}, nil
}

// goOn begins an empty session by what was imported. end is as of start.
func (ss *session) goOn(imp *imported, wait bool, once *idempotency.Claim) (run host.Run, pos uint64, end chan ended, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.eng.Seq() != 0 {
		return run, 0, nil, host.Errorf(host.CodeConflict, "Session '%s' has been used: a snapshot needs an empty session", ss.key.Session)
	}
	if wait && imp.runID != "" {
		end = make(chan ended, 1)
		ss.ended[imp.runID] = append(ss.ended[imp.runID], end)
	}
	if imp.runID != "" {
		ss.repeats = once.Rows(imp.runID)
	}
	run, pos, err = ss.adopt(imp.begin, imp.runID)
	if err != nil {
		ss.repeats = nil
		delete(ss.ended, imp.runID)
		return run, 0, nil, refused(err)
	}
	return run, pos, end, nil
}
