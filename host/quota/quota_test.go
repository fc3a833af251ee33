package quota_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/quota"
	"github.com/weftrun/weft/host/usage"
)

// fakeStore returns what tests set.
type fakeStore struct {
	mu             sync.Mutex
	runs           []usage.RunsHeld
	spent          []usage.MonthSpent
	journal, state int64
	versions       int
	bytes          int64
	asked          int
	during         func() // called while the bytes are being counted
	err            error
}

func (f *fakeStore) RunsHeld(context.Context) ([]usage.RunsHeld, error) { return f.runs, f.err }

func (f *fakeStore) BytesHeld(context.Context, string) (int64, int64, error) {
	f.mu.Lock()
	f.asked++
	journal, state, during := f.journal, f.state, f.during
	f.during = nil
	f.mu.Unlock()
	if during != nil {
		during()
	}
	return journal, state, f.err
}

func (f *fakeStore) PluginsHeld(context.Context, string) (int, int64, error) {
	return f.versions, f.bytes, f.err
}

func (f *fakeStore) Spent(_ context.Context, _ string, from usage.Month) (list []usage.MonthSpent, err error) {
	for _, m := range f.spent {
		if m.Month >= from {
			list = append(list, m)
		}
	}
	return list, f.err
}

// world is a service with a clock that tests set.
type world struct {
	*quota.Service
	store *fakeStore
	now   atomic.Int64
}

func (w *world) tick(d time.Duration) { w.now.Add(int64(d)) }

