// Package quarantine has the sessions that are left alone for a while, because what is
// stored of them does not fold, or because the store could not read them. It counts how many
// reads fail.
//
// It must not depend on how a session is loaded.
package quarantine

import (
	"errors"
	"fmt"
	"time"

	"github.com/weftrun/weft/host"
)

// isolatedFor is how long a session whose journal does not fold is left alone
// before it is tried again: a module that was missing may be there by then. In
// between nobody reads it, however many requests and timers it has.
const isolatedFor = time.Minute

// How long a session that cannot be read is left alone before it is tried again: the
// first time, and at most.
const (
	ReadAgain     = time.Second
	readAgainMost = time.Minute
)

// ErrEndsServer is the cause of the quarantine of a session that ends the process when
// it is loaded. The server does not try again by itself: an operator releases the
// session.
var ErrEndsServer = errors.New("the server ends while the session is loaded")

// entry is a session that the store has and that does not fold. Other sessions
// are not affected. Nothing is appended to it, because its last entry is not known.
//
// A session that could not be read is left alone too, for a shorter time: it may have no
// fault.
type entry struct {
	err   *host.Error
	until time.Time
	wait  time.Duration // of a session that could not be read: how long it is left alone; else 0
}

// List has the sessions in quarantine. The caller holds its lock.
type List struct {
	now     func() time.Time
	entries map[host.SessionKey]entry
}

// Init begins with an empty list.
func (l *List) Init(now func() time.Time) {
	*l = List{now: now, entries: map[host.SessionKey]entry{}}
}

// Isolate puts a session into quarantine that does not fold. cause is the fault, and fault
// the error that says so. It returns the error for requests of the session; news reports
// whether this cause is new.
func (l *List) Isolate(key host.SessionKey, cause, fault error) (err *host.Error, news bool) {
	reason := "its journal cannot be read"
	until := l.now().Add(isolatedFor)
	switch {
	case errors.Is(cause, host.ErrNewer):
		reason = "its journal was written by a newer version of weft"
	case errors.Is(cause, ErrEndsServer):
		reason = "the server ends while it is loaded"
		until = l.now().AddDate(100, 0, 0) // until somebody releases it
	case host.CodeOf(cause) == host.CodeNotFound:
		reason = "a module that its journal names is not stored"
	}
	err = &host.Error{Code: host.CodeInternal, Cause: fault,
		Message: fmt.Sprintf("session %q is quarantined: %s ('weft check' tells more)", key.Session, reason)}
	old, known := l.entries[key]
	l.entries[key] = entry{err: err, until: until}
	// Requests and timers find the same fault again and again: the log has it once.
	return err, !known || old.wait > 0 || old.err.Cause.Error() != err.Cause.Error()
}

// Unread quarantines a session that the store could not read, for twice as long as the
// last time, and returns the error for requests of the session.
func (l *List) Unread(key host.SessionKey, cause error) *host.Error {
	// The wait doubles, so that a store that does not work is not asked by every request.
	wait := min(max(2*l.entries[key].wait, ReadAgain), readAgainMost)
	err := unread(key, cause, wait)
	l.entries[key] = entry{err, l.now().Add(wait), wait}
	return err
}

func unread(key host.SessionKey, cause error, again time.Duration) *host.Error {
	return &host.Error{Code: host.CodeUnavailable, Cause: cause, RetryAfter: again, Message: fmt.Sprintf("session %q cannot be read at the moment", key.Session)}
}

// Check gives the error of a session that is in quarantine and must not be tried
// again yet, else nil.
func (l *List) Check(key host.SessionKey) error {
	q, ok := l.entries[key]
	left := q.until.Sub(l.now())
	switch {
	case !ok || left <= 0:
		return nil
	case q.wait > 0:
		// A client must wait only for the rest of the time.
		return unread(key, q.err.Cause, left)
	}
	return q.err
}

// Until is when a session may be tried again; ok is false if it may be tried now.
func (l *List) Until(key host.SessionKey) (until time.Time, ok bool) {
	q, ok := l.entries[key]
	return q.until, ok && q.until.After(l.now())
}

// Has reports whether a session is in quarantine, or was and has not been loaded since.
func (l *List) Has(key host.SessionKey) bool { _, ok := l.entries[key]; return ok }

// Len is the number of sessions in quarantine.
func (l *List) Len() int { return len(l.entries) }

// Damaged is the number of sessions that do not fold.
func (l *List) Damaged() (n int) {
	for _, q := range l.entries {
		if q.wait == 0 {
			n++
		}
	}
	return n
}

// Release takes a session out, and gives the cause of its quarantine; nil: it was in none.
func (l *List) Release(key host.SessionKey) (cause error) {
	q, ok := l.entries[key]
	delete(l.entries, key)
	if !ok {
		return nil
	}
	return q.err.Cause
}

// Forget takes the sessions of a tenant out.
func (l *List) Forget(tenant string) {
	for key := range l.entries {
		if key.Tenant == tenant {
			delete(l.entries, key)
		}
	}
}
