package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// Cancel ends a running run, or with purge deletes a handler; see host.Runs. If
// the run's steps clean up first, it waits for them; its children in other sessions
// are cancelled before it returns.
func (s *Scheduler) Cancel(ctx context.Context, tenant, id string, purge bool) (bool, error) {
	if err := s.accepting(); err != nil {
		return false, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	// A run that has ended can only be deleted. Its session may have no entries left.
	if errors.Is(err, refusal.ErrCompleted) {
		if !purge {
			return false, history.ErrNoHandler
		}
		ss, err = s.table.acquire(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, true)
	}
	if err != nil {
		if !purge {
			return false, err
		}
		// Nothing else could be done with a session that does not load: its handlers can at
		// least be deleted.
		pos, err := s.table.purgeQuarantined(run, err)
		if err != nil {
			return false, err
		}
		if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
			return false, host.Unavailable(err)
		}
		return true, nil
	}
	defer func() { ss.release() }() // of the session by then
	// With purge each round comes closer to a handler without runs and without messages.
	for {
		pos, end, err := ss.cancel(run, purge)
		switch {
		// The session left memory with the purge of another handler. What is stored is there.
		case purge && errors.Is(err, refusal.ErrGone):
			next, err := s.table.acquire(ctx, ss.key, true)
			if err != nil {
				return false, err
			}
			ss.release()
			ss = next
			continue
		// The messages are in the journal of this session, and would be deleted with it.
		case errors.Is(err, errTell):
			if _, err := s.mailer.Settle(ctx, ss.key); err != nil {
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
		if pos, err = s.mailer.Settle(ctx, ss.key); err != nil {
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

// cancel cancels a run, and tells its end where it says; with purge it deletes the
// run's handler, whose latest run may be a newer one by now, as soon as that has
// no run: end is nil then.
func (ss *session) cancel(run host.Run, purge bool) (pos uint64, end chan ended, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return 0, nil, refusal.ErrGone
	}
	target, active := run.RunID, !run.Status.Final()
	// The record was read without the lock: the handler may have begun another run since.
	if purge {
		if latest, running, _ := ss.eng.HandlerRun(run.HandlerID); running {
			target, active = latest, true
		}
	}
	if active {
		end = make(chan ended, 1)
		ss.ended[target] = append(ss.ended[target], end)
		_, pos, err = ss.tick(engine.Cancel{RunID: target}, extras{})
		switch {
		case err != nil:
			// To find the run ended is what a purge wants.
			ss.forget(target, end)
			if err := cancelled(err, purge); err != nil {
				return 0, nil, err
			}
		// Its steps clean up first, or nothing more is wanted: the caller waits for the end.
		case !purge || len(end) == 0:
			return pos, end, nil
		}
	}
	if len(ss.eng.MailTo()) > 0 {
		return 0, nil, errTell
	}
	return ss.purge(run), nil, nil
}

// errTell: the session has messages for others, which would be lost with it.
var errTell = errors.New("the session has messages to deliver")

// forget takes back a wait for a run's end. The caller holds mu.
func (ss *session) forget(runID string, end chan ended) {
	rest := slices.DeleteFunc(ss.ended[runID], func(other chan ended) bool { return other == end })
	if len(rest) == 0 {
		delete(ss.ended, runID)
		return
	}
	ss.ended[runID] = rest
}

// cancelled turns the error of a cancel tick into the client's.
func cancelled(err error, purge bool) error {
	err = refusal.ToClient(err)
	if errors.Is(err, refusal.ErrCompleted) {
		if purge {
			return nil // it ended meanwhile
		}
		return history.ErrNoHandler
	}
	return err
}

// purge queues the deletion of a handler. A session that nothing else uses
// leaves memory with it, and is loaded again from what the store has after the
// deletion. The caller holds mu.
func (ss *session) purge(run host.Run) uint64 {
	s := ss.s
	ss.lastPos = s.cfg.Journal.Append(s.cfg.Now(), host.JournalItem{
		Key: ss.key, WakeAt: ss.eng.WakeAt(), Purge: []string{run.HandlerID}, Size: 128,
	})
	if ss.eng.Active() == 0 {
		ss.die()
	}
	return ss.lastPos
}
