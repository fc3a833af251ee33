package requests

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/edits"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/state"
)

// State reads a value of a session's state; see host.Sessions.
func (s *Service) State(ctx context.Context, tenant, id, path string) (host.StateValue, error) {
	p, err := edits.ParsePath(path)
	if err != nil {
		return host.StateValue{}, err
	}
	ss, err := s.cfg.Sessions.Pin(ctx, host.SessionKey{Tenant: tenant, Session: id}, false)
	if err != nil {
		return host.StateValue{}, err
	}
	defer ss.Release()
	root, pos := ss.Root()
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.StateValue{}, host.Unavailable(err)
	}
	return s.edits.At(ctx, tenant, root, p, path)
}

// StateAt reads a value of the state that a session had; see host.Runs.
func (s *Service) StateAt(ctx context.Context, tenant, id string, at uint64, path string) (host.StateValue, error) {
	p, err := edits.ParsePath(path)
	if err != nil {
		return host.StateValue{}, err
	}
	root, err := s.cfg.Past.RootAt(ctx, tenant, id, at)
	if err != nil {
		return host.StateValue{}, err
	}
	return s.edits.At(ctx, tenant, root, p, path)
}

// EditState edits a session's state from outside; see host.Sessions.
func (s *Service) EditState(ctx context.Context, req host.SessionEdit) (host.StateValue, bool, error) {
	if err := s.cfg.Taking(req.Tenant); err != nil {
		return host.StateValue{}, false, err
	}
	if err := handlers.CheckID("the name of a session", req.Session); err != nil {
		return host.StateValue{}, false, err
	}
	e, err := s.edits.Read(ctx, &req)
	if err != nil {
		return host.StateValue{}, false, err
	}
	c, before, err := s.cfg.Keys.Claim(ctx, req.Tenant, req.Once)
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
	done := s.cfg.Sessions.Edited(c.Rows(req.Session))
	e.Once = c != nil
	err = e.Make(ctx, done.Pin)
	root, pos, created := done.Result()
	c.Settle(pos)
	// The end of the request's context is not a refusal.
	if err != nil && ctx.Err() == nil {
		err = refusal.ToClient(err)
	}
	if err != nil {
		return host.StateValue{}, false, err
	}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.StateValue{}, false, host.Unavailable(err)
	}
	v := edits.Deleted
	if n, ok := state.Get(root, e.At()); ok {
		v, err = s.edits.Value(ctx, req.Tenant, n)
	}
	return v, created, err
}
