package requests

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// DeleteSession deletes a session with all that it has; see host.Sessions.
func (s *Service) DeleteSession(ctx context.Context, tenant, id string) error {
	if err := s.cfg.Accepting(); err != nil {
		return err
	}
	key := host.SessionKey{Tenant: tenant, Session: id}
	for {
		err := s.cfg.Sessions.Erase(ctx, key)
		switch {
		// Somebody else deletes the session, or a handler with which it left memory.
		case errors.Is(err, refusal.ErrGone):
			continue
		case errors.Is(err, ErrMail):
			if _, err := s.cfg.Settle(ctx, key); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		break
	}
	ss, err := s.cfg.Sessions.Pin(ctx, key, true)
	if err != nil {
		return err
	}
	ss.Release()
	return nil
}
