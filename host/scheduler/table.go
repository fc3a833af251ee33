package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/quarantine"
	"github.com/weftrun/weft/host/scheduler/requests"
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

func (t *table) newSession(key host.SessionKey) *session {
	ss := &session{s: t.s, key: key, loaded: make(chan struct{}), attempts: map[uint64]*attempt{},
		ended: map[string][]chan requests.Ended{}, unserved: map[string]*unserved{}, versions: map[string]string{}, needs: map[string]*admission.Run{},
		suspended: map[uint64]*history.Record{}, ledger: history.NewLedger()}
	ss.tickets.Init(holders{ss})
	return ss
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

// maxBarriers is how many purged sessions are remembered before those whose
// deletion is durable are forgotten.
const maxBarriers = 1024

// evict forgets sessions that have had nothing to do for long enough. The caller holds mu.
func (t *table) evict(now time.Time) (work []func(), next time.Time) {
	durable := t.s.cfg.Journal.Durable()
	for n := len(t.idle); n > 0; n-- { // the longest idle is first, and looked at once
		it := t.idle[0]
		if now.Sub(it.since) < t.s.cfg.IdleAfter {
			next = it.since.Add(t.s.cfg.IdleAfter)
			break
		}
		t.idle[0] = idleSession{}
		t.idle = t.idle[1:]
		ss := t.sessions[it.key]
		if ss == nil || ss.pins > 0 || !ss.idleSince.Equal(it.since) {
			continue // it comes back, or came back, to the list with its last release
		}
		// Without pins nobody else looks at what ss.mu guards.
		if ss.lastPos > durable {
			it.since, ss.idleSince = now, now
			t.idle = append(t.idle, it)
			continue
		}
		if t.settleCounts(ss) {
			continue
		}
		t.forget(ss)
	}
	if next.IsZero() && len(t.idle) > 0 {
		next = now.Add(t.s.cfg.IdleAfter)
	}
	if len(t.barriers) > maxBarriers {
		for key, pos := range t.barriers {
			if pos <= durable {
				delete(t.barriers, key)
			}
		}
	}
	t.s.keys.Prune(durable)
	t.s.reserved.Prune(durable)
	return nil, next
}

// forget takes a session out of memory that has no pins and is durable. The caller holds
// mu.
func (t *table) forget(ss *session) {
	delete(t.sessions, ss.key)
	for _, w := range ss.needs {
		t.s.starts.Demand.Gone(w)
	}
	t.s.counters.Evicted++
	if t.s.calls.Of(ss.key) > 0 {
		return // the store does not know of its timer, as it waits for more
	}
	t.s.dues.Remove(ss.key)
	if ss.eng != nil {
		t.s.dues.Note(ss.eng.NextTimer())
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
			t.s.log.session(context.Background(), slog.LevelError, complaint, key, []any{"error", err})
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

// settleCounts has the counts of a session written that could leave memory; false: there are
// none. The caller holds mu.
func (t *table) settleCounts(ss *session) bool {
	if !ss.owes() {
		return false
	}
	ss.pins++
	t.owing = append(t.owing, ss)
	return true
}

// settleWork is the work of settleCounts. The caller holds mu.
func (t *table) settleWork(time.Time) (work []func(), next time.Time) {
	for _, ss := range t.owing {
		work = append(work, ss.settleUnserved)
	}
	t.owing = nil
	return work, time.Time{}
}
