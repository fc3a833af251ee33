package scheduler

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/edits"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/state"
)

// State reads a value of a session's state; see host.Sessions.
func (s *Scheduler) State(ctx context.Context, tenant, id, path string) (host.StateValue, error) {
	p, err := edits.ParsePath(path)
	if err != nil {
		return host.StateValue{}, err
	}
	ss, err := s.table.acquire(ctx, host.SessionKey{Tenant: tenant, Session: id}, false)
	if err != nil {
		return host.StateValue{}, err
	}
	defer ss.release()
	ss.mu.Lock()
	root, pos := ss.eng.State(), ss.lastPos
	ss.mu.Unlock()
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.StateValue{}, host.Unavailable(err)
	}
	return s.edits.At(ctx, tenant, root, p, path)
}

// StateAt reads a value of the state that a session had; see host.Runs.
func (s *Scheduler) StateAt(ctx context.Context, tenant, id string, at uint64, path string) (host.StateValue, error) {
	p, err := edits.ParsePath(path)
	if err != nil {
		return host.StateValue{}, err
	}
	root, err := s.past.RootAt(ctx, tenant, id, at)
	if err != nil {
		return host.StateValue{}, err
	}
	return s.edits.At(ctx, tenant, root, p, path)
}

// EditState edits a session's state from outside; see host.Sessions.
func (s *Scheduler) EditState(ctx context.Context, req host.SessionEdit) (host.StateValue, bool, error) {
	if err := s.taking(req.Tenant); err != nil {
		return host.StateValue{}, false, err
	}
	if err := handlers.CheckID("the name of a session", req.Session); err != nil {
		return host.StateValue{}, false, err
	}
	e, err := s.edits.Read(ctx, &req)
	if err != nil {
		return host.StateValue{}, false, err
	}
	c, before, err := s.keys.Claim(ctx, req.Tenant, req.Once)
	if err != nil {
		return host.StateValue{}, false, err
	}
	// A repeated edit is answered by the state as it is now. What it deleted is not there.
	if before != nil {
		v, err := s.State(ctx, req.Tenant, req.Session, req.Path)
		if host.CodeOf(err) == host.CodeNotFound && req.Path != "" {
			v, err = edits.Deleted, nil
		}
		return v, false, err
	}
	done := &edited{s: s, once: c}
	e.Once = c != nil
	err = e.Make(ctx, done.pin)
	c.Settle(done.pos)
	// The end of the request's context is not a refusal.
	if err != nil && ctx.Err() == nil {
		err = refusal.ToClient(err)
	}
	if err != nil {
		return host.StateValue{}, false, err
	}
	if err := s.cfg.Journal.Wait(ctx, done.pos); err != nil {
		return host.StateValue{}, false, host.Unavailable(err)
	}
	v := edits.Deleted
	if n, ok := state.Get(done.root, e.At()); ok {
		v, err = s.edits.Value(ctx, req.Tenant, n)
	}
	return v, done.created, err
}

// edited is the session of an edit as package edits sees it, and the result of the edit.
type edited struct {
	s    *Scheduler
	once *idempotency.Claim
	*session

	root    *state.Node // the state after the edit
	pos     uint64      // of the edit's entry, or of the newest entry if the edit changed nothing; 0: it was refused
	created bool
}

// pin pins the session of an edit.
func (d *edited) pin(ctx context.Context, key host.SessionKey, create bool) (_ edits.Session, err error) {
	d.session, err = d.s.table.acquire(ctx, key, create)
	return d, err
}

// State implements edits.Session.
func (d *edited) State() *state.Node { return d.state.Load() }

// Ran implements edits.Session.
func (d *edited) Ran() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.eng.RanVersions()
}

// View implements edits.Session.
func (d *edited) View(e *edits.Edit) (v edits.View, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v = edits.View{Fresh: d.eng.Seq() == 0, State: d.eng.State()}
	if d.dead {
		return v, refusal.ErrGone
	}
	if err = e.Takes(v.Fresh); err == nil {
		v.Keep, err = d.eng.KeptSchemas()
	}
	return v, err
}

// Make implements edits.Session.
func (d *edited) Make(e *edits.Edit) (free <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, refusal.ErrGone
	}
	fresh := d.eng.Seq() == 0
	if err := e.Takes(fresh); err != nil {
		return nil, err
	}
	if free := d.tickets.Await(e.Paths()); free != nil {
		return free, nil
	}
	_, pos, err := d.tick(e.Tick(fresh), extras{repeats: d.once.Rows(d.key.Session)})
	if err != nil {
		return nil, err
	}
	d.pos, d.root, d.created = pos, d.eng.State(), fresh
	return nil, nil
}

// Release implements edits.Session.
func (d *edited) Release() { d.release() }
