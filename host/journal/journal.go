package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// Config configures a journal. The zero value works, except that Store must be set.
type Config struct {
	Store host.Store
	// Published is called on the committer's goroutine with the stream rows of a batch,
	// in order, after they have become durable. nil: no call.
	Published func(tenant string, rows []host.StreamRow)
	// Purged is called in the same way for each deleted handler. nil: no call.
	Purged func(tenant, handlerID string)
	// Linger is how long an entry may wait for a commit that nobody waits for. Default 5
	// ms. A power loss can lose that much work which nobody has seen, and a short run
	// ends within it.
	Linger time.Duration
	// Busy reports whether attempts are ready to run that will append more. A commit that
	// somebody waits for is then delayed, by at most Gather (default 2 ms), so that
	// concurrent runs share one commit. What begins and ends within one commit is written
	// once. Busy is called without any lock. nil: never busy.
	Busy   func() bool
	Gather time.Duration
	// MaxBatchBytes is the size at which a commit starts, and the bound of a batch.
	// Default 8 MiB.
	MaxBatchBytes int
	// MaxPendingBytes and MaxTenantPendingBytes bound the bytes that are not yet durable.
	// Above either, [Journal.OverHardLimit] reports true. Defaults 256 MiB and 64 MiB.
	MaxPendingBytes       int
	MaxTenantPendingBytes int
	// MaxSharedBytes is divided among the tenants that write at the same time: a tenant
	// with more than its part waiting for the disk should wait. A tenant that writes
	// alone may have two batches waiting. See [Journal.OverSoftLimit]. Default 128 KiB.
	MaxSharedBytes int
	// Committed is called after each commit, on the committer's goroutine, with the
	// number of items, the duration, and the error if the commit failed. nil: no call.
	Committed func(items int, took time.Duration, err error)
	// Wrote is called with each durable batch, on the committer's goroutine. nil: no
	// call.
	Wrote func(b *host.Batch)
	// Wake is called after each successful commit, on the committer's goroutine. nil: no
	// call.
	Wake func()
	// Now is the clock by which entries wait. The callers of Append use the same clock.
	// Default time.Now.
	Now func() time.Time
}

// Delays before a commit that certainly wrote nothing is tried again.
const (
	minRetry = 10 * time.Millisecond
	maxRetry = time.Second
)

// ErrClosed is the error of waiters when the journal was closed before their position was
// durable.
var ErrClosed = errors.New("the journal is closed")

// Journal is the queue of entries that are not yet durable. Its methods are safe for
// concurrent use.
type Journal struct {
	cfg   Config
	epoch uint64
	wake  chan struct{} // capacity 1: tells Run to step

	mu       sync.Mutex // guards the fields below; no I/O under it
	queue    []queued
	next     uint64    // position of the next item, from 1
	durable  uint64    // highest durable position
	demanded uint64    // highest position that somebody waits for
	gather   time.Time // until when a demanded commit waits for more items; zero: no such wait
	closing  bool      // the journal is stopping, and commits no longer wait
	inFlight bool
	refused  bool          // the newest commit certainly wrote nothing
	retry    time.Duration // how long to wait before the next try
	retryAt  time.Time     // when to try again; set by the Step that saw the refusal
	waiters  waiters
	pending  int
	tenants  map[string]int // pending bytes
	last     string         // tenant of the newest item
	mixed    time.Time      // when the tenant of an item last differed from that of the item before
	newest   time.Time      // of the newest item
	failed   error
	stats    Stats
}

type queued struct {
	host.JournalItem
	at time.Time
}

// Stats are counts of a journal's work.
type Stats struct {
	Items    uint64 // appended
	Batches  uint64 // committed
	Retries  uint64 // commits that certainly wrote nothing
	Dropped  uint64 // attempt records left out, because the finish was in the same batch
	Pending  int    // bytes not yet durable
	Position uint64 // of the newest item
	Durable  uint64 // highest durable position
}

