package requests

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// Cancel ends a running run, or with purge deletes a handler; see host.Runs. If
// the run's steps clean up first, it waits for them; its children in other sessions
// are cancelled before it returns.
func (s *Service) Cancel(ctx context.Context, tenant, id string, purge bool) (bool, error) {
	if err := s.cfg.Accepting(); err != nil {
		return false, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	// A run that has ended can only be deleted. Its session may have no entries left.
	if errors.Is(err, refusal.ErrCompleted) {
		if !purge {
			return false, history.ErrNoHandler
		}
		ss, err = s.cfg.Sessions.Pin(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, true)
	}
	if err != nil {
		if !purge {
			return false, err
		}
		// Nothing else could be done with a session that does not load: its handlers can at
		// least be deleted.
		pos, err := s.cfg.Sessions.PurgeQuarantined(run, err)
		if err != nil {
			return false, err
		}
		if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
			return false, host.Unavailable(err)
		}
		return true, nil
	}
	defer func() { ss.Release() }() // of the session by then
	key := host.SessionKey{Tenant: tenant, Session: run.SessionID}
	// With purge each round comes closer to a handler without runs and without messages.
	for {
		pos, end, err := ss.Cancel(run, purge)
		switch {
		// The session left memory with the purge of another handler. What is stored is there.
		case purge && errors.Is(err, refusal.ErrGone):
			next, err := s.cfg.Sessions.Pin(ctx, key, true)
			if err != nil {
				return false, err
			}
			ss.Release()
			ss = next
			continue
		// The messages are in the journal of this session, and would be deleted with it.
		case errors.Is(err, ErrMail):
			if _, err := s.cfg.Settle(ctx, key); err != nil {
				return false, err
			}
			continue
		case err != nil:
			return false, err
		case end == nil: // it was purged
			if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
				return false, host.Unavailable(err)
			}
			return true, nil
		}
		if run, err = s.await(ctx, end); err != nil {
			return false, err
		}
		// Children in other sessions are cancelled by messages, and before the answer.
		if pos, err = s.cfg.Settle(ctx, key); err != nil {
			return false, err
		}
		if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
			return false, host.Unavailable(err)
		}
		if !purge {
			if run.Status != host.StatusCancelled {
				return false, history.ErrNoHandler // it was timing out before it was cancelled
			}
			return false, nil
		}
	}
}

// ErrMail is returned if the session has messages for others, which would be lost with it.
var ErrMail = errors.New("the session has messages to deliver")
