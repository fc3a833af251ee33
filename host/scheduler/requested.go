package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/requests"
	"github.com/weftrun/weft/host/state"
)

// askedSessions are the sessions as package requests sees them.
type askedSessions struct{ *table }

// Pin implements requests.Sessions.
func (t askedSessions) Pin(ctx context.Context, key host.SessionKey, create bool) (requests.Session, error) {
	ss, err := t.acquire(ctx, key, create)
	if err != nil {
		return nil, err // not ss: an interface that holds a nil pointer is not nil
	}
	return requested{ss}, nil
}

// New implements requests.Sessions.
func (t askedSessions) New(key host.SessionKey) requests.Session {
	if ss := t.begin(key); ss != nil {
		return requested{ss}
	}
	return nil
}

// Edited implements requests.Sessions.
func (t askedSessions) Edited(rows []host.Repeat) requests.Edited {
	return &edited{t: t.table, repeats: rows}
}

// Erase implements requests.Sessions.
func (t askedSessions) Erase(ctx context.Context, key host.SessionKey) error {
	return t.eraseLoaded(ctx, key)
}

// PurgeQuarantined implements requests.Sessions.
func (t askedSessions) PurgeQuarantined(run host.Run, loading error) (pos uint64, err error) {
	return t.purgeQuarantined(run, loading)
}

// requested is a session as package requests sees it: each method does one thing that a
// client has asked for.
type requested struct{ *session }

// Release implements requests.Session.
func (ss requested) Release() { ss.release() }

// Start implements requests.Session.
func (ss requested) Start(ctx context.Context, t engine.StartRun, req *host.StartRequest, rows []host.Repeat) (requests.Begun, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, active, _ := ss.eng.HandlerRun(req.HandlerID); active {
		return requests.Begun{}, handlers.AlreadyRunning(req.HandlerID)
	}
	if req.OnBusy == host.OnBusyReject && ss.eng.Active() > 0 {
		return requests.Begun{}, host.Errorf(host.CodeConflict, "session '%s' is busy", ss.key.Session)
	}
	places, err := ss.place(t.Queue && ss.eng.Active() > 0)
	if err != nil {
		return requests.Begun{}, err
	}
	end := ss.endOf(t.RunID, req.Wait) // before the tick, by which the run may end
	var run host.Run
	_, pos, err := ss.tick(t, extras{repeats: rows, places: places, attach: func(r *engine.Result) uint64 {
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
		return requests.Begun{}, refusal.ToClient(err)
	}
	ss.s.log.Began(ctx, &run)
	return requests.Begun{Run: run, End: end, Pos: pos}, nil
}

// Import implements requests.Session.
func (ss requested) Import(imp *continuation.Imported, wait bool, rows []host.Repeat) (requests.Begun, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.eng.Seq() != 0 {
		return requests.Begun{}, host.Errorf(host.CodeConflict, "Session '%s' has been used: a snapshot needs an empty session", ss.key.Session)
	}
	var end chan requests.Ended
	if imp.RunID != "" {
		end = ss.endOf(imp.RunID, wait)
	}
	run, pos, err := ss.adopt(imp.Begin, imp.RunID, extras{repeats: rows})
	if err != nil {
		delete(ss.ended, imp.RunID)
		return requests.Begun{}, refusal.ToClient(err)
	}
	return requests.Begun{Run: run, End: end, Pos: pos}, nil
}

// endOf gives what gets the end of a run; nil: nobody waits for it. The caller holds mu.
func (ss *session) endOf(runID string, wait bool) chan requests.Ended {
	if !wait {
		return nil
	}
	end := make(chan requests.Ended, 1)
	ss.ended[runID] = append(ss.ended[runID], end)
	return end
}

// EndOf implements requests.Session.
func (ss requested) EndOf(runID string) (end <-chan requests.Ended, pos uint64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if rec, known := ss.eng.Record(runID); known && !rec.Status.Final() {
		end = ss.endOf(runID, true)
	}
	return end, ss.lastPos
}

// Forget implements requests.Session.
func (ss requested) Forget(runID string, end <-chan requests.Ended) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.forget(runID, end)
}

// forget takes back a wait for a run's end. The caller holds mu.
func (ss *session) forget(runID string, end <-chan requests.Ended) {
	rest := slices.DeleteFunc(ss.ended[runID], func(other chan requests.Ended) bool { return other == end })
	if len(rest) == 0 {
		delete(ss.ended, runID)
		return
	}
	ss.ended[runID] = rest
}

// Takes implements requests.Session.
func (ss requested) Takes(runID string) (version string, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	version, ok = ss.versions[runID]
	return version, ok && !ss.eng.Ending(runID)
}

// Post implements requests.Session.
func (ss requested) Post(ctx context.Context, t engine.PostEvent, rows []host.Repeat) (d host.Delivery, pos uint64, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	res, pos, err := ss.tick(t, extras{repeats: rows})
	if err != nil {
		return host.Delivery{}, 0, err
	}
	ss.tracePost(ctx, t.RunID, t.Event.Type)
	return res.Response.Delivery, pos, nil
}

// Pause implements requests.Session.
func (ss requested) Pause(runID string) (rec host.Run, pos uint64, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.steer(runID, engine.Pause{RunID: runID})
}

// ResumeAnew implements requests.Session.
func (ss requested) ResumeAnew(runID string) (rec host.Run, pos uint64, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.steer(runID, engine.Resume{RunID: runID, Anew: true})
}

// Resume implements requests.Session.
func (ss requested) Resume(runID string) (rec host.Run, pos uint64, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	// The tick opens the attempts that were cut off, with these records.
	if rec, ok := ss.eng.Record(runID); ok && rec.Blocked != nil {
		ss.recall(runID)
	}
	rec, pos, err = ss.steer(runID, engine.Resume{RunID: runID})
	if err == nil {
		ss.callAgain(runID)
		rec, _ = ss.eng.Record(runID)
	}
	return rec, pos, err
}

// steer ticks a run, and gives its record. The caller holds mu.
func (ss *session) steer(runID string, t engine.Tick) (rec host.Run, pos uint64, err error) {
	_, pos, err = ss.tick(t, extras{})
	rec, _ = ss.eng.Record(runID)
	return rec, pos, err
}

// Root implements requests.Session.
func (ss requested) Root() (root *state.Node, pos uint64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.eng.State(), ss.lastPos
}

// Cancel implements requests.Session.
func (ss requested) Cancel(run host.Run, purge bool) (pos uint64, end <-chan requests.Ended, err error) {
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
		end = ss.endOf(target, true)
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
		return 0, nil, requests.ErrMail
	}
	return ss.purge(run), nil, nil
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
