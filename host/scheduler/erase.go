package scheduler

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/history"
)

// A session is deleted in steps of bounded work, each a batch that goes through the
// journal's queue. From the first one on it is there for nobody, and it is due: so
// whoever loads it, a request or, after a crash, the list of what is due, first goes
// on deleting it to the end, and then has a new one of the name.
//
//	locked: no run is active -> first step queued, the session is dead
//	load: its step is durable -> the store says ErrErasing -> another step -> ...
//	     -> the store has none -> an empty session

// DeleteSession deletes a session with all that it has; see host.Sessions.
func (s *Scheduler) DeleteSession(ctx context.Context, tenant, id string) error {
	if err := s.accepting(); err != nil {
		return err
	}
	key := host.SessionKey{Tenant: tenant, Session: id}
	for {
		err := s.eraseLoaded(ctx, key)
		switch {
		case errors.Is(err, errDead):
			continue // somebody else deletes it, or its handler
		case errors.Is(err, errTell):
			if _, err := s.settle(ctx, key); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		break
	}
	ss, err := s.acquire(ctx, key, true)
	if err != nil {
		return err
	}
	ss.release()
	return nil
}

// eraseLoaded loads a session and begins to delete it. One whose journal does not
// fold goes without.
func (s *Scheduler) eraseLoaded(ctx context.Context, key host.SessionKey) error {
	ss, err := s.acquire(ctx, key, false)
	if err == nil {
		defer ss.release()
		return ss.erase()
	}
	var journal *history.Unfoldable
	if !errors.As(err, &journal) {
		return err
	}
	held, err := s.storedRuns(ctx, key)
	if err != nil {
		return host.Unavailable(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.quarantine[key]; !there || s.sessions[key] != nil {
		return host.Errorf(host.CodeUnavailable, "session %q is just being loaded, or deleted: try again", key.Session)
	}
	s.barriers[key] = s.cfg.Journal.Append(s.cfg.Now(), s.eraseItem(key))
	delete(s.quarantine, key)
	s.cfg.Quotas.Runs(key.Tenant, -held.active, -held.waiting)
	s.cfg.Log.Warn("a quarantined session is deleted", "tenant", key.Tenant, "session", key.Session)
	return nil
}

func (s *Scheduler) eraseItem(key host.SessionKey) host.JournalItem {
	return host.JournalItem{Key: key, WakeAt: host.WakeNever, Erase: s.cfg.EraseRows, Size: 128}
}

// erase begins to delete the session, which leaves memory with it.
func (ss *session) erase() error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch n := ss.eng.Active(); {
	case ss.dead:
		return errDead
	case n > 0:
		return host.Errorf(host.CodeConflict, "Session '%s' has %d active runs: cancel them first", ss.key.Session, n)
	case len(ss.eng.MailTo()) > 0:
		return errTell
	}
	ss.lastPos = ss.s.cfg.Journal.Append(ss.s.cfg.Now(), ss.s.eraseItem(ss.key))
	ss.die()
	return nil
}

// die takes a session out of memory whose deletion is queued: whoever wants it next
// loads what the store has after that. Called with mu held.
func (ss *session) die() {
	s := ss.s
	ss.dead = true
	s.mu.Lock()
	for _, w := range ss.needs {
		s.starts.Demand.Gone(w)
	}
	if s.sessions[ss.key] == ss {
		delete(s.sessions, ss.key)
	}
	s.timers.Remove(ss.key)
	s.barriers[ss.key] = ss.lastPos
	s.mu.Unlock()
}

// eraseMore does another step of a deletion that was begun. Nobody has the session:
// it is being loaded.
func (ss *session) eraseMore(ctx context.Context) error {
	s := ss.s
	return s.cfg.Journal.Wait(ctx, s.cfg.Journal.Append(s.cfg.Now(), s.eraseItem(ss.key)))
}
