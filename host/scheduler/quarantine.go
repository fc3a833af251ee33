package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/history"
)

// quarantineFor is how long a session whose journal does not fold is left alone
// before it is tried again: a module that was missing may be there by then. In
// between nobody reads it, however many requests and timers it has.
const quarantineFor = time.Minute

// How long a session that cannot be read is left alone before it is tried again: the
// first time, and at most.
const (
	readAgain     = time.Second
	readAgainMost = time.Minute
)

// quarantined is a session that the store has and that does not fold. Others go
// on; nothing is appended to it, as nobody knows to what.
//
// One whose reading failed is left alone likewise, but for shorter: nothing is known
// to be wrong with it.
type quarantined struct {
	err   *host.Error
	until time.Time
	wait  time.Duration // of one whose reading failed: how long it is left alone; else 0
}

// isolate puts a session into quarantine and gives the error of whoever wants it.
func (s *Scheduler) isolate(key host.SessionKey, cause error) *host.Error {
	reason := "its journal does not read"
	switch {
	case errors.Is(cause, host.ErrNewer):
		reason = "its journal was written by a newer version of weft"
	case errors.Is(cause, errEndsServer):
		reason = "the server ends while it is loaded"
	case host.CodeOf(cause) == host.CodeNotFound:
		reason = "a module that its journal names is not stored"
	}
	err := &host.Error{Code: host.CodeInternal, Cause: &history.Unfoldable{Cause: cause},
		Message: fmt.Sprintf("session %q is quarantined: %s ('weft check' tells more)", key.Session, reason)}
	s.mu.Lock()
	old, known := s.quarantine[key]
	if s.quarantine == nil {
		s.quarantine = map[host.SessionKey]quarantined{}
	}
	s.quarantine[key] = quarantined{err: err, until: s.cfg.Now().Add(quarantineFor)}
	s.mu.Unlock()
	if !known || old.wait > 0 || old.err.Cause.Error() != err.Cause.Error() {
		s.cfg.Log.Error("a session is quarantined", "tenant", key.Tenant, "session", key.Session, "error", cause)
	}
	return err
}

// errEndsServer is the cause of the quarantine of a session that ends the process when
// it is loaded. Nobody tries again by itself: the session has to be released.
var errEndsServer = errors.New("the server ends while the session is loaded")

// isolateLoad puts a session into quarantine, by errEndsServer.
func (s *Scheduler) isolateLoad(key host.SessionKey) {
	_ = s.isolate(key, errEndsServer) // nobody waits for the session
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quarantine[key]
	q.until = s.cfg.Now().AddDate(100, 0, 0)
	s.quarantine[key] = q
	s.counters.Blamed++
}

// unread leaves a session alone that the store could not read, for twice as long as the
// time before, and gives the error of whoever wants it.
func (s *Scheduler) unread(key host.SessionKey, cause error) *host.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quarantine == nil {
		s.quarantine = map[host.SessionKey]quarantined{}
	}
	wait := min(max(2*s.quarantine[key].wait, readAgain), readAgainMost)
	err := &host.Error{Code: host.CodeUnavailable, Cause: cause, RetryAfter: wait, Message: unreadMessage(key)}
	s.quarantine[key] = quarantined{err, s.cfg.Now().Add(wait), wait}
	return err
}

func unreadMessage(key host.SessionKey) string {
	return fmt.Sprintf("session %q cannot be read at the moment", key.Session)
}

// isolated gives the error of a session that is in quarantine and not to be tried
// again yet, else nil. Called with mu held.
func (s *Scheduler) isolated(key host.SessionKey) error {
	q, ok := s.quarantine[key]
	left := q.until.Sub(s.cfg.Now())
	switch {
	case !ok || left <= 0:
		return nil
	case q.wait > 0:
		return &host.Error{Code: host.CodeUnavailable, Cause: q.err.Cause, RetryAfter: left, Message: unreadMessage(key)}
	}
	return q.err
}

// ReleaseSession forgets that a session is in quarantine, whatever the reason, and loads
// it; see host.Sessions.
func (s *Scheduler) ReleaseSession(ctx context.Context, tenant, id string) (host.SessionInfo, error) {
	key := host.SessionKey{Tenant: tenant, Session: id}
	s.mu.Lock()
	q, held := s.quarantine[key]
	delete(s.quarantine, key)
	s.mu.Unlock()
	if held {
		s.cfg.Log.Warn("a session is released from quarantine", "tenant", tenant, "session", id, "error", q.err.Cause)
	}
	ss, err := s.acquire(ctx, key, false)
	if err != nil {
		return host.SessionInfo{}, err
	}
	ss.release()
	return s.past.Session(ctx, tenant, id)
}

// retryAfter is when to try again what an error of loading a session has kept from
// being done. A session in quarantine has its own time.
func (s *Scheduler) retryAfter(key host.SessionKey, otherwise time.Duration) time.Time {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.quarantine[key]; ok && q.until.After(now) {
		return q.until
	}
	return now.Add(otherwise)
}

// purgeUnread queues the deletion of a handler of a session that cannot be loaded:
// nobody has it in memory, and whoever wants it next waits for the deletion. It
// returns the queue position; false if somebody is just trying to load it, or deletes
// some of it. The handler's run, which nobody ends any more, gives its place back here.
func (s *Scheduler) purgeUnread(run host.Run) (pos uint64, ok bool) {
	key := host.SessionKey{Tenant: run.Tenant, Session: run.SessionID}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.quarantine[key]; !there || s.sessions[key] != nil {
		return 0, false
	}
	pos = s.cfg.Journal.Append(s.cfg.Now(), host.JournalItem{
		Key: key, WakeAt: host.WakeNever, Purge: []string{run.HandlerID}, Size: 128,
	})
	s.barriers[key] = pos
	delete(s.quarantine, key)
	switch {
	case run.Status.Final():
	case waitsForTurn(&run):
		s.cfg.Quotas.Runs(key.Tenant, 0, -1)
	default:
		s.cfg.Quotas.Runs(key.Tenant, -1, 0)
	}
	return pos, true
}

// waitsForTurn reports whether a run waits until its session's others have ended.
func waitsForTurn(run *host.Run) bool {
	return len(run.WaitingFor) > 0 && run.WaitingFor[0].Reason == host.WaitsForTurn
}

// storedRuns counts the runs of a session that have not ended, as the store has them.
func (s *Scheduler) storedRuns(ctx context.Context, key host.SessionKey) (n runs, err error) {
	info, err := s.cfg.Store.Session(ctx, key)
	if errors.Is(err, host.ErrNotFound) {
		return n, nil
	}
	q := host.RunQuery{Tenant: key.Tenant, Session: key.Session, Statuses: []string{string(host.StatusRunning)}, Limit: host.MaxListed}
	for more := true; more && err == nil; {
		var page []host.Run
		page, more, err = s.cfg.Store.Runs(ctx, q)
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
func (s *Scheduler) purgeQuarantined(run host.Run, loading error) (pos uint64, err error) {
	var journal *history.Unfoldable
	if !errors.As(loading, &journal) {
		return 0, loading
	}
	pos, ok := s.purgeUnread(run)
	if !ok {
		return 0, host.Errorf(host.CodeUnavailable, "session %q is just being loaded, or deleted: try again", run.SessionID)
	}
	s.logRun(context.Background(), slog.LevelWarn, "a handler of a quarantined session is deleted", &run, "session", run.SessionID)
	return pos, nil
}
