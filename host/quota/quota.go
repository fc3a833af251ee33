// Package quota counts what each tenant holds and uses, and refuses what would exceed its
// quotas.
//
// The package does not know what a run consists of, how requests arrive or how rows are
// stored. Callers report events to it, and it reads the store through an interface that
// it declares.
//
// # How it counts
//
// All counts are in memory, so that a request needs no SQL:
//
//   - Runs are counted when they begin and end, under one mutex. A start takes its place
//     before the run begins, so concurrent starts cannot exceed the limit together. When
//     the service starts, the runs in the store that have not ended take their places, so
//     a crash changes nothing.
//   - The spending of the month grows with every entry that spends, and is written in the
//     transaction that writes the entry.
//   - Bytes of journals and states, with a flat charge for each session, run and key, are
//     read from the store when they are first needed, and then grow with each commit. Only
//     the store knows what a deletion has freed. So after a deletion the store is asked
//     again, at most once a second, and only for a request that would be refused.
//   - Rates are buckets that hold one second's worth. Readers are counted as they come
//     and go.
//
// Exceeding a quota loses nothing: a run that has begun continues, whatever its tenant
// has spent in the meantime.
package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/bucket"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// Times after which a refused request may be tried again.
const (
	retryRuns    = time.Second     // runs end at any time
	retryReaders = 5 * time.Second // readers stay longer
	retryPlugins = time.Minute     // a plugin must be deleted first
)

// recount is the least time between two counts of a tenant's bytes.
const recount = time.Second

// Config configures a Service. Store is required.
type Config struct {
	Store  host.QuotaStore
	Limits *limit.Table     // nil: the defaults
	Now    func() time.Time // nil: time.Now
}

// Service counts for all tenants. Its methods are safe for concurrent use. All methods
// except Ready, Grow, Usage and Plugin return at once, and may be called under any mutex.
type Service struct {
	cfg Config

	mu      sync.Mutex // guards tenants; nothing is called under it
	tenants map[string]*tenant
}

// tenant holds the counts of one tenant.
type tenant struct {
	active, waiting int64 // runs
	readers         int64
	month           usage.Month
	spent           usage.Spent // in month

	counted  bool   // journal and state have been read
	stale    bool   // something has been deleted since
	wrote    uint64 // number of commits that wrote for the tenant
	asked    time.Time
	journal  int64
	state    int64
	requests bucket.Bucket
}

// New returns a service with the counts of the store. Runs must not be active yet.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{cfg: cfg, tenants: map[string]*tenant{}}
	runs, err := cfg.Store.RunsHeld(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the runs of tenants: %w", err)
	}
	for _, h := range runs {
		t := s.tenant(h.Tenant)
		t.active, t.waiting = int64(h.Active), int64(h.Waiting)
	}
	spent, err := cfg.Store.Spent(ctx, "", s.month())
	if err != nil {
		return nil, fmt.Errorf("read what tenants have spent: %w", err)
	}
	for i := range spent {
		t := s.tenant(spent[i].Tenant)
		if m := spent[i].Month; m >= t.month { // a later month: the clock was set back
			t.month, t.spent = m, spent[i].Spent
		}
	}
	return s, nil
}

func (s *Service) month() usage.Month { return usage.MonthOf(s.cfg.Now().UnixNano()) }

// tenant returns a tenant, and creates it if necessary. mu is held.
func (s *Service) tenant(name string) *tenant {
	t := s.tenants[name]
	if t == nil {
		t = &tenant{}
		s.tenants[name] = t
	}
	return t
}

// Forget drops a tenant that has been removed.
func (s *Service) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, name)
}

// Knows reports whether the tenant has been active since the service started, or had runs
// or spending before, and has not been removed.
func (s *Service) Knows(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenants[name] != nil
}

// Request takes one of the second's requests, or returns an error.
func (s *Service) Request(name string) error {
	rate := s.cfg.Limits.Quota(name, limit.QuotaRequests)
	if rate == 0 {
		return nil
	}
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := s.tenant(name).requests.Take(now, bucket.Rate{Size: float64(rate), Span: time.Second}); wait > 0 {
		return Breached(limit.QuotaRequests, rate, rate, wait)
	}
	return nil
}

