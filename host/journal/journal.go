package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// Config says how a journal behaves. The zero value works, but for Store.
type Config struct {
	Store host.Store
	// Published is called on the committer's goroutine with the stream rows of
	// a batch, in order, once they are durable. nil: nobody listens.
	Published func(tenant string, rows []host.StreamRow)
	// Purged is called likewise for deleted handlers.
	Purged func(tenant, handlerID string)
	// Linger is how long an entry may wait for a commit that nobody demands.
	// Default 5 ms: a power loss can take that much unseen work, and a short
	// run ends within it.
	Linger time.Duration
	// Busy tells whether work is ready that is about to append more. Then a commit
	// that somebody waits for waits for that work, Gather at most (default 2 ms):
	// runs that are under way together end in one commit, and what begins and ends
	// in the same commit is written once. It is called without any lock. nil: never.
	Busy   func() bool
	Gather time.Duration
	// MaxBatchBytes starts a commit and bounds a batch. Default 8 MiB.
	MaxBatchBytes int
	// MaxPendingBytes and MaxTenantPendingBytes bound what is not yet durable;
	// above, [Journal.OverHardLimit] holds. Defaults 256 MiB and 64 MiB.
	MaxPendingBytes       int
	MaxTenantPendingBytes int
	// MaxSharedBytes is what the tenants that write at a time may have waiting for the
	// disk before they have to wait for it, in equal parts; one alone may have two
	// batches. See [Journal.OverSoftLimit]. Default 128 KiB.
	MaxSharedBytes int
	// Committed is told of each commit, on the committer's goroutine: how many items
	// it has, how long it took, and why it failed. nil: nobody is.
	Committed func(items int, took time.Duration, err error)
	// Wrote is told of each batch that is durable, on the committer's goroutine. nil:
	// nobody is.
	Wrote func(b *host.Batch)
	// Wake is called after a commit, on the committer's goroutine. nil: none.
	Wake func()
	// Now is the clock by which entries wait; whoever appends has the same. Default
	// time.Now.
	Now func() time.Time
}

// Retry delays after a commit that surely wrote nothing.
const (
	minRetry = 10 * time.Millisecond
	maxRetry = time.Second
)

// ErrClosed is what waiters get when the journal was closed before their
// position was durable.
var ErrClosed = errors.New("the journal is closed")

// Journal is the queue of entries that are not yet durable. All methods may be
// called from any goroutine.
type Journal struct {
	cfg   Config
	epoch uint64
	wake  chan struct{} // capacity 1: something for Run to look at

	mu       sync.Mutex // guards what follows; no I/O under it
	queue    []queued
	next     uint64    // position of the next item, from 1
	durable  uint64    // highest durable position
	demanded uint64    // highest position that somebody waits for
	gather   time.Time // until when a demanded commit waits for more; zero: not begun
	closing  bool      // nothing is waited for any more
	inFlight bool
	refused  bool          // the newest commit surely wrote nothing
	retry    time.Duration // how long to wait before it is tried again
	retryAt  time.Time     // when, once Step has seen that it was refused
	waiters  waiters
	pending  int
	tenants  map[string]int // pending bytes
	last     string         // tenant of the newest item
	mixed    time.Time      // when that was another one than before
	newest   time.Time      // of the newest item
	failed   error
	stats    Stats
}

type queued struct {
	host.JournalItem
	at time.Time
}

// Stats counts a journal's work.
type Stats struct {
	Items    uint64 // appended
	Batches  uint64 // committed
	Retries  uint64 // commits that surely wrote nothing
	Dropped  uint64 // attempt records left out, as their finish was in the batch
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

// Append adds an item and returns its queue position. It never blocks; call it
// under the session's mutex (invariant 1). now is the time for Linger.
func (j *Journal) Append(now time.Time, it host.JournalItem) uint64 {
	j.mu.Lock()
	pos := j.next
	j.next++
	first := len(j.queue) == 0
	j.queue = append(j.queue, queued{it, now})
	j.pending += it.Size
	j.tenants[it.Key.Tenant] += it.Size
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

// Durable gives the highest durable position.
func (j *Journal) Durable() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.durable
}

// Wait returns when the position is durable, and so makes its commit begin.
//
// # Errors
//
// ctx's error; the queue's own, which wraps the store's, when the position
// will not become durable; ErrClosed.
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
		return ctx.Err() // the waiter's channel is buffered: nobody blocks on it
	}
}

