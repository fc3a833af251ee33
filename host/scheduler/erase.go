package scheduler

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/requests"
)

// A session is deleted in steps of bounded work, each a batch that goes through the
// journal's queue. From the first step on no request finds it, and it is due: so
// a load of it, by a request or, after a crash, by the list of what is due, first finishes
// the deletion, and then has a new session of that name.
//
//	locked: no run is active -> first step queued, the session is dead
//	load: its step is durable -> the store says ErrErasing -> another step -> ...
//	     -> the store has none -> an empty session

// eraseLoaded loads a session and begins to delete it. A session whose journal does
// not fold is deleted without being loaded.
func (t *table) eraseLoaded(ctx context.Context, key host.SessionKey) error {
	ss, err := t.acquire(ctx, key, false)
	if err == nil {
		defer ss.release()
		return ss.erase()
	}
	// Any other error says nothing of the session.
	var journal *history.Unfoldable
	if !errors.As(err, &journal) {
		return err
	}
	// No other code ends its runs now, so their places in the quota are given back here.
	held, err := t.storedRuns(ctx, key)
	if err != nil {
		return host.Unavailable(err)
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	// Without the lock somebody may have begun to load it.
	if !t.quarantine.Has(key) || t.sessions[key] != nil {
		return host.Errorf(host.CodeUnavailable, "session %q is just being loaded, or deleted: try again", key.Session)
	}
	t.barriers[key] = t.s.cfg.Journal.Append(t.s.cfg.Now(), t.eraseItem(key))
	_ = t.quarantine.Release(key)
	t.s.cfg.Quotas.Runs(key.Tenant, -held.active, -held.waiting)
	t.s.cfg.Log.Warn("a quarantined session is deleted", "tenant", key.Tenant, "session", key.Session)
	return nil
}

func (t *table) eraseItem(key host.SessionKey) host.JournalItem {
	return host.JournalItem{Key: key, WakeAt: host.WakeNever, Erase: t.s.cfg.EraseRows, Size: 128}
}

// erase begins to delete the session, which leaves memory with it.
func (ss *session) erase() error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch n := ss.eng.Active(); {
	// Its name may be another session's by now.
	case ss.dead:
		return refusal.ErrGone
	case n > 0:
		return host.Errorf(host.CodeConflict, "Session '%s' has %d active runs: cancel them first", ss.key.Session, n)
	// The messages would be deleted with it.
	case len(ss.eng.MailTo()) > 0:
		return requests.ErrMail
	}
	ss.lastPos = ss.s.cfg.Journal.Append(ss.s.cfg.Now(), ss.s.table.eraseItem(ss.key))
	ss.die()
	return nil
}

// die removes a session whose deletion is queued from memory. Its next load reads what
// the store has after the deletion. The caller holds mu.
func (ss *session) die() {
	s := ss.s
	ss.dead = true
	s.mu.Lock()
	for _, w := range ss.needs {
		s.starts.Demand.Gone(w)
	}
	if s.table.sessions[ss.key] == ss {
		delete(s.table.sessions, ss.key)
	}
	s.dues.Remove(ss.key)
	s.table.barriers[ss.key] = ss.lastPos
	s.mu.Unlock()
}

// eraseMore does another step of a deletion that was begun. Nobody has the session:
// it is being loaded.
func (ss *session) eraseMore(ctx context.Context) error {
	s := ss.s
	return s.cfg.Journal.Wait(ctx, s.cfg.Journal.Append(s.cfg.Now(), s.table.eraseItem(ss.key)))
}

// A session that is not in memory need not be loaded to delete old runs of it: the batch
// is in the queue before anything that follows for the session, and a load meanwhile
// waits for the batch (the barriers of purged sessions). The store keeps
// back what must not go (see host.SessionBatch.Drop). Of a private session that is
// in memory the latest runs are left to a later sweep: the session would go with
// them while somebody is about to use it.

// dropFrom queues the deletion of runs of a session, and gives its position; 0 if
// none can go now.
func (t *table) dropFrom(ctx context.Context, key host.SessionKey, runs []host.EndedRun) (pos uint64) {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.RunID
	}
	t.s.mu.Lock()
	if t.sessions[key] == nil {
		pos = t.s.cfg.Journal.Append(t.s.cfg.Now(), dropItem(key, ids))
		t.barriers[key] = pos
		_ = t.quarantine.Release(key) // it may be gone with them
		t.s.mu.Unlock()
		return pos
	}
	t.s.mu.Unlock()
	ss, err := t.acquire(ctx, key, false)
	if err != nil {
		return 0 // the next sweep finds it out of memory
	}
	defer ss.release()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return 0
	}
	// A private session has its handler's id, and is deleted with the handler's latest run.
	_, _, private := ss.eng.HandlerRun(key.Session)
	kept := ids[:0]
	for _, r := range runs {
		if latest, _, _ := ss.eng.HandlerRun(r.HandlerID); !private || latest != r.RunID {
			kept = append(kept, r.RunID)
		}
	}
	if len(kept) == 0 {
		return 0
	}
	ss.lastPos = t.s.cfg.Journal.Append(t.s.cfg.Now(), dropItem(key, kept))
	return ss.lastPos
}

func dropItem(key host.SessionKey, runs []string) host.JournalItem {
	return host.JournalItem{Key: key, Drop: runs, Size: 64 + 32*len(runs)}
}