// Open claims the store and returns an empty queue.
func Open(ctx context.Context, cfg Config) (*Journal, error) {
	if cfg.Linger == 0 {
		cfg.Linger = 5 * time.Millisecond
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Gather == 0 {
		cfg.Gather = 2 * time.Millisecond
	}
	if cfg.MaxBatchBytes == 0 {
		cfg.MaxBatchBytes = 8 << 20
	}
	if cfg.MaxPendingBytes == 0 {
		cfg.MaxPendingBytes = 256 << 20
	}
	if cfg.MaxTenantPendingBytes == 0 {
		cfg.MaxTenantPendingBytes = 64 << 20
	}
	if cfg.MaxSharedBytes == 0 {
		cfg.MaxSharedBytes = 128 << 10
	}
	epoch, err := cfg.Store.Claim(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim the store: %w", err)
	}
	return &Journal{
		cfg:     cfg,
		epoch:   epoch,
		wake:    make(chan struct{}, 1),
		next:    1,
		tenants: map[string]int{},
	}, nil
}

// staller is a store whose database can be away for a while. Meanwhile Append waits and reads
// fail. Nothing is lost, and nothing is read again afterwards.
type staller interface {
	// Stalled reports whether the database is away. It may be called from any goroutine,
	// and does not block.
	Stalled() bool
}

// Append adds an item and returns its queue position. It never blocks. Call it under the
// session's mutex (invariant 1). now is the time for Linger.
func (j *Journal) Append(now time.Time, it host.JournalItem) uint64 {
	j.mu.Lock()
	pos := j.next
	j.next++
	first := len(j.queue) == 0
	j.queue = append(j.queue, queued{it, now})
	j.pending += it.Size
	j.tenants[it.Key.Tenant] += it.Size
	// Remember when tenants last alternated: see OverSoftLimit.
	if t := it.Key.Tenant; t != j.last {
		if j.last != "" {
			j.mixed = now
		}
		j.last = t
	}
	j.newest = now
	j.stats.Items++
	large := j.pending >= j.cfg.MaxBatchBytes
	j.mu.Unlock()
	if first || large {
		j.signal()
	}
	return pos
}

// Durable returns the highest durable position.
func (j *Journal) Durable() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.durable
}

// Wait blocks until the position is durable. It makes the commit start.
//
// # Errors
//
// The error of ctx; the error that killed the queue, which wraps the store's, if the
// position will not become durable; [ErrClosed].
func (j *Journal) Wait(ctx context.Context, pos uint64) error {
	j.mu.Lock()
	if pos <= j.durable {
		j.mu.Unlock()
		return nil
	}
	if j.failed != nil {
		defer j.mu.Unlock()
		return j.failed
	}
	w := &waiter{pos: pos, done: make(chan error, 1)}
	j.waiters.push(w)
	fresh := pos > j.demanded
	if fresh {
		j.demanded = pos
	}
	j.mu.Unlock()
	if fresh {
		j.signal()
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err() // the waiter's channel is buffered, so nobody blocks on it
	}
}

// OverHardLimit reports whether the tenant must not start further work, because too many
// of its bytes wait for the disk: more than a tenant may have, or more than is left of
// the total. So a tenant that writes little is not stopped by tenants that write more
// than the disk takes.
func (j *Journal) OverHardLimit(tenant string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.overHardLimit(tenant)
}

// overHardLimit is OverHardLimit with mu held.
func (j *Journal) overHardLimit(tenant string) bool {
	return j.failed != nil || j.refused || j.stalled() ||
		j.tenants[tenant] > min(j.cfg.MaxTenantPendingBytes, j.cfg.MaxPendingBytes-j.pending)
}

// sharedFor is how long after two tenants alternated the disk counts as shared.
const sharedFor = time.Second

// minShared is what a tenant may have waiting, in bytes, however many tenants write.
const minShared = 32 << 10

