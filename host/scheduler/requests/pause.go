package requests

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// Pause lets a run begin no steps; see host.Runs.
func (s *Service) Pause(ctx context.Context, tenant, id string) (host.Run, error) {
	return s.steer(ctx, tenant, id, Session.Pause)
}

// Resume continues a run that is paused or blocked; see host.Runs. The attempts of a
// blocked run are replayed from their records.
func (s *Service) Resume(ctx context.Context, tenant, id string) (host.Run, error) {
	return s.steer(ctx, tenant, id, Session.Resume)
}

// resumeAnew continues a blocked run without the records of its attempts.
func (s *Service) resumeAnew(ctx context.Context, tenant, id string) (host.Run, error) {
	return s.steer(ctx, tenant, id, Session.ResumeAnew)
}

// steer makes a tick of a running run, and gives the run's record when that is
// durable.
func (s *Service) steer(ctx context.Context, tenant, id string, do func(ss Session, runID string) (rec host.Run, pos uint64, err error)) (host.Run, error) {
	if err := s.cfg.Accepting(); err != nil {
		return host.Run{}, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	if err != nil {
		return host.Run{}, err
	}
	defer ss.Release()
	rec, pos, err := do(ss, run.RunID)
	if err != nil {
		return host.Run{}, refusal.ToClient(err)
	}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Run{}, host.Unavailable(err)
	}
	return rec, nil
}
