package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/versions"
)

// A run is moved to another version when three things are so, all at once: no step
// of it is at work; what waits in it fits (see engine.Session.MayMigrate); and each
// attempt that continues makes the calls of its record when it is played to the
// other version's module. The last is tried without the session's mutex, and holds
// if no attempt of the run has done anything meanwhile.

// Rehearsal plays a record to a guest; see package hostcall.
type Rehearsal interface {
	host.Calls
	// Departs says where the guest departed from the record, when its run has come
	// to res and err; nil: nowhere. The error is a fault of the host.
	Departs(res host.InvocationResult, err error) (*host.Departure, error)
}

// migration is a request to move runs, and its results so far.
type migration struct {
	s   *Scheduler
	req *host.MigrateRequest
	to  versions.Module // the newest version
	out host.Migration
}

// Migrate moves runs to the newest version of their workflow; see host.Runs.
func (s *Scheduler) Migrate(ctx context.Context, req host.MigrateRequest) (host.Migration, error) {
	if err := s.accepting(); err != nil {
		return host.Migration{}, err
	}
	to, err := s.cfg.Modules.Newest(req.Tenant, req.Workflow)
	if err != nil {
		return host.Migration{}, err
	}
	mg := &migration{s: s, req: &req, to: to, out: host.Migration{Workflow: req.Workflow, Version: to.Digest}}
	runs, err := mg.runs(ctx)
	if err != nil {
		return host.Migration{}, err
	}
	for i := range runs {
		if err := mg.migrate(ctx, &runs[i]); err != nil {
			return host.Migration{}, err
		}
	}
	return mg.out, nil
}

// runs lists the runs to look at.
func (mg *migration) runs(ctx context.Context) ([]host.Run, error) {
	if mg.req.HandlerID != "" {
		run, err := mg.s.past.Get(ctx, mg.req.Tenant, mg.req.HandlerID)
		if err == nil && run.Workflow != mg.req.Workflow {
			err = host.Errorf(host.CodeConflict, "Handler '%s' belongs to workflow '%s', not '%s'", run.HandlerID, run.Workflow, mg.req.Workflow)
		} else if err == nil && run.Status.Final() {
			err = completed
		}
		return []host.Run{run}, err
	}
	runs, more, err := mg.s.past.List(ctx, host.RunQuery{
		Tenant: mg.req.Tenant, Workflows: []string{mg.req.Workflow}, Statuses: []string{string(host.StatusRunning)},
		Limit: mg.req.Limit, AfterStarted: mg.req.AfterStarted, AfterHandler: mg.req.AfterHandler,
	})
	if more {
		last := &runs[len(runs)-1]
		mg.out.NextStarted, mg.out.NextHandler = last.Started, last.HandlerID
	}
	return runs, err
}

// migrate looks at one run, moves it if possible, and counts the result.
func (mg *migration) migrate(ctx context.Context, run *host.Run) error {
	ss, err := mg.s.table.acquire(ctx, host.SessionKey{Tenant: run.Tenant, Session: run.SessionID}, false)
	if host.CodeOf(err) == host.CodeNotFound {
		return nil // purged meanwhile
	} else if err != nil {
		return err
	}
	defer ss.release()
	// A run may do something while its record is played, which is tried again then.
	const tries = 3
	for try := 0; ; try++ {
		m, err := ss.movable(run.RunID, &mg.to)
		switch {
		case errors.Is(err, engine.ErrUnknownRun), m != nil && m.version == mg.to.Digest:
			return nil // it has ended, or has moved
		case err != nil && m == nil:
			return err
		}
		if try == 0 {
			mg.out.Checked++
		}
		// A step at work, or a run that never rests for long enough, may be moved later.
		if m.busy || try == tries {
			mg.out.Running = append(mg.out.Running, run.HandlerID)
			return nil
		}
		d := departure(err)
		for i := 0; i < len(m.parts) && d == nil; i++ {
			if d, err = mg.s.rehearse(ctx, &mg.to, &m.parts[i]); err != nil {
				return err
			}
		}
		if d != nil {
			d.HandlerID, d.RunID, d.Version = run.HandlerID, run.RunID, m.version
			mg.out.Departed = append(mg.out.Departed, *d)
			return nil
		}
		if mg.req.DryRun {
			mg.out.Fit++
			return nil
		}
		pos, moved, err := mg.moveTo(ss, m, run)
		if err != nil {
			return refused(err)
		}
		if moved {
			mg.out.Fit++
			mg.out.Moved++
			if err := mg.s.cfg.Journal.Wait(ctx, pos); err != nil {
				return host.Unavailable(err)
			}
			return nil
		}
	}
}

