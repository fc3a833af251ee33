package requests

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/versions"
)

// start is a start of a run on its way from the request to the run's first entry:
//
//	repeated?  answer as the first time  :  admit -> enter the gate -> check -> reserve the
//	handler -> pin the session -> tick -> leave the gate -> wait for the disk, or the end
//
// One goroutine uses it.
type start struct {
	s     *Service
	req   *host.StartRequest
	claim *idempotency.Claim    // of the request's key; nil: it has none
	mod   versions.Module       // that the run takes
	held  *handlers.Reservation // of the handler's id

	// Of a run that has begun. Its session is pinned.
	ss  Session
	run Begun // its position is 0 if the start was refused: there is nothing to give back
}

// Start begins a run; see host.Runs.
func (s *Service) Start(ctx context.Context, req host.StartRequest) (host.Run, error) {
	if err := s.cfg.Taking(req.Tenant); err != nil {
		return host.Run{}, err
	}
	claim, before, err := s.cfg.Keys.Claim(ctx, req.Tenant, req.Once)
	if err != nil {
		return host.Run{}, err
	}
	st := &start{s: s, req: &req, claim: claim}
	if before != nil {
		return st.repeat(ctx, before.RunID)
	}
	err = st.admit(ctx)
	claim.Settle(st.run.Pos)
	if err != nil {
		return host.Run{}, err
	}
	defer st.ss.Release()
	defer st.held.GiveBack()
	if !req.Wait {
		if err := s.cfg.Journal.Wait(ctx, st.run.Pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
		return st.run.Run, nil
	}
	// The handler is active in memory now: nobody needs the reservation to see
	// it, but others must not read a store that does not have it yet.
	return s.await(ctx, st.run.End)
}

// admit begins a run when there is room for it and its tenant's turn has come.
func (st *start) admit(ctx context.Context) error {
	s, req := st.s, st.req
	release := req.Admitted
	if release == nil {
		var err error
		if release, err = s.cfg.AskStart(ctx, host.StartAsk{Tenant: req.Tenant, Workflow: req.Workflow, Wait: req.Wait}); err != nil {
			return err
		}
	}
	defer release() // the run counts itself by then
	if err := s.cfg.Gate.Enter(ctx, req.Tenant); err != nil {
		return err
	}
	// Until the entry is in the journal's queue, the version that the run takes must stay.
	defer s.cfg.Modules.Starting()()
	err := st.begin(ctx)
	s.cfg.Gate.Leave(req.Tenant, st.run.Pos)
	return err
}

// begin checks the start and makes it.
func (st *start) begin(ctx context.Context) (err error) {
	s, req := st.s, st.req
	if err := handlers.CheckStart(req); err != nil {
		return err
	}
	if err := s.cfg.Quotas.Ready(ctx, req.Tenant); err != nil {
		return err
	}
	if st.mod, err = s.cfg.Modules.Newest(req.Tenant, req.Workflow); err != nil {
		return err
	}
	if err := st.mod.CheckResources(s.cfg.Resources, req.Tenant); err != nil {
		return err
	}
	// The event beside a snapshot is used only if no run in the snapshot continues.
	if req.Snapshot == nil {
		if req.Event, err = s.startEvent(ctx, req.Tenant, &st.mod, req.Event); err != nil {
			return err
		}
	}
	if st.held, err = s.cfg.Reserved.Take(ctx, req); err != nil {
		return err
	}
	if req.Snapshot != nil {
		err = st.fromSnapshot(ctx)
	} else {
		err = st.inSession(ctx)
	}
	st.held.Pos = st.run.Pos
	if err != nil {
		st.held.GiveBack()
	}
	return err
}

// inSession starts the run in its session.
func (st *start) inSession(ctx context.Context) error {
	for {
		ss, err := st.session(ctx)
		if err != nil {
			return err
		}
		if err = st.tick(ctx, ss); err == nil {
			return nil
		}
		ss.Release()
		// A session that was purged meanwhile is another one now.
		if !errors.Is(err, refusal.ErrGone) {
			return err
		}
	}
}

// session pins the session of the start.
func (st *start) session(ctx context.Context) (Session, error) {
	key := host.SessionKey{Tenant: st.req.Tenant, Session: st.held.Session}
	if st.held.Private {
		st.held.Private = false // from now on others may know it
		if ss := st.s.cfg.Sessions.New(key); ss != nil {
			return ss, nil
		}
	}
	return st.s.cfg.Sessions.Pin(ctx, key, true)
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
	imp, err := s.Import(ctx, req, host.SessionKey{Tenant: req.Tenant, Session: st.held.Session})
	if err == nil && imp.RunID == "" {
		req.Event, err = s.startEvent(ctx, req.Tenant, &st.mod, req.Event)
	}
	if err != nil {
		return err
	}
	ss, err := st.session(ctx)
	if err != nil {
		return err
	}
	var rows []host.Repeat
	if imp.RunID != "" {
		rows = st.claim.Rows(imp.RunID)
	}
	run, err := ss.Import(imp, req.Wait, rows)
	if err == nil && imp.RunID != "" {
		st.ss, st.run = ss, run
	}
	if err == nil && imp.RunID == "" {
		err = st.tick(ctx, ss)
	}
	if err != nil {
		st.run.Pos = 0 // what was imported without a run stays, and is a session of its own
		ss.Release()
	}
	return err
}

// tick ticks the run's start. The session stays pinned by it.
func (st *start) tick(ctx context.Context, ss Session) error {
	s, req := st.s, st.req
	t := st.mod.Start(s.cfg.Limits, s.cfg.Timeout, req.Tenant, req.Event)
	t.RunID, t.HandlerID, t.Queue = s.cfg.Reserved.NewID(), req.HandlerID, req.OnBusy == host.OnBusyQueue
	t.Trace = s.cfg.Trace(ctx, nil)
	s.cfg.Entropy(t.Seed[:])
	run, err := ss.Start(ctx, t, req, st.claim.Rows(t.RunID))
	if err != nil {
		return err
	}
	st.ss, st.run = ss, run
	return nil
}

// repeat answers a start that was made before with its run, as it is now; if the request
// waits, when the run has ended.
func (st *start) repeat(ctx context.Context, runID string) (host.Run, error) {
	if st.req.Admitted != nil {
		st.req.Admitted() // it adds no run
	}
	// Each round waits for the end of the run, or finds that the store does not have it yet.
	for {
		run, err := st.s.cfg.Past.RunOf(ctx, st.req.Tenant, runID)
		if err != nil {
			return host.Run{}, err
		}
		if !st.req.Wait || run.Status.Final() {
			return run, nil
		}
		ss, err := st.s.cfg.Sessions.Pin(ctx, host.SessionKey{Tenant: st.req.Tenant, Session: run.SessionID}, false)
		if err != nil {
			return host.Run{}, err
		}
		end, pos := ss.EndOf(runID)
		if end != nil {
			// The client may leave before the end: nobody reads from end then.
			run, err = st.s.await(ctx, end)
			if err != nil {
				ss.Forget(runID, end)
			}
			ss.Release()
			return run, err
		}
		// The run has ended: the store says how, as soon as that is durable.
		ss.Release()
		if err := st.s.cfg.Journal.Wait(ctx, pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
	}
}