// Reader takes a place among the open readers of streams, or returns an error. The caller
// must call leave once.
func (s *Service) Reader(name string) (leave func(), err error) {
	most := s.cfg.Limits.Quota(name, limit.QuotaStreamReaders)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if most > 0 && t.readers >= most {
		return nil, Breached(limit.QuotaStreamReaders, most, t.readers, retryReaders)
	}
	t.readers++
	return func() {
		s.mu.Lock()
		t.readers--
		s.mu.Unlock()
	}, nil
}

// Begin takes the place of a run that a client starts. waits says that the run waits for
// its session's turn. The error names the quota that refuses the run.
func (s *Service) Begin(name string, waits bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if err := s.room(name, t, waits); err != nil {
		return err
	}
	if waits {
		t.waiting++
	} else {
		t.active++
	}
	return nil
}

// Room returns an error if a run could not begin now. It takes no place, for callers that
// do not begin the run themselves.
func (s *Service) Room(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room(name, s.tenant(name), false)
}

// room returns an error if one more run would exceed a quota. mu is held.
func (s *Service) room(name string, t *tenant, waits bool) error {
	of := func(q limit.Quota) int64 { return s.cfg.Limits.Quota(name, q) }
	now := s.month()
	if t.month >= now {
		left := t.month.End().Sub(s.cfg.Now())
		if most := of(limit.QuotaFuel); most > 0 && t.spent.Fuel >= uint64(most) {
			return Breached(limit.QuotaFuel, most, int64(t.spent.Fuel), left)
		}
		if most := of(limit.QuotaLogBytes); most > 0 && t.spent.LogBytes >= uint64(most) {
			return Breached(limit.QuotaLogBytes, most, int64(t.spent.LogBytes), left)
		}
	}
	if err := s.bytes(name, t); err != nil {
		return err
	}
	q, held := limit.QuotaRunsActive, t.active
	if waits {
		q, held = limit.QuotaRunsWaiting, t.waiting
	}
	if most := of(q); most > 0 && held >= most {
		return Breached(q, most, held, retryRuns)
	}
	return nil
}

// bytes returns an error while the tenant holds too many bytes. mu is held.
func (s *Service) bytes(name string, t *tenant) error {
	if !t.counted {
		return nil // see Ready
	}
	if most := s.cfg.Limits.Quota(name, limit.QuotaStateBytes); most > 0 && t.state >= most {
		return Breached(limit.QuotaStateBytes, most, t.state, t.retry())
	}
	if most := s.cfg.Limits.Quota(name, limit.QuotaJournalBytes); most > 0 && t.journal >= most {
		return Breached(limit.QuotaJournalBytes, most, t.journal, t.retry())
	}
	return nil
}

// retry returns when to try again: when a deletion may have made room, or 0 if there was
// none.
func (t *tenant) retry() time.Duration {
	if t.stale {
		return recount
	}
	return 0
}

// Runs adds to the counts of runs, except for runs whose places Begin took.
func (s *Service) Runs(name string, active, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	t.active += int64(active)
	t.waiting += int64(waiting)
}

// Spend adds spending at a time in Unix nanoseconds.
func (s *Service) Spend(name string, at int64, spent usage.Spent) {
	month := usage.MonthOf(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	switch {
	case month > t.month:
		t.month, t.spent = month, spent
	case month == t.month:
		t.spent.Add(spent)
	}
}

// Wrote adds what a durable batch has written.
func (s *Service) Wrote(b *host.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.Sessions {
		p := &b.Sessions[i]
		t := s.tenant(p.Key.Tenant)
		t.wrote++
		t.journal += int64(len(p.Data)) + limit.RunCharge*int64(len(p.Started))
		if p.First == 1 {
			t.journal += limit.SessionCharge
		}
		t.state += p.StateGrowth
		if p.Cut != 0 || len(p.Drop)+len(p.Purge)+p.Erase > 0 {
			t.stale = true
		}
	}
	for i := range b.KV {
		t := s.tenant(b.KV[i].Space.Tenant)
		t.state += b.KV[i].Growth + limit.KeyCharge*int64(b.KV[i].Keys)
	}
}

// Freed reports that a tenant holds less for another reason than a batch. Its bytes are
// counted again before the next refusal.
func (s *Service) Freed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenant(name).stale = true
}

