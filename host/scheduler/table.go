package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/quarantine"
)

// table has the sessions in memory, and what is known of those that must not be loaded
// now. Scheduler.mu guards it.
//
// A session enters by acquire or begin, and stays while somebody has it pinned, or entries
// of it are not durable. One without pins is in idle, and leaves by evict. A session that
// is deleted leaves at once; its next load waits for its barrier.
type table struct {
	s          *Scheduler
	sessions   map[host.SessionKey]*session
	barriers   map[host.SessionKey]uint64 // purged: positions to wait for before loading
	idle       []idleSession              // the longest idle first
	owing      []*session                 // that will leave memory: see settleCounts
	quarantine quarantine.List            // sessions that do not fold, or could not be read
}

// idleSession is a session that had no pins at a time.
type idleSession struct {
	key   host.SessionKey
	since time.Time
}

func (t *table) init(s *Scheduler) {
	*t = table{s: s, sessions: map[host.SessionKey]*session{}, barriers: map[host.SessionKey]uint64{}}
	t.quarantine.Init(s.cfg.Now)
}

// begin pins a session that nobody can know yet, as its id was drawn just now:
// the store need not be asked for it. nil: the id was drawn before.
func (t *table) begin(key host.SessionKey) *session {
	ss := t.newSession(key)
	ss.pins = 1
	ss.eng = engine.New(key, ss.s.cfg.graph)
	ss.state.Store(ss.eng.State())
	close(ss.loaded)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.sessions[key] != nil {
		return nil
	}
	t.sessions[key] = ss
	return ss
}

// acquire pins a session, loading it if need be; with create it is made if the
// store has none.
func (t *table) acquire(ctx context.Context, key host.SessionKey, create bool) (*session, error) {
	t.s.mu.Lock()
	if _, ok := t.sessions[key]; !ok {
		err := t.quarantine.Check(key)
		if err == nil {
			err = t.s.suspicion.afterTrials(ctx, key)
		}
		if err == nil {
			err = t.quarantine.Check(key) // again: the mutex was free during the trials
		}
		if err != nil {
			t.s.mu.Unlock()
			return nil, err
		}
	}
	ss, ok := t.sessions[key]
	if !ok {
		ss = t.newSession(key)
		t.sessions[key] = ss
	}
	// Pinned before the lock is given up: the session must not leave memory while it loads.
	ss.pins++
	barrier := t.barriers[key]
	t.s.mu.Unlock()

	if !ok {
		// Not bound to this caller's context: others may wait for the same.
		ss.load(context.WithoutCancel(ctx), barrier)
		close(ss.loaded)
	}
	select {
	case <-ss.loaded:
	case <-ctx.Done():
		ss.release()
		return nil, ctx.Err()
	}
	err := ss.err
	if err == nil && !create && ss.empty() {
		err = &host.Error{Code: host.CodeNotFound, Message: "Session not found"}
	}
	if err != nil {
		ss.release()
		return nil, err
	}
	return ss, nil
}

// release gives back a pin. Errors of loading do not stay in memory.
func (ss *session) release() {
	s := ss.s
	s.mu.Lock()
	defer s.mu.Unlock()
	ss.pins--
	if ss.pins > 0 {
		return
	}
	// While the session loads, the release by its loader checks this again.
	select {
	case <-ss.loaded:
	default:
		return
	}
	if ss.err != nil || ss.eng == nil {
		if s.table.sessions[ss.key] == ss {
			delete(s.table.sessions, ss.key)
		}
		return
	}
	if s.table.sessions[ss.key] == ss {
		ss.idleSince = s.cfg.Now()
		s.table.idle = append(s.table.idle, idleSession{ss.key, ss.idleSince})
		s.signal()
	}
}

// retryLoad is when a session that is due but does not load is tried again.
const retryLoad = 10 * time.Second

// ensure loads a session if need be and uses it. One that cannot be loaded is
// due again later.
func (t *table) ensure(key host.SessionKey, complaint string, use func(*session)) {
	ss, err := t.acquire(context.Background(), key, false)
	switch {
	case err == nil:
		use(ss)
		ss.release()
	case host.CodeOf(err) != host.CodeNotFound: // else it was purged
		// The quarantine of a session that does not fold is in the log already.
		if !history.Unfolds(err) {
			t.s.log.Session(context.Background(), slog.LevelError, complaint, key, []any{"error", err})
		}
		again := t.retryAfter(key, retryLoad)
		t.s.mu.Lock()
		if t.s.calls.Of(key) > 0 { // askDue would pass it over
			t.s.dues.Set(key, again.UnixNano())
		} else {
			t.s.dues.Note(again.UnixNano())
		}
		t.s.mu.Unlock()
		t.s.signal()
	}
}

// retryAfter is when to try again what an error of loading a session has kept from
// being done. A session in quarantine has its own time.
func (t *table) retryAfter(key host.SessionKey, otherwise time.Duration) time.Time {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if until, ok := t.quarantine.Until(key); ok {
		return until
	}
	return t.s.cfg.Now().Add(otherwise)
}
