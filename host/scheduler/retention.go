package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/weftrun/weft/host"
)

// Old runs are deleted by sweeps over the store: one a minute, while the settings
// say that anybody's are. A sweep is many small steps, each a batch that goes
// through the journal's queue like all that is written, and each with a pause
// behind it, so that others hardly notice.
//
// A session that is not in memory need not be loaded for it: the batch waits in
// the queue before whatever may follow for the session, and whoever loads it
// meanwhile waits for the batch (the barriers of purged sessions). The store keeps
// back what must not go (see host.SessionBatch.Drop). Of a private session that is
// in memory the latest runs are left to a later sweep: the session would go with
// them while somebody is about to use it.
const (
	sweepEvery = time.Minute
	sweepPause = 10 * time.Millisecond
	sweepBatch = 64 // runs
)

// sweep is how far the present sweep is. Only its step uses it, but for the first
// three, which the scheduler's mu guards.
type sweep struct {
	running bool
	next    time.Time // of the next step; zero: as soon as the scheduler begins
	queued  uint64    // queue position of the last batch: the next one waits for it

	tenants []string // yet to be looked at
	bounded bool     // until is set for the first of them
	after   host.EndedAt
	until   host.EndedAt
}

// sweepWork gives the next step of a sweep if it is due, else says when it will
// be: zero if nobody's runs are to be deleted. Called with mu held.
func (s *Scheduler) sweepWork(now time.Time) (work func(), next time.Time) {
	switch {
	case s.sweep.running || !s.cfg.Limits.Retains(), s.sweep.queued > s.cfg.Journal.Durable():
		return nil, time.Time{} // the journal nudges when the batch is durable
	case s.sweep.next.After(now):
		return nil, s.sweep.next
	}
	s.sweep.running = true
	return s.sweepStep, time.Time{}
}

// sweepStep does one step and says when the next one is due.
func (s *Scheduler) sweepStep() {
	pos, more, err := s.sweepOnce(context.Background())
	wait := sweepEvery
	switch {
	case err != nil:
		s.cfg.Log.Warn("old runs cannot be deleted, which is tried again", "error", err)
		s.sweep.tenants = nil
	case more:
		wait = sweepPause
	}
	s.mu.Lock()
	s.sweep.running, s.sweep.next = false, s.cfg.Now().Add(wait)
	s.sweep.queued = max(s.sweep.queued, pos)
	s.mu.Unlock()
	s.signal()
}

// sweepOnce queues the deletion of a batch of a tenant's old runs, and gives its
// position. more: the sweep is not over.
func (s *Scheduler) sweepOnce(ctx context.Context) (pos uint64, more bool, err error) {
	w := &s.sweep
	if len(w.tenants) == 0 {
		if w.tenants, err = s.cfg.Store.Tenants(ctx); err != nil || len(w.tenants) == 0 {
			return 0, false, err
		}
		w.bounded = false
	}
	tenant := w.tenants[0]
	if !w.bounded {
		if w.until, err = s.retained(ctx, tenant); err != nil {
			return 0, false, err
		}
		w.bounded, w.after = true, host.EndedAt{}
	}
	var old []host.EndedRun
	if w.until != (host.EndedAt{}) && !s.cfg.Journal.OverHardLimit(tenant) {
		old, _, err = s.cfg.Store.Ended(ctx, host.EndedQuery{Tenant: tenant, After: w.after, Until: w.until, Limit: sweepBatch})
		if err != nil {
			return 0, false, err
		}
	}
	if len(old) == 0 {
		w.tenants, w.bounded = w.tenants[1:], false
		return 0, len(w.tenants) > 0, nil
	}
	w.after = old[len(old)-1].EndedAt
	return s.dropRuns(ctx, tenant, old), true, nil
}

// retained gives the newest end of a tenant's runs that are to be deleted; the
// zero end: none are.
func (s *Scheduler) retained(ctx context.Context, tenant string) (until host.EndedAt, err error) {
	age, runs := s.cfg.Limits.Retention(tenant)
	if age > 0 {
		until.Completed = s.now() - int64(age) // with no id: those that ended before that time
	}
	if runs == 0 {
		return until, nil
	}
	beyond, err := s.cfg.Store.EndedBehind(ctx, tenant, runs)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return until, nil
	case err != nil:
		return until, err
	case beyond.Completed >= until.Completed:
		return beyond, nil
	}
	return until, nil
}

// dropRuns queues the deletion of runs, and gives its position.
func (s *Scheduler) dropRuns(ctx context.Context, tenant string, runs []host.EndedRun) (last uint64) {
	var order []host.SessionKey
	of := map[host.SessionKey][]host.EndedRun{}
	for _, r := range runs {
		key := host.SessionKey{Tenant: tenant, Session: r.SessionID}
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], r)
	}
	for _, key := range order {
		last = max(last, s.dropFrom(ctx, key, of[key]))
	}
	return last
}

// dropFrom queues the deletion of runs of a session, and gives its position; 0 if
// none can go now.
func (s *Scheduler) dropFrom(ctx context.Context, key host.SessionKey, runs []host.EndedRun) (pos uint64) {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.RunID
	}
	s.mu.Lock()
	if s.sessions[key] == nil {
		pos = s.cfg.Journal.Append(s.cfg.Now(), dropItem(key, ids))
		s.barriers[key] = pos
		delete(s.quarantine, key) // it may be gone with them
		s.mu.Unlock()
		return pos
	}
	s.mu.Unlock()
	ss, err := s.acquire(ctx, key, false)
	if err != nil {
		return 0 // the next sweep finds it out of memory
	}
	defer ss.release()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return 0
	}
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
	ss.lastPos = s.cfg.Journal.Append(s.cfg.Now(), dropItem(key, kept))
	return ss.lastPos
}

func dropItem(key host.SessionKey, runs []string) host.JournalItem {
	return host.JournalItem{Key: key, Drop: runs, Size: 64 + 32*len(runs)}
}