// OverSoftLimit reports whether the tenant should start nothing until the disk has caught
// up with it. All tenants share one queue, so everything that one tenant has waiting
// delays the entries of others. While others write too, a tenant keeps to its part of
// what the disk takes in a few milliseconds. A tenant that writes alone keeps the disk
// busy with one batch while it fills the next.
func (j *Journal) OverSoftLimit(tenant string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	most := 2 * j.cfg.MaxBatchBytes
	if !j.mixed.IsZero() && j.newest.Sub(j.mixed) < sharedFor {
		most = min(most, max(minShared, j.cfg.MaxSharedBytes/max(2, len(j.tenants))))
	}
	return j.tenants[tenant] > most || j.overHardLimit(tenant)
}

// stalled reports whether the store waits for its database.
func (j *Journal) stalled() bool {
	s, can := j.cfg.Store.(staller)
	return can && s.Stalled()
}

// Err returns the failure that killed the queue, or nil. A commit that is being tried
// again counts as a failure too, and a store that waits for its database.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil && (j.refused || j.stalled()) {
		return errors.New("the store does not take commits at the moment")
	}
	return j.failed
}

// Failed reports whether a failure has killed the queue: nothing of what it holds will be
// durable.
func (j *Journal) Failed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed != nil
}

// Stats returns the counters.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Pending, s.Position, s.Durable = j.pending, j.next-1, j.durable
	return s
}

// Step decides what to do at the given time. It returns a commit for the caller to
// perform (by calling it once, on any goroutine), or nil and the time of the next step
// (zero: when Run is signalled).
func (j *Journal) Step(now time.Time) (commit func(context.Context) error, next time.Time) {
	busy := j.cfg.Busy != nil && j.cfg.Busy()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil || j.inFlight || len(j.queue) == 0 {
		return nil, time.Time{}
	}
	if j.refused && j.retryAt.IsZero() {
		j.retryAt = now.Add(j.retry)
	}
	if now.Before(j.retryAt) {
		return nil, j.retryAt
	}
	if wait := j.waitFor(now, busy); now.Before(wait) {
		return nil, wait
	}
	items := j.prefix()
	j.inFlight, j.gather = true, time.Time{}
	return func(ctx context.Context) error { return j.commit(ctx, items) }, time.Time{}
}

// waitFor returns until when the next commit waits for others to share it. mu is held,
// and the queue is not empty.
func (j *Journal) waitFor(now time.Time, busy bool) time.Time {
	due := j.queue[0].at.Add(j.cfg.Linger)
	switch {
	case j.pending >= j.cfg.MaxBatchBytes || j.closing:
		return now
	// Nobody waits for an answer, so only the age of the entries counts.
	case j.demanded <= j.durable:
		return due
	case !busy:
		return now
	}
	if j.gather.IsZero() {
		j.gather = now.Add(j.cfg.Gather)
	}
	if due.Before(j.gather) {
		return due
	}
	return j.gather
}

// prefix returns the items of the next batch. They stay in the queue until they are
// durable. Within a session's part of a batch, the store deletes last. So what a session
// writes after a purge goes into the next batch: it may be a new run of the purged
// handler. mu is held.
func (j *Journal) prefix() []queued {
	size := 0
	var purged map[host.SessionKey]struct{}
	for i := range j.queue {
		it := &j.queue[i]
		size += it.Size
		_, cut := purged[it.Key]
		if cut && it.Entry != nil || size > j.cfg.MaxBatchBytes && i > 0 {
			return j.queue[:i:i]
		}
		if len(it.Purge)+len(it.Drop)+it.Erase > 0 {
			if purged == nil {
				purged = map[host.SessionKey]struct{}{}
			}
			purged[it.Key] = struct{}{}
		}
	}
	return j.queue[:len(j.queue):len(j.queue)]
}

