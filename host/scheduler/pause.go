package scheduler

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// Pause lets a run begin no steps; see host.Runs.
func (s *Scheduler) Pause(ctx context.Context, tenant, id string) (host.Run, error) {
	return s.steer(ctx, tenant, id, func(ss *session, runID string) (uint64, error) {
		_, pos, err := ss.tick(engine.Pause{RunID: runID}, extras{})
		return pos, err
	})
}

// Resume continues a run that is paused or blocked; see host.Runs. The attempts of a
// blocked run are replayed from their records.
func (s *Scheduler) Resume(ctx context.Context, tenant, id string) (host.Run, error) {
	return s.steer(ctx, tenant, id, func(ss *session, runID string) (uint64, error) {
		// The tick opens the attempts that were cut off, with these records.
		if rec, ok := ss.eng.Record(runID); ok && rec.Blocked != nil {
			ss.recall(runID)
		}
		_, pos, err := ss.tick(engine.Resume{RunID: runID}, extras{})
		if err == nil {
			ss.callAgain(runID)
		}
		return pos, err
	})
}

// steer makes a tick of a running run, and gives the run's record when that is
// durable. do is the caller holds the session's mu.
func (s *Scheduler) steer(ctx context.Context, tenant, id string, do func(ss *session, runID string) (pos uint64, err error)) (host.Run, error) {
	if err := s.accepting(); err != nil {
		return host.Run{}, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	if err != nil {
		return host.Run{}, err
	}
	defer ss.release()
	ss.mu.Lock()
	pos, err := do(ss, run.RunID)
	rec, _ := ss.eng.Record(run.RunID)
	ss.mu.Unlock()
	if err != nil {
		return host.Run{}, refusal.ToClient(err)
	}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Run{}, host.Unavailable(err)
	}
	return rec, nil
}

// recall brings back the records of a blocked run's open attempts. The caller holds mu.
func (ss *session) recall(runID string) {
	for inv, o := range ss.ledger.Copies() {
		if view, ok := ss.eng.Invocation(inv); ok && view.RunID == runID {
			ss.suspended[inv] = o
		}
	}
}
