package scheduler

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/quarantine"
)

// isolate quarantines a session that does not fold, and returns the error for requests of
// the session.
func (t *table) isolate(key host.SessionKey, cause error) *host.Error {
	t.s.mu.Lock()
	err, news := t.quarantine.Isolate(key, cause, &history.Unfoldable{Cause: cause})
	t.s.mu.Unlock()
	if news {
		t.s.cfg.Log.Error("a session is quarantined", "tenant", key.Tenant, "session", key.Session, "error", cause)
	}
	return err
}

// isolateLoad puts a session into quarantine that ends the process when it is loaded.
func (t *table) isolateLoad(key host.SessionKey) {
	_ = t.isolate(key, quarantine.ErrEndsServer) // nobody waits for the session
	t.s.mu.Lock()
	t.s.counters.Blamed++
	t.s.mu.Unlock()
}

// unread quarantines a session that the store could not read, and returns the error for
// requests of the session.
func (t *table) unread(key host.SessionKey, cause error) *host.Error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.quarantine.Unread(key, cause)
}

// ReleaseSession forgets that a session is in quarantine, whatever the reason, and loads
// it; see host.Sessions.
func (s *Scheduler) ReleaseSession(ctx context.Context, tenant, id string) (host.SessionInfo, error) {
	key := host.SessionKey{Tenant: tenant, Session: id}
	s.mu.Lock()
	cause := s.table.quarantine.Release(key)
	s.mu.Unlock()
	if cause != nil {
		s.cfg.Log.Warn("a session is released from quarantine", "tenant", tenant, "session", id, "error", cause)
	}
	ss, err := s.table.acquire(ctx, key, false)
	if err != nil {
		return host.SessionInfo{}, err
	}
	ss.release()
	return s.past.Session(ctx, tenant, id)
}

// purgeUnread queues the deletion of a handler of a session that cannot be loaded:
// it is not in memory, and its next load waits for the deletion. purgeUnread returns
// the queue position; false if somebody is just trying to load it, or deletes
// some of it. No other code ends the handler's run now, so its place is given back here.
func (t *table) purgeUnread(run host.Run) (pos uint64, ok bool) {
	key := host.SessionKey{Tenant: run.Tenant, Session: run.SessionID}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	// Somebody may be loading the session, or have loaded it, by now.
	if !t.quarantine.Has(key) || t.sessions[key] != nil {
		return 0, false
	}
	pos = t.s.cfg.Journal.Append(t.s.cfg.Now(), host.JournalItem{
		Key: key, WakeAt: host.WakeNever, Purge: []string{run.HandlerID}, Size: 128,
	})
	t.barriers[key] = pos
	_ = t.quarantine.Release(key)
	// No other code ends a run of it now, so its place in the quota is given back here.
	switch {
	case run.Status.Final():
	case waitsForTurn(&run):
		t.s.cfg.Quotas.Runs(key.Tenant, 0, -1)
	default:
		t.s.cfg.Quotas.Runs(key.Tenant, -1, 0)
	}
	return pos, true
}

// waitsForTurn reports whether a run waits until its session's others have ended.
func waitsForTurn(run *host.Run) bool {
	return len(run.WaitingFor) > 0 && run.WaitingFor[0].Reason == host.WaitsForTurn
}

// storedRuns counts the runs of a session that have not ended, as the store has them.
func (t *table) storedRuns(ctx context.Context, key host.SessionKey) (n runs, err error) {
	info, err := t.s.cfg.Store.Session(ctx, key)
	if errors.Is(err, host.ErrNotFound) {
		return n, nil
	}
	q := host.RunQuery{Tenant: key.Tenant, Session: key.Session, Statuses: []string{string(host.StatusRunning)}, Limit: host.MaxListed}
	for more := true; more && err == nil; {
		var page []host.Run
		page, more, err = t.s.cfg.Store.Runs(ctx, q)
		for i := range page {
			if waitsForTurn(&page[i]) {
				n.waiting++
			}
			q.AfterStarted, q.AfterHandler = page[i].Started, page[i].HandlerID
		}
	}
	n.active = info.Active - n.waiting
	return n, err
}

// purgeQuarantined deletes a handler whose session did not load for the given
// error; another error is given back.
func (t *table) purgeQuarantined(run host.Run, loading error) (pos uint64, err error) {
	// A session that could not be read now may be fine.
	var journal *history.Unfoldable
	if !errors.As(loading, &journal) {
		return 0, loading
	}
	pos, ok := t.purgeUnread(run)
	if !ok {
		return 0, host.Errorf(host.CodeUnavailable, "session %q is just being loaded, or deleted: try again", run.SessionID)
	}
	t.s.log.Run(context.Background(), slog.LevelWarn, "a handler of a quarantined session is deleted", &run, "session", run.SessionID)
	return pos, nil
}