// OverHardLimit reports whether so much of this tenant is waiting for the disk that no
// further work of it should be started: more than a tenant may have, or more than is
// left for the others. So however many tenants write more than the disk takes, one
// that writes little is not stopped with them.
func (j *Journal) OverHardLimit(tenant string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.overHardLimit(tenant)
}

// overHardLimit is OverHardLimit. Called with mu held.
func (j *Journal) overHardLimit(tenant string) bool {
	return j.failed != nil || j.refused ||
		j.tenants[tenant] > min(j.cfg.MaxTenantPendingBytes, j.cfg.MaxPendingBytes-j.pending)
}

// sharedFor is for how long a tenant counts among those that write.
const sharedFor = time.Second

// minShared is what a tenant may have waiting however many there are.
const minShared = 32 << 10

// OverSoftLimit reports whether the tenant should begin nothing until the disk has caught up
// with it. The queue is one for all, so that whatever a tenant has waiting delays the
// entries of others behind it: as long as others write too, a tenant keeps to its part
// of what the disk takes in a few milliseconds. One that writes alone has the
// disk busy with one batch while it fills the next.
func (j *Journal) OverSoftLimit(tenant string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	most := 2 * j.cfg.MaxBatchBytes
	if !j.mixed.IsZero() && j.newest.Sub(j.mixed) < sharedFor {
		most = min(most, max(minShared, j.cfg.MaxSharedBytes/max(2, len(j.tenants))))
	}
	return j.tenants[tenant] > most || j.overHardLimit(tenant)
}

// Err is the failure that killed the queue, or nil; a commit that is being
// tried again counts as a failure too.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil && j.refused {
		return errors.New("the store does not take commits at the moment")
	}
	return j.failed
}

// Stats gives the counters.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Pending, s.Position, s.Durable = j.pending, j.next-1, j.durable
	return s
}

// Step decides what to do at the given time: it returns a commit to be carried
// out (by calling it, once, from any goroutine), or nil and the time at which
// to step again (zero: when something happens).
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

// waitFor gives until when the next commit waits: for others to share it. Called
// with mu held and items in the queue.
func (j *Journal) waitFor(now time.Time, busy bool) time.Time {
	due := j.queue[0].at.Add(j.cfg.Linger)
	switch {
	case j.pending >= j.cfg.MaxBatchBytes || j.closing:
		return now
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

// prefix is what the next batch holds. The items stay in the queue until they
// are durable. A store deletes after it has written the rest of a session's
// part, so what a session writes after a purge goes into the batch behind: it
// may be a new run of the handler. Called with mu held.
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
	clear(items) // let the entries go; the backing array lives on
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

// fail kills the queue: nothing that waits will be answered with success.
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

// Run steps the journal until ctx ends, then commits what is queued and
// returns nil; or it returns the failure that killed the queue. Waiters of
// positions that did not become durable get ErrClosed.
func (j *Journal) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for now := j.cfg.Now(); ; {
		commit, next := j.Step(now)
		now = j.cfg.Now()
		if commit != nil {
			// A commit under way is carried to its end even while stopping.
			if err := commit(context.WithoutCancel(ctx)); err != nil && j.dead() {
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
				now = next // as long was waited, whatever a clock says that a test has stopped
			}
		case <-ctx.Done():
			return j.drain(context.WithoutCancel(ctx))
		}
	}
}

func (j *Journal) dead() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed != nil
}

// drain commits what is left, trying a store that refuses a few times.
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
			if j.dead() {
				return err
			}
			refusals++
		}
	}
	return errors.New("the store took no commit; what was not durable is lost")
}
