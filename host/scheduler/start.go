package scheduler

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/continuation"
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
	s     *Scheduler
	req   *host.StartRequest
	claim *idempotency.Claim    // of the request's key; nil: it has none
	mod   versions.Module       // that the run takes
	held  *handlers.Reservation // of the handler's id

	// Of a run that has begun. Its session is pinned.
	ss  *session
	run host.Run
	end chan ended // of a start that waits
	pos uint64     // 0: the start was refused, and nothing has to be given back
}

// Start begins a run; see host.Runs.
func (s *Scheduler) Start(ctx context.Context, req host.StartRequest) (host.Run, error) {
	if err := s.taking(req.Tenant); err != nil {
		return host.Run{}, err
	}
	claim, before, err := s.keys.Claim(ctx, req.Tenant, req.Once)
	if err != nil {
		return host.Run{}, err
	}
	st := &start{s: s, req: &req, claim: claim}
	if before != nil {
		return st.repeat(ctx, before.RunID)
	}
	err = st.admit(ctx)
	claim.Settle(st.pos)
	if err != nil {
		return host.Run{}, err
	}
	defer st.ss.release()
	defer st.held.GiveBack()
	if !req.Wait {
		if err := s.cfg.Journal.Wait(ctx, st.pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
		return st.run, nil
	}
	// The handler is active in memory now: nobody needs the reservation to see
	// it, but others must not read a store that does not have it yet.
	return s.await(ctx, st.end)
}

// admit begins a run when there is room for it and its tenant's turn has come.
func (st *start) admit(ctx context.Context) error {
	s, req := st.s, st.req
	release := req.Admitted
	if release == nil {
		var err error
		if release, err = s.AskStart(ctx, host.StartAsk{Tenant: req.Tenant, Workflow: req.Workflow, Wait: req.Wait}); err != nil {
			return err
		}
	}
	defer release() // the run counts itself by then
	if err := s.gate.Enter(ctx, req.Tenant); err != nil {
		return err
	}
	// Until the entry is in the journal's queue, the version that the run takes must stay.
	defer s.cfg.Modules.Starting()()
	err := st.begin(ctx)
	s.gate.Leave(req.Tenant, st.pos)
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
	if st.held, err = s.reserved.Take(ctx, req); err != nil {
		return err
	}
	if req.Snapshot != nil {
		err = st.fromSnapshot(ctx)
	} else {
		err = st.inSession(ctx)
	}
	st.held.Pos = st.pos
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
		ss.release()
		// A session that was purged meanwhile is another one now.
		if !errors.Is(err, refusal.ErrGone) {
			return err
		}
	}
}

// session pins the session of the start.
func (st *start) session(ctx context.Context) (*session, error) {
	key := host.SessionKey{Tenant: st.req.Tenant, Session: st.held.Session}
	if st.held.Private {
		st.held.Private = false // from now on others may know it
		if ss := st.s.table.begin(key); ss != nil {
			return ss, nil
		}
	}
	return st.s.table.acquire(ctx, key, true)
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
	err = st.goOn(ss, imp)
	if err == nil && imp.RunID == "" {
		err = st.tick(ctx, ss)
	}
	if err != nil {
		st.pos = 0 // what was imported without a run stays, and is a session of its own
		ss.release()
	}
	return err
}

// goOn begins an empty session by what was imported. The session stays pinned by it.
func (st *start) goOn(ss *session, imp *continuation.Imported) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.eng.Seq() != 0 {
		return host.Errorf(host.CodeConflict, "Session '%s' has been used: a snapshot needs an empty session", ss.key.Session)
	}
	var with extras
	var end chan ended
	if imp.RunID != "" {
		end = ss.endOf(imp.RunID, st.req.Wait)
		with.repeats = st.claim.Rows(imp.RunID)
	}
	run, pos, err := ss.adopt(imp.Begin, imp.RunID, with)
	if err != nil {
		delete(ss.ended, imp.RunID)
		return refusal.ToClient(err)
	}
	st.ss, st.run, st.end, st.pos = ss, run, end, pos
	return nil
}

// tick ticks the run's start. The session stays pinned by it.
func (st *start) tick(ctx context.Context, ss *session) error {
	s, req := st.s, st.req
	t := st.mod.Start(s.cfg.Limits, s.cfg.Timeout, req.Tenant, req.Event)
	t.RunID, t.HandlerID, t.Queue = s.reserved.NewID(), req.HandlerID, req.OnBusy == host.OnBusyQueue
	t.Trace = s.traceOf(ctx, nil)
	s.cfg.Entropy(t.Seed[:])
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, active, _ := ss.eng.HandlerRun(req.HandlerID); active {
		return handlers.AlreadyRunning(req.HandlerID)
	}
	if req.OnBusy == host.OnBusyReject && ss.eng.Active() > 0 {
		return host.Errorf(host.CodeConflict, "session '%s' is busy", ss.key.Session)
	}
	places, err := ss.place(t.Queue && ss.eng.Active() > 0)
	if err != nil {
		return err
	}
	end := ss.endOf(t.RunID, req.Wait) // before the tick, by which the run may end
	var run host.Run
	_, pos, err := ss.tick(t, extras{repeats: st.claim.Rows(t.RunID), places: places, attach: func(r *engine.Result) uint64 {
		for _, c := range r.Commands {
			if c, ok := c.(engine.RunChanged); ok && c.Run.RunID == t.RunID {
				run = c.Run
			}
		}
		return 0
	}})
	if err != nil {
		ss.giveBack(places)
		delete(ss.ended, t.RunID)
		return refusal.ToClient(err)
	}
	s.log.began(ctx, &run)
	st.ss, st.run, st.end, st.pos = ss, run, end, pos
	return nil
}

// endOf gives what gets the end of a run; nil: nobody waits for it. The caller holds mu.
func (ss *session) endOf(runID string, wait bool) chan ended {
	if !wait {
		return nil
	}
	end := make(chan ended, 1)
	ss.ended[runID] = append(ss.ended[runID], end)
	return end
}

// repeat answers a start that was made before with its run, as it is now; if the request
// waits, when the run has ended.
func (st *start) repeat(ctx context.Context, runID string) (host.Run, error) {
	if st.req.Admitted != nil {
		st.req.Admitted() // it adds no run
	}
	// Each round waits for the end of the run, or finds that the store does not have it yet.
	for {
		run, err := st.s.past.RunOf(ctx, st.req.Tenant, runID)
		if err != nil {
			return host.Run{}, err
		}
		if !st.req.Wait || run.Status.Final() {
			return run, nil
		}
		ss, err := st.s.table.acquire(ctx, host.SessionKey{Tenant: st.req.Tenant, Session: run.SessionID}, false)
		if err != nil {
			return host.Run{}, err
		}
		end := make(chan ended, 1)
		ss.mu.Lock()
		rec, known := ss.eng.Record(runID)
		active := known && !rec.Status.Final()
		if active {
			ss.ended[runID] = append(ss.ended[runID], end)
		}
		pos := ss.lastPos
		ss.mu.Unlock()
		if active {
			// The client may leave before the end: nobody reads from end then.
			run, err = st.s.await(ctx, end)
			if err != nil {
				ss.mu.Lock()
				ss.forget(runID, end)
				ss.mu.Unlock()
			}
			ss.release()
			return run, err
		}
		// The run has ended: the store says how, as soon as that is durable.
		ss.release()
		if err := st.s.cfg.Journal.Wait(ctx, pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
	}
}