func newWorld(t *testing.T, limits string, store *fakeStore) *world {
	t.Helper()
	table, err := limit.Parse([]byte(limits))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: store}
	w.now.Store(time.Date(2026, 11, 30, 23, 59, 50, 0, time.UTC).UnixNano())
	w.Service, err = quota.New(t.Context(), quota.Config{Store: store, Limits: table, Now: func() time.Time { return time.Unix(0, w.now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// breach expects an error that names an exceeded quota.
func breach(t *testing.T, err error, q limit.Quota, value, used int64, retry time.Duration) {
	t.Helper()
	var e *host.Error
	if !errors.As(err, &e) || e.Code != host.CodeLimitExceeded || e.Breach == nil {
		t.Fatalf("error = %v, want a breach of %s", err, q)
	}
	if want := (limit.Breach{Limit: q.String(), Value: value, Used: used, Size: q.OfSize()}); *e.Breach != want || e.RetryAfter != retry {
		t.Errorf("breach = %+v after %s, want %+v after %s", *e.Breach, e.RetryAfter, want, retry)
	}
	status := 429
	if q.OfSize() {
		status = 413
	}
	if e.HTTPStatus() != status {
		t.Errorf("%s is answered by %d", q, e.HTTPStatus())
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRequestsOfASecond(t *testing.T) {
	w := newWorld(t, `{"tenants": {"a": {"tenant_requests_per_second": 5}, "b": {"tenant_requests_per_second": 1}}}`, &fakeStore{})
	for range 5 {
		fine(t, w.Request("a"))
	}
	breach(t, w.Request("a"), limit.QuotaRequests, 5, 5, 200*time.Millisecond)
	fine(t, w.Request("b"))
	breach(t, w.Request("b"), limit.QuotaRequests, 1, 1, time.Second)
	w.tick(150 * time.Millisecond)
	breach(t, w.Request("a"), limit.QuotaRequests, 5, 5, 50*time.Millisecond)
	w.tick(50 * time.Millisecond)
	fine(t, w.Request("a"))
	breach(t, w.Request("a"), limit.QuotaRequests, 5, 5, 200*time.Millisecond)
	w.tick(time.Hour) // no more than a second's worth is saved up
	for range 5 {
		fine(t, w.Request("a"))
	}
	breach(t, w.Request("a"), limit.QuotaRequests, 5, 5, 200*time.Millisecond)
	w.tick(-time.Hour) // a clock that is set back keeps nobody out
	w.tick(200 * time.Millisecond)
	breach(t, w.Request("a"), limit.QuotaRequests, 5, 5, 200*time.Millisecond)
	w.tick(200 * time.Millisecond)
	fine(t, w.Request("a"))
	for range 100_000 { // the tenant of a server without keys has none that is not set
		fine(t, w.Request(host.DefaultTenant))
	}
}

// Of concurrent starts exactly as many get a place as there are, and a returned place is
// free again.
func TestPlacesAtOnce(t *testing.T) {
	w := newWorld(t, `{"tenants": {"a": {"tenant_runs_active": 7, "tenant_runs_waiting": 3, "tenant_stream_readers": 5}}}`,
		&fakeStore{runs: []usage.RunsHeld{{Tenant: "a", Active: 2, Waiting: 1}}})
	count := func(n int, take func() error) int {
		var taken atomic.Int64
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if take() == nil {
					taken.Add(1)
				}
			})
		}
		wg.Wait()
		return int(taken.Load())
	}
	begin := func(waits bool) func() error { return func() error { return w.Begin("a", waits) } }
	if n := count(64, begin(false)); n != 5 {
		t.Errorf("%d runs began besides 2, the limit is 7", n)
	}
	breach(t, w.Begin("a", false), limit.QuotaRunsActive, 7, 7, time.Second)
	breach(t, w.Room("a"), limit.QuotaRunsActive, 7, 7, time.Second)
	if n := count(64, begin(true)); n != 2 {
		t.Errorf("%d runs wait besides 1, the limit is 3", n)
	}
	breach(t, w.Begin("a", true), limit.QuotaRunsWaiting, 3, 3, time.Second)
	fine(t, w.Begin("b", false))

	w.Runs("a", 1, -1) // one begins: that is never refused
	breach(t, w.Begin("a", false), limit.QuotaRunsActive, 7, 8, time.Second)
	fine(t, w.Begin("a", true))
	w.Runs("a", -3, 0)
	if n := count(64, begin(false)); n != 2 {
		t.Errorf("%d runs began, 2 places were free", n)
	}

	var mu sync.Mutex
	var leaves []func()
	if n := count(64, func() error {
		leave, err := w.Reader("a")
		if err == nil {
			mu.Lock()
			leaves = append(leaves, leave)
			mu.Unlock()
		}
		return err
	}); n != 5 {
		t.Errorf("%d readers, the limit is 5", n)
	}
	_, err := w.Reader("a")
	breach(t, err, limit.QuotaStreamReaders, 5, 5, 5*time.Second)
	leaves[0]()
	_, err = w.Reader("a")
	fine(t, err)
}

func TestMonth(t *testing.T) {
	store := &fakeStore{spent: []usage.MonthSpent{
		{Tenant: "a", Month: 202610, Spent: usage.Spent{Fuel: 1e12}},
		{Tenant: "a", Month: 202611, Spent: usage.Spent{Fuel: 600}},
	}}
	w := newWorld(t, `{"tenants": {"a": {"tenant_fuel_per_month": 1000, "tenant_log_bytes_per_month": 50}}}`, store)
	fine(t, w.Begin("a", false))
	w.Spend("a", w.now.Load(), usage.Spent{Fuel: 399})
	w.Spend("a", time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC).UnixNano(), usage.Spent{Fuel: 1e12}) // of a month that is over
	fine(t, w.Begin("a", false))
	w.Spend("a", w.now.Load(), usage.Spent{Fuel: 5})
	breach(t, w.Begin("a", false), limit.QuotaFuel, 1000, 1004, 10*time.Second)
	breach(t, w.Begin("a", true), limit.QuotaFuel, 1000, 1004, 10*time.Second)
	fine(t, w.Begin("b", false))
	w.tick(9 * time.Second)
	breach(t, w.Room("a"), limit.QuotaFuel, 1000, 1004, time.Second)
	w.tick(time.Second)
	fine(t, w.Begin("a", false)) // December
	w.Spend("a", w.now.Load(), usage.Spent{LogBytes: 50})
	breach(t, w.Begin("a", false), limit.QuotaLogBytes, 50, 50, 31*24*time.Hour)
	list, err := w.Usage(t.Context(), "a")
	fine(t, err)
	for _, u := range list {
		if u.Quota == limit.QuotaFuel && (u.Used != 0 || u.Limit != 1000) || u.Quota == limit.QuotaLogBytes && u.Used != 50 {
			t.Errorf("usage %s = %+v", u.Quota, u)
		}
	}
	w.tick(31 * 24 * time.Hour)
	fine(t, w.Begin("a", false))
}

// A tenant's bytes are read once, then grow with each write. After a deletion they are
// read again, and only for requests that would be refused.
func TestBytes(t *testing.T) {
	store := &fakeStore{journal: 50, state: 10}
	w := newWorld(t, `{"tenants": {"a": {"tenant_journal_bytes": 100, "tenant_state_bytes": 1000}}}`, store)
	part := func(session string, data int, growth int64) host.SessionBatch {
		return host.SessionBatch{Key: host.SessionKey{Tenant: "a", Session: session}, First: 2, Last: 2, Data: make([]byte, data), StateGrowth: growth}
	}
	grow := func() error { return w.Grow(t.Context(), "a") }
	fine(t, grow())
	w.Wrote(&host.Batch{Sessions: []host.SessionBatch{part("s", 30, 100), part("t", 19, 0)}})
	fine(t, grow())
	w.Wrote(&host.Batch{Sessions: []host.SessionBatch{part("s", 1, 0)}})
	breach(t, grow(), limit.QuotaJournalBytes, 100, 100, 0)
	breach(t, w.Begin("a", false), limit.QuotaJournalBytes, 100, 100, 0)
	fine(t, w.Grow(t.Context(), "b"))
	if store.asked != 2 { // once for each
		t.Errorf("the store was asked %d times", store.asked)
	}

	store.journal, store.state = 20, 5
	w.tick(2 * time.Second)
	w.Wrote(&host.Batch{Sessions: []host.SessionBatch{{Key: host.SessionKey{Tenant: "a", Session: "s"}, Purge: []string{"h"}}}})
	store.during = func() { w.Wrote(&host.Batch{Sessions: []host.SessionBatch{part("s", 1, 0)}}) } // asked again
	fine(t, grow())
	if store.asked != 4 {
		t.Errorf("the store was asked %d times", store.asked)
	}
	w.Wrote(&host.Batch{Sessions: []host.SessionBatch{part("s", 79, 995)}})
	breach(t, grow(), limit.QuotaStateBytes, 1000, 1000, 0)
	w.Wrote(&host.Batch{Sessions: []host.SessionBatch{part("s", 1, -500)}})
	breach(t, grow(), limit.QuotaJournalBytes, 100, 100, 0)

	// Not more than once a second.
	w.Wrote(&host.Batch{Sessions: []host.SessionBatch{{Key: host.SessionKey{Tenant: "a", Session: "s"}, Erase: 9}}})
	store.journal = 0
	breach(t, grow(), limit.QuotaJournalBytes, 100, 100, time.Second)
	w.tick(time.Second)
	fine(t, grow())

	// What a resource keeps counts, until it is deleted.
	store.during = nil
	w.Wrote(&host.Batch{KV: []kv.Write{{Space: kv.Space{Tenant: "a", Resource: "shelf"}, Growth: 2000}}})
	breach(t, grow(), limit.QuotaStateBytes, 1000, 2005, 0)
	w.tick(2 * time.Second)
	w.Freed("a")
	fine(t, grow())
	store.err = errors.New("the disk is gone")
	w.Forget("a")
	if err := grow(); host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("without a store: %v", err)
	}
}

// A row counts although it holds nothing: empty sessions, runs and keys are not free.
func TestEmptyRowsCount(t *testing.T) {
	w := newWorld(t, `{"tenants": {"a": {"tenant_journal_bytes": 3145728, "tenant_state_bytes": 524288}}}`, &fakeStore{})
	grow := func() error { return w.Grow(t.Context(), "a") }
	fine(t, grow())
	session := func(i int, started ...string) {
		w.Wrote(&host.Batch{Sessions: []host.SessionBatch{{Key: host.SessionKey{Tenant: "a", Session: strconv.Itoa(i)}, First: 1, Last: 1, Started: started}}})
	}
	const quota = 3 << 20
	for i := range quota / limit.SessionCharge / 2 {
		session(i)
	}
	for i := range quota / (limit.SessionCharge + limit.RunCharge) / 2 {
		fine(t, grow())
		session(i, "run")
	}
	breach(t, grow(), limit.QuotaJournalBytes, quota, quota, 0)

	w = newWorld(t, `{"tenants": {"a": {"tenant_state_bytes": 524288}}}`, &fakeStore{})
	fine(t, grow())
	for range 1 << 10 {
		fine(t, grow())
		w.Wrote(&host.Batch{KV: []kv.Write{{Space: kv.Space{Tenant: "a", Resource: "shelf"}, Keys: 1}}})
	}
	breach(t, grow(), limit.QuotaStateBytes, 1<<19, 1<<19, 0)
	w.Wrote(&host.Batch{KV: []kv.Write{{Space: kv.Space{Tenant: "a", Resource: "shelf"}, Keys: -1}}})
	fine(t, grow())
}

func TestPlugins(t *testing.T) {
	store := &fakeStore{versions: 2, bytes: 60}
	w := newWorld(t, `{"defaults": {"tenant_plugins": 3, "tenant_plugin_bytes": 100}, "tenants": {"free": {"tenant_plugins": 0, "tenant_plugin_bytes": 0}}}`, store)
	fine(t, w.Plugin(t.Context(), "a", 40))
	breach(t, w.Plugin(t.Context(), "a", 41), limit.QuotaPluginBytes, 100, 60, 0)
	store.versions = 3
	breach(t, w.Plugin(t.Context(), host.DefaultTenant, 1), limit.QuotaPlugins, 3, 3, time.Minute) // as it is set for all
	fine(t, w.Plugin(t.Context(), "free", math.MaxInt32))
}

// A model: whatever begins and ends, in any order, the counts match what is left, and a
// new service on what is left has the same counts.
func TestCountsOfAnyHistory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	const limits = `{"defaults": {"tenant_runs_active": 6, "tenant_runs_waiting": 4, "tenant_fuel_per_month": 1000000}}`
	w := newWorld(t, limits, &fakeStore{})
	type counts struct{ active, waiting, fuel int64 }
	model := map[string]*counts{"a": {}, "b": {}, "c": {}}
	for range 5000 {
		name := []string{"a", "b", "c"}[rng.IntN(3)]
		m := model[name]
		switch rng.IntN(6) {
		case 0, 1:
			waits := rng.IntN(2) == 0
			err := w.Begin(name, waits)
			full := m.fuel >= 1e6 || waits && m.waiting >= 4 || !waits && m.active >= 6
			if (err != nil) != full {
				t.Fatalf("Begin(%s, %t) = %v with %+v", name, waits, err, *m)
			}
			if err == nil && waits {
				m.waiting++
			} else if err == nil {
				m.active++
			}
		case 2:
			if m.active > 0 {
				m.active--
				w.Runs(name, -1, 0)
			}
		case 3:
			if m.waiting > 0 {
				m.waiting--
				m.active++
				w.Runs(name, 1, -1)
			}
		case 4:
			fuel := rng.Int64N(2000)
			m.fuel += fuel
			w.Spend(name, w.now.Load(), usage.Spent{Fuel: uint64(fuel)})
		case 5: // the server crashes
			store := &fakeStore{}
			for name, m := range model {
				store.runs = append(store.runs, usage.RunsHeld{Tenant: name, Active: int(m.active), Waiting: int(m.waiting)})
				store.spent = append(store.spent, usage.MonthSpent{Tenant: name, Month: 202611, Spent: usage.Spent{Fuel: uint64(m.fuel)}})
			}
			w = newWorld(t, limits, store)
		}
		list, err := w.Usage(t.Context(), name)
		fine(t, err)
		got := counts{}
		for _, u := range list {
			switch u.Quota {
			case limit.QuotaRunsActive:
				got.active = u.Used
			case limit.QuotaRunsWaiting:
				got.waiting = u.Used
			case limit.QuotaFuel:
				got.fuel = u.Used
			}
		}
		if got != *m {
			t.Fatalf("%s has %+v, want %+v", name, got, *m)
		}
	}
}
