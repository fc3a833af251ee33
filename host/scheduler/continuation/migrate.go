package continuation

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/versions"
)

// A run is moved to another version when three things are so, all at once: no step
// of it is at work; what waits in it fits (see engine.Session.MayMigrate); and each
// attempt that continues makes the calls of its record when it is played to the
// other version's module. The last is tried without the session's mutex, and holds
// if no attempt of the run has done anything meanwhile.

// migration is a request to move runs, and its results so far.
type migration struct {
	c   *Continuer
	req *host.MigrateRequest
	to  versions.Module // the newest version
	out host.Migration
}

// Migrate moves runs to the newest version of their workflow; see host.Runs.
func (c *Continuer) Migrate(ctx context.Context, req host.MigrateRequest) (host.Migration, error) {
	if err := c.cfg.Accepting(); err != nil {
		return host.Migration{}, err
	}
	to, err := c.cfg.Modules.Newest(req.Tenant, req.Workflow)
	if err != nil {
		return host.Migration{}, err
	}
	mg := &migration{c: c, req: &req, to: to, out: host.Migration{Workflow: req.Workflow, Version: to.Digest}}
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
		run, err := mg.c.cfg.Past.Get(ctx, mg.req.Tenant, mg.req.HandlerID)
		if err == nil && run.Workflow != mg.req.Workflow {
			err = host.Errorf(host.CodeConflict, "Handler '%s' belongs to workflow '%s', not '%s'", run.HandlerID, run.Workflow, mg.req.Workflow)
		} else if err == nil && run.Status.Final() {
			err = refusal.ErrCompleted
		}
		return []host.Run{run}, err
	}
	runs, more, err := mg.c.cfg.Past.List(ctx, host.RunQuery{
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
	ss, err := mg.c.cfg.Sessions.Existing(ctx, host.SessionKey{Tenant: run.Tenant, Session: run.SessionID})
	if host.CodeOf(err) == host.CodeNotFound {
		return nil // purged meanwhile
	} else if err != nil {
		return err
	}
	defer ss.Release()
	// A run may do something while its record is played, which is tried again then.
	const tries = 3
	for try := 0; ; try++ {
		m, err := ss.Resting(run.RunID, mg.to.Digest)
		switch {
		case errors.Is(err, engine.ErrUnknownRun), m != nil && m.Version == mg.to.Digest:
			return nil // it has ended, or has moved
		case err != nil && m == nil:
			return err
		}
		if try == 0 {
			mg.out.Checked++
		}
		// A step at work, or a run that never rests for long enough, may be moved later.
		if m.Busy || try == tries {
			mg.out.Running = append(mg.out.Running, run.HandlerID)
			return nil
		}
		d := departure(err)
		for i := 0; i < len(m.Parts) && d == nil; i++ {
			if d, err = mg.c.rehearse(ctx, &mg.to, &m.Parts[i]); err != nil {
				return err
			}
		}
		if d != nil {
			d.HandlerID, d.RunID, d.Version = run.HandlerID, run.RunID, m.Version
			mg.out.Departed = append(mg.out.Departed, *d)
			return nil
		}
		if mg.req.DryRun {
			mg.out.Fit++
			return nil
		}
		pos, moved, err := mg.moveTo(ss, m, run)
		if err != nil {
			return refusal.ToClient(err)
		}
		if moved {
			mg.out.Fit++
			mg.out.Moved++
			if err := mg.c.cfg.Journal.Wait(ctx, pos); err != nil {
				return host.Unavailable(err)
			}
			return nil
		}
	}
}

// moveTo moves a run if the version is still the newest. Starting keeps the version from
// being deleted before the journal refers to it.
func (mg *migration) moveTo(ss Session, m *Resting, run *host.Run) (pos uint64, moved bool, err error) {
	defer mg.c.cfg.Modules.Starting()()
	now, err := mg.c.cfg.Modules.Newest(run.Tenant, run.Workflow)
	if err == nil && now.Digest != mg.to.Digest {
		err = host.Errorf(host.CodeConflict, "Workflow '%s' has a newer version than %s by now: try again", run.Workflow, mg.to.Digest)
	}
	if err != nil {
		return 0, false, err
	}
	return ss.Move(m, mg.to.Digest)
}

// departure is that of a run that does not fit.
func departure(err error) *host.Departure {
	if err == nil {
		return nil
	}
	return &host.Departure{Code: host.Incompatible, Message: host.MessageOf(err)}
}

// rehearse plays an attempt's record to the module of another version that serves
// its step. It takes a token of the tenant, as any run of a guest.
func (c *Continuer) rehearse(ctx context.Context, m *versions.Module, p *history.Part) (*host.Departure, error) {
	// An attempt of an atomic step has no record, and begins anew in any case.
	if p.View.Atomic {
		return nil, nil
	}
	calls := c.cfg.Rehearse(p.Open, p.Calls, p.Pending)
	inv, err := m.Invocation(p.Key, &p.View, p.Open)
	if err != nil {
		return nil, err
	}
	inv.Calls = calls
	res, err := c.cfg.Play(ctx, inv)
	d, err := calls.Departs(res, err)
	if err != nil {
		return nil, host.Unavailable(err)
	}
	if d != nil {
		d.Step = p.View.Step
	}
	return d, nil
}
