package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// Cancel ends a running run, or with purge deletes a handler; see host.Runs. If
// the run's steps clean up first, it waits for them; its children in other sessions
// are cancelled before it returns.
func (s *Scheduler) Cancel(ctx context.Context, tenant, id string, purge bool) (bool, error) {
	if err := s.accepting(); err != nil {
		return false, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	if errors.Is(err, completed) {
		if !purge {
			return false, history.ErrNoHandler
		}
		ss, err = s.acquire(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, true)
	}
	if err != nil {
		if !purge {
			return false, err
		}
		pos, err := s.purgeQuarantined(run, err)
		if err != nil {
			return false, err
		}
		if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
			return false, host.Unavailable(err)
		}
		return true, nil
	}
	defer func() { ss.release() }()
	for {
		pos, end, err := ss.cancel(run, purge)
		switch {
		case purge && errors.Is(err, errDead): // with the purge of another handler: what is stored is there
			next, err := s.acquire(ctx, ss.key, true)
			if err != nil {
				return false, err
			}
			ss.release()
			ss = next
			continue
		case errors.Is(err, errTell):
			if _, err := s.settle(ctx, ss.key); err != nil {
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
		if pos, err = s.settle(ctx, ss.key); err != nil {
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
		return 0, nil, errDead
	}
	target, active := run.RunID, !run.Status.Final()
	if purge {
		if latest, running, _ := ss.eng.HandlerRun(run.HandlerID); running {
			target, active = latest, true
		}
	}
	if active {
		end = make(chan ended, 1)
		ss.ended[target] = append(ss.ended[target], end)
		_, pos, err = ss.tick(engine.Cancel{RunID: target}, nil)
		switch {
		case err != nil:
			ss.forget(target, end)
			if err := cancelled(err, purge); err != nil {
				return 0, nil, err
			}
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

// forget takes back a wait for a run's end. Called with mu held.
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
	err = refused(err)
	if errors.Is(err, completed) {
		if purge {
			return nil // it ended meanwhile
		}
		return history.ErrNoHandler
	}
	return err
}

// purge queues the deletion of a handler. A session that nothing else uses
// leaves memory with it: whoever wants it next loads what the store has after
// the deletion. Called with mu held.
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

// takeTurns begins the queued runs of the session whose turn has come. Called with
// mu held.
func (ss *session) takeTurns() {
	for !ss.dead && ss.eng.TurnDue() {
		if _, _, err := ss.tick(engine.BeginRun{}, nil); err != nil {
			ss.log(context.Background(), slog.LevelError, "a queued run cannot begin", "error", err)
			return
		}
	}
}