func (j *Journal) commit(ctx context.Context, items []queued) error {
	b, dropped, err := j.batch(items)
	began := time.Now()
	if err == nil {
		err = j.cfg.Store.Append(ctx, b)
	}
	if j.cfg.Committed != nil {
		j.cfg.Committed(len(items), time.Since(began), err)
	}
	if err != nil {
		j.commitFailed(err)
		return err
	}
	if j.cfg.Wrote != nil {
		j.cfg.Wrote(&b)
	}
	for i := range b.Sessions {
		s := &b.Sessions[i]
		if j.cfg.Published != nil && len(s.Stream) > 0 {
			j.cfg.Published(s.Key.Tenant, s.Stream)
		}
		if j.cfg.Purged != nil {
			for _, id := range s.Purge {
				j.cfg.Purged(s.Key.Tenant, id)
			}
		}
	}
	j.committed(items, dropped)
	if j.cfg.Wake != nil {
		j.cfg.Wake()
	}
	return nil
}

func (j *Journal) committed(items []queued, dropped uint64) {
	j.mu.Lock()
	j.inFlight = false
	j.refused, j.retry, j.retryAt = false, 0, time.Time{}
	j.durable += uint64(len(items))
	for i := range items {
		j.pending -= items[i].Size
		t := items[i].Key.Tenant
		if j.tenants[t] -= items[i].Size; j.tenants[t] <= 0 {
			delete(j.tenants, t)
		}
	}
	rest := j.queue[len(items):]
	clear(items) // free the entries, although the backing array lives on
	if len(rest) == 0 {
		rest = nil
	}
	j.queue = rest
	j.stats.Batches++
	j.stats.Dropped += dropped
	ready := j.waiters.upTo(j.durable)
	j.mu.Unlock()
	for _, w := range ready {
		w.done <- nil
	}
	j.signal()
}

func (j *Journal) commitFailed(err error) {
	j.mu.Lock()
	j.inFlight = false
	if errors.Is(err, host.ErrNotCommitted) {
		j.stats.Retries++
		j.refused = true
		j.retry = min(max(2*j.retry, minRetry), maxRetry)
		j.retryAt = time.Time{}
		j.mu.Unlock()
		j.signal()
		return
	}
	j.mu.Unlock()
	j.fail(fmt.Errorf("the journal stopped: %w", err))
}

// fail kills the queue. Everything that waits gets an error.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	if j.failed == nil {
		j.failed = err
	}
	ready := j.waiters.upTo(^uint64(0))
	err = j.failed
	j.mu.Unlock()
	for _, w := range ready {
		w.done <- err
	}
	j.signal()
}

func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Run steps the journal until ctx ends. It then commits what is queued and returns nil.
// Run returns earlier if a failure kills the queue, with that failure. Waiters of
// positions that did not become durable get [ErrClosed].
func (j *Journal) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for now := j.cfg.Now(); ; {
		commit, next := j.Step(now)
		now = j.cfg.Now()
		if commit != nil {
			// A commit in progress is completed, even while the journal is stopping.
			if err := commit(context.WithoutCancel(ctx)); err != nil && j.Failed() {
				return j.Err()
			}
			now = j.cfg.Now()
			continue
		}
		if next.IsZero() {
			next = now.Add(time.Hour)
		}
		timer.Reset(next.Sub(now))
		select {
		case <-j.wake:
			now = j.cfg.Now()
		case <-timer.C:
			if now = j.cfg.Now(); now.Before(next) {
				now = next // that much time has passed, even if a test has stopped the clock
			}
		case <-ctx.Done():
			return j.drain(context.WithoutCancel(ctx))
		}
	}
}

// drain commits what is left. If the store refuses, drain tries a few times.
func (j *Journal) drain(ctx context.Context) error {
	defer j.fail(ErrClosed)
	for refusals := 0; refusals < 5; {
		j.mu.Lock()
		j.demanded, j.closing = j.next, true
		j.refused, j.retryAt = false, time.Time{}
		empty := len(j.queue) == 0
		j.mu.Unlock()
		if empty {
			return nil
		}
		commit, _ := j.Step(j.cfg.Now())
		if commit == nil {
			return j.Err()
		}
		if err := commit(ctx); err != nil {
			if j.Failed() {
				return err
			}
			refusals++
		}
	}
	return errors.New("the store took no commit; what was not durable is lost")
}