// moveTo moves a run if the version is still the newest. Starting keeps the version from
// being deleted before the journal refers to it.
func (mg *migration) moveTo(ss *session, m *mover, run *host.Run) (pos uint64, moved bool, err error) {
	defer mg.s.cfg.Modules.Starting()()
	now, err := mg.s.cfg.Modules.Newest(run.Tenant, run.Workflow)
	if err == nil && now.Digest != mg.to.Digest {
		err = host.Errorf(host.CodeConflict, "Workflow '%s' has a newer version than %s by now: try again", run.Workflow, mg.to.Digest)
	}
	if err != nil {
		return 0, false, err
	}
	return ss.move(m, &mg.to)
}

// departure is that of a run that does not fit.
func departure(err error) *host.Departure {
	if err == nil {
		return nil
	}
	return &host.Departure{Code: host.Incompatible, Message: host.MessageOf(err)}
}

// mover is a run as it was when it was looked at.
type mover struct {
	run     string
	version string
	busy    bool
	blocked bool
	parts   []history.Part
}

// movable looks at a run. The error says what does not fit; without a mover it is
// why the run cannot be looked at.
func (ss *session) movable(runID string, to *versions.Module) (*mover, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return nil, engine.ErrUnknownRun
	}
	m := &mover{run: runID, version: ss.versions[runID]}
	if m.version == "" {
		return nil, engine.ErrUnknownRun
	}
	for _, at := range ss.attempts {
		m.busy = m.busy || at.view.RunID == runID
	}
	if rec, ok := ss.eng.Record(runID); ok {
		m.blocked = rec.Blocked != nil
	}
	m.parts = history.Cast(ss.key, ss.eng, ss.ledger, runID, 0)
	_, err := ss.eng.MayMigrate(runID, to.Digest)
	if err != nil && host.CodeOf(err) != host.CodeConflict {
		return nil, err
	}
	return m, err
}

// move moves a run, if it is as it was when it was looked at. A blocked run
// continues.
func (ss *session) move(m *mover, to *versions.Module) (pos uint64, moved bool, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	// Whatever has changed since the look at the run, another look tells.
	if ss.dead || ss.versions[m.run] != m.version {
		return 0, false, nil
	}
	for _, at := range ss.attempts {
		if at.view.RunID == m.run {
			return 0, false, nil
		}
	}
	same := func(a, b history.Part) bool {
		return a.View.ID == b.View.ID && a.View.Attempt == b.View.Attempt && len(a.Calls) == len(b.Calls) && (a.Pending == nil) == (b.Pending == nil)
	}
	if !slices.EqualFunc(m.parts, history.Cast(ss.key, ss.eng, ss.ledger, m.run, 0), same) {
		return 0, false, nil
	}
	_, pos, err = ss.tick(engine.Migrate{RunID: m.run, Version: to.Digest}, extras{})
	if host.CodeOf(err) == host.CodeConflict {
		return 0, false, nil // something has come that does not fit: the next look tells
	}
	// The version that blocked the run is no longer used: the run continues.
	if rec, ok := ss.eng.Record(m.run); err == nil && ok && rec.Blocked != nil {
		ss.recall(m.run)
		if _, pos, err = ss.tick(engine.Resume{RunID: m.run}, extras{}); err == nil {
			ss.callAgain(m.run)
		}
	}
	return pos, err == nil, err
}

// rehearse plays an attempt's record to the module of another version that serves
// its step. It takes a token of the tenant, as any run of a guest.
func (s *Scheduler) rehearse(ctx context.Context, m *versions.Module, p *history.Part) (*host.Departure, error) {
	// An attempt of an atomic step has no record, and begins anew in any case.
	if p.View.Atomic {
		return nil, nil
	}
	calls := s.cfg.Rehearse(p.Open, p.Calls, p.Pending)
	inv, err := m.Invocation(p.Key, &p.View, p.Open)
	if err != nil {
		return nil, err
	}
	tok := s.cores.newToken(p.Key.Tenant, nil)
	tok.acquire()
	inv.Calls, inv.Token = calls, tok
	res, err := s.cfg.Sandbox.Invoke(ctx, inv)
	tok.release(res.Fuel, res.Work)
	d, err := calls.Departs(res, err)
	if err != nil {
		return nil, host.Unavailable(err)
	}
	if d != nil {
		d.Step = p.View.Step
	}
	return d, nil
}
