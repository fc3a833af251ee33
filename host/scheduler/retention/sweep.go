// Package retention finds the runs that are old enough to delete, and deletes them by sweeps
// of small steps.
//
// It must not depend on how runs are deleted, or which sessions are in memory.
package retention

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// Old runs are deleted by sweeps over the store: one a minute, while the settings
// say that anybody's are. A sweep is many small steps, each a batch that goes
// through the journal's queue like all that is written, and each with a pause
// behind it, so that others hardly notice.
const (
	sweepEvery = time.Minute
	sweepPause = 10 * time.Millisecond
	sweepBatch = 64 // runs
)

// Store is the part of host.Store that is swept.
type Store interface {
	Tenants(ctx context.Context) ([]string, error)
	Ended(ctx context.Context, q host.EndedQuery) (runs []host.EndedRun, more bool, err error)
	EndedBehind(ctx context.Context, tenant string, newer int) (host.EndedAt, error)
}

// Journal is the queue that deletions go through.
type Journal interface {
	Durable() uint64
	OverHardLimit(tenant string) bool
}

// Config says what a sweeper works with. All fields must be set.
type Config struct {
	Store   Store
	Journal Journal
	Limits  *limit.Table
	// Drop queues the deletion of runs of a session, and gives the queue position; 0 if none
	// can be deleted now.
	Drop func(ctx context.Context, key host.SessionKey, runs []host.EndedRun) (pos uint64)
	// Done is called at the end of a step, when the next one is known.
	Done func()
	Now  func() time.Time
	// Clock is the time in Unix nanoseconds by which runs are old: it does not go back.
	Clock func() int64
	Log   *slog.Logger
}

// Sweeper deletes old runs. It has a mutex of its own; its methods may be called from any
// goroutine.
type Sweeper struct {
	cfg Config

	mu      sync.Mutex // guards what follows
	running bool
	next    time.Time // of the next step; zero: as soon as the sweeper begins
	queued  uint64    // queue position of the last batch: the next one waits for it

	now sweep // how far the present sweep is; only its step uses it
}

// sweep is how far a sweep is.
type sweep struct {
	tenants []string // that the sweep has not looked at yet
	bounded bool     // until is set for the first of them
	after   host.EndedAt
	until   host.EndedAt
}

// New makes a sweeper.
func New(cfg Config) *Sweeper { return &Sweeper{cfg: cfg} }

// Work gives the next step of a sweep if it is due, else says when it will
// be: zero if there are no runs to delete, or if the journal must first write the previous
// batch.
func (s *Sweeper) Work(now time.Time) (work []func(), next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running || !s.cfg.Limits.Retains(), s.queued > s.cfg.Journal.Durable():
		return nil, time.Time{}
	case s.next.After(now):
		return nil, s.next
	}
	s.running = true
	return []func(){s.step}, time.Time{}
}

// step does one step and says when the next one is due.
func (s *Sweeper) step() {
	pos, more, err := s.sweep(context.Background())
	wait := sweepEvery
	switch {
	case err != nil:
		s.cfg.Log.Warn("old runs cannot be deleted, which is tried again", "error", err)
		// The next sweep begins from the start: what failed may be there again.
		s.now.tenants = nil
	case more:
		wait = sweepPause
	}
	s.mu.Lock()
	s.running, s.next = false, s.cfg.Now().Add(wait)
	s.queued = max(s.queued, pos)
	s.mu.Unlock()
	s.cfg.Done()
}

// sweep queues the deletion of a batch of a tenant's old runs, and gives its
// position. more: the sweep is not over.
func (s *Sweeper) sweep(ctx context.Context) (pos uint64, more bool, err error) {
	w := &s.now
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
	// Deletions are writes: a tenant whose writes crowd the queue is left to the next sweep.
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
	// Runs that could not be deleted now are passed over until the next sweep.
	w.after = old[len(old)-1].EndedAt
	return s.drop(ctx, tenant, old), true, nil
}

// retained returns the newest end of the runs of a tenant that must be deleted; the zero
// end if none must.
func (s *Sweeper) retained(ctx context.Context, tenant string) (until host.EndedAt, err error) {
	age, runs := s.cfg.Limits.Retention(tenant)
	if age > 0 {
		until.Completed = s.cfg.Clock() - int64(age) // with no id: those that ended before that time
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
	// Both settings hold: a run is deleted as soon as one of them says so.
	case beyond.Completed >= until.Completed:
		return beyond, nil
	}
	return until, nil
}

// drop queues the deletion of runs, and gives its position.
func (s *Sweeper) drop(ctx context.Context, tenant string, runs []host.EndedRun) (last uint64) {
	var order []host.SessionKey
	of := map[host.SessionKey][]host.EndedRun{}
	for _, r := range runs {
		key := host.SessionKey{Tenant: tenant, Session: r.SessionID}
		// The order of the store, and not that of the map, so that a sweep can be repeated.
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], r)
	}
	for _, key := range order {
		last = max(last, s.cfg.Drop(ctx, key, of[key]))
	}
	return last
}
