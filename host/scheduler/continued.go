package scheduler

import (
	"maps"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
)

// adopt begins the session by what was another, and gives the record of a run in it.
// The caller holds mu.
func (ss *session) adopt(t engine.Adopt, runID string, with extras) (host.Run, uint64, error) {
	if runID != "" {
		var err error
		if with.places, err = ss.place(false); err != nil {
			return host.Run{}, 0, err
		}
	}
	l := history.NewLedger()
	l.Adopt(&engine.Entry{Held: t.Held})
	ss.suspended = l.Copies()
	_, pos, err := ss.tick(t, with)
	if err != nil {
		ss.giveBack(with.places)
		return host.Run{}, 0, err
	}
	run, _ := ss.eng.Record(runID)
	return run, pos, nil
}

// works reports whether an attempt of a run is open. The caller holds mu.
func (ss *session) works(runID string) bool {
	for _, at := range ss.attempts {
		if at.view.RunID == runID {
			return true
		}
	}
	return false
}

// Copy implements continuation.Session.
func (ss requested) Copy() (snapshot []byte, held []engine.HeldAttempt, pos uint64, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	snapshot, err = ss.eng.Snapshot()
	return snapshot, ss.ledger.Held(), ss.lastPos, err
}

// Adopt implements continuation.Session.
func (ss requested) Adopt(t engine.Adopt, runID string) (host.Run, uint64, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.adopt(t, runID, extras{})
}

// Rerun implements continuation.Session.
func (ss requested) Rerun(t engine.Rerun, failed *host.Run) (host.Run, uint64, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	latest, active, _ := ss.eng.HandlerRun(failed.HandlerID)
	switch {
	case active:
		return host.Run{}, 0, handlers.AlreadyRunning(failed.HandlerID)
	case latest != failed.RunID:
		return host.Run{}, 0, continuation.NotLatest(failed)
	}
	places, err := ss.place(false)
	if err != nil {
		return host.Run{}, 0, err
	}
	l := history.NewLedger()
	l.Add(t.Held)
	maps.Copy(ss.suspended, l.Copies())
	_, pos, err := ss.tick(t, extras{places: places})
	if err != nil {
		ss.giveBack(places)
		for inv := range l.Records {
			delete(ss.suspended, inv)
		}
		return host.Run{}, 0, err
	}
	run, _ := ss.eng.Record(t.RunID)
	return run, pos, nil
}

// Resting implements continuation.Session.
func (ss requested) Resting(runID, version string) (*continuation.Resting, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead || ss.versions[runID] == "" {
		return nil, engine.ErrUnknownRun
	}
	r := &continuation.Resting{
		RunID: runID, Version: ss.versions[runID], Busy: ss.works(runID), Parts: history.Cast(ss.key, ss.eng, ss.ledger, runID, 0),
	}
	_, err := ss.eng.MayMigrate(runID, version)
	if err != nil && host.CodeOf(err) != host.CodeConflict {
		return nil, err
	}
	return r, err
}

// Move implements continuation.Session.
func (ss requested) Move(was *continuation.Resting, version string) (pos uint64, moved bool, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	// Whatever has changed since the look at the run, another look tells.
	if ss.dead || ss.versions[was.RunID] != was.Version || ss.works(was.RunID) {
		return 0, false, nil
	}
	same := func(a, b history.Part) bool {
		return a.View.ID == b.View.ID && a.View.Attempt == b.View.Attempt && len(a.Calls) == len(b.Calls) && (a.Pending == nil) == (b.Pending == nil)
	}
	if !slices.EqualFunc(was.Parts, history.Cast(ss.key, ss.eng, ss.ledger, was.RunID, 0), same) {
		return 0, false, nil
	}
	_, pos, err = ss.tick(engine.Migrate{RunID: was.RunID, Version: version}, extras{})
	if host.CodeOf(err) == host.CodeConflict {
		return 0, false, nil // something has come that does not fit: the next look tells
	}
	// The version that blocked the run is no longer used: the run continues.
	if rec, ok := ss.eng.Record(was.RunID); err == nil && ok && rec.Blocked != nil {
		ss.recall(was.RunID)
		if _, pos, err = ss.tick(engine.Resume{RunID: was.RunID}, extras{}); err == nil {
			ss.callAgain(was.RunID)
		}
	}
	return pos, err == nil, err
}

// recall brings back the records of a blocked run's open attempts. The caller holds mu.
func (ss *session) recall(runID string) {
	for inv, o := range ss.ledger.Copies() {
		if view, ok := ss.eng.Invocation(inv); ok && view.RunID == runID {
			ss.suspended[inv] = o
		}
	}
}