// Ready makes sure that the tenant's bytes are known, before a call that may not block.
// It reads the store the first time, and after a deletion if the tenant would be refused.
func (s *Service) Ready(ctx context.Context, name string) error {
	if s.cfg.Limits.Quota(name, limit.QuotaStateBytes) == 0 && s.cfg.Limits.Quota(name, limit.QuotaJournalBytes) == 0 {
		return nil
	}
	s.mu.Lock()
	t := s.tenant(name)
	known := t.counted && (!t.stale || s.bytes(name, t) == nil || s.cfg.Now().Sub(t.asked) < recount)
	s.mu.Unlock()
	if known {
		return nil
	}
	return s.count(ctx, name)
}

// Grow returns an error while a tenant holds more bytes than it may.
func (s *Service) Grow(ctx context.Context, name string) error {
	if err := s.Ready(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes(name, s.tenant(name))
}

// countTries is how often the store is read if commits come in between.
const countTries = 3

// count reads the tenant's bytes from the store. A commit during the read may or may not
// be in the result. If this happens every time, the count stays stale.
func (s *Service) count(ctx context.Context, name string) error {
	for try := 1; ; try++ {
		s.mu.Lock()
		t := s.tenant(name)
		before := t.wrote
		s.mu.Unlock()
		journal, state, err := s.cfg.Store.BytesHeld(ctx, name)
		if err != nil {
			return unavailable(err)
		}
		s.mu.Lock()
		t = s.tenant(name)
		settled := t.wrote == before
		if settled || try == countTries {
			t.journal, t.state, t.counted, t.stale, t.asked = journal, state, true, !settled, s.cfg.Now()
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
	}
}

// Plugin returns an error if one more version of a plugin, of the given size, would
// exceed a quota. The caller must make sure that nobody stores a version at the same
// time.
func (s *Service) Plugin(ctx context.Context, name string, size int) error {
	most, bytes := s.cfg.Limits.Quota(name, limit.QuotaPlugins), s.cfg.Limits.Quota(name, limit.QuotaPluginBytes)
	if most == 0 && bytes == 0 {
		return nil
	}
	versions, held, err := s.cfg.Store.PluginsHeld(ctx, name)
	switch {
	case err != nil:
		return unavailable(err)
	case most > 0 && int64(versions) >= most:
		return Breached(limit.QuotaPlugins, most, int64(versions), retryPlugins)
	case bytes > 0 && held+int64(size) > bytes:
		return Breached(limit.QuotaPluginBytes, bytes, held, 0)
	}
	return nil
}

// Usage returns how much of each quota a tenant uses.
func (s *Service) Usage(ctx context.Context, name string) ([]limit.Use, error) {
	versions, bytes, err := s.cfg.Store.PluginsHeld(ctx, name)
	if err == nil {
		err = s.fresh(ctx, name)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	s.mu.Lock()
	t := *s.tenant(name)
	s.mu.Unlock()
	if t.month < s.month() {
		t.spent = usage.Spent{}
	}
	used := map[limit.Quota]int64{
		limit.QuotaPlugins: int64(versions), limit.QuotaPluginBytes: bytes, limit.QuotaRunsActive: t.active, limit.QuotaRunsWaiting: t.waiting,
		limit.QuotaFuel: int64(t.spent.Fuel), limit.QuotaLogBytes: int64(t.spent.LogBytes), limit.QuotaStateBytes: t.state,
		limit.QuotaJournalBytes: t.journal, limit.QuotaStreamReaders: t.readers,
	}
	list := make([]limit.Use, 0, len(limit.Quotas()))
	for _, q := range limit.Quotas() {
		list = append(list, limit.Use{Quota: q, Limit: s.cfg.Limits.Quota(name, q), Used: used[q]})
	}
	return list, nil
}

// fresh counts the tenant's bytes again if a deletion may have changed them.
func (s *Service) fresh(ctx context.Context, name string) error {
	s.mu.Lock()
	t := s.tenant(name)
	known := t.counted && !t.stale
	s.mu.Unlock()
	if known {
		return nil
	}
	return s.count(ctx, name)
}

// unavailable turns an error of the store into one for clients.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || host.CodeOf(err) == host.CodeUnavailable {
		return err
	}
	return &host.Error{Code: host.CodeUnavailable, Message: "The store cannot answer now", Cause: err}
}
