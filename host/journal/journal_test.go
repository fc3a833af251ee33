package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore keeps batches, and fails on request.
type fakeStore struct {
	host.Store
	mu      sync.Mutex
	batches []host.Batch
	fail    []error // for the next appends; nil: succeed
	gate    chan struct{}
	rereads int
	zeros   uint64 // a row that History reads wrongly
}

func (f *fakeStore) Claim(context.Context) (uint64, error) { return 7, nil }

func (f *fakeStore) Append(_ context.Context, b host.Batch) error {
	if f.gate != nil {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.fail) > 0 {
		err := f.fail[0]
		f.fail = f.fail[1:]
		if err != nil {
			return err
		}
	}
	f.batches = append(f.batches, b)
	return nil
}

func (f *fakeStore) Reread(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	f.rereads++
	return f.LoadSession(ctx, key)
}

// History returns the rows, with a page of zeros in the row at f.zeros.
func (f *fakeStore) History(ctx context.Context, key host.SessionKey, position, after uint64, limit int) ([]host.JournalRow, error) {
	rows, err := f.RereadHistory(ctx, key, position, after, limit)
	f.rereads--
	for i := range rows {
		if rows[i].First == f.zeros {
			rows[i].Data = make([]byte, len(rows[i].Data))
			copy(rows[i].Data, f.batches[0].Sessions[0].Data[:5]) // its version, and a checksum
		}
	}
	return rows, err
}

func (f *fakeStore) RereadHistory(_ context.Context, key host.SessionKey, _, after uint64, limit int) (rows []host.JournalRow, err error) {
	f.rereads++
	for _, b := range f.batches {
		for _, s := range b.Sessions {
			if s.Key == key && s.Last > after && len(rows) < limit {
				rows = append(rows, host.JournalRow{First: s.Last, Data: s.Data})
			}
		}
	}
	return rows, nil
}

func (f *fakeStore) LoadSession(_ context.Context, key host.SessionKey) (host.StoredSession, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out host.StoredSession
	for _, b := range f.batches {
		for _, s := range b.Sessions {
			if s.Key == key {
				out.Rows = append(out.Rows, s.Data)
				out.Last = s.Last
			}
		}
	}
	if out.Rows == nil {
		return out, host.ErrNotFound
	}
	return out, nil
}

// fakeEntry is an entry whose record is a second item of its array.
type fakeEntry struct {
	_      struct{} `cbor:",toarray"`
	Text   string
	Record bool
}

func (e fakeEntry) Append(dst []byte, record bool) ([]byte, error) {
	e.Record = e.Record && record
	b, err := abi.Marshal(e)
	return append(dst, b...), err
}

var epoch = time.Unix(1_000_000, 0)

func key(s string) host.SessionKey { return host.SessionKey{Tenant: "t", Session: s} }

func item(session string, seq uint64, text string) host.JournalItem {
	return host.JournalItem{Key: key(session), Seq: seq, Entry: fakeEntry{Text: text, Record: true}, Size: 100}
}

func open(t *testing.T, f *fakeStore, change func(*journal.Config)) *journal.Journal {
	t.Helper()
	cfg := journal.Config{Store: f}
	if change != nil {
		change(&cfg)
	}
	j, err := journal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// step performs what the journal wants at a time, and reports whether it committed.
func step(t *testing.T, j *journal.Journal, now time.Time) bool {
	t.Helper()
	commit, _ := j.Step(now)
	if commit == nil {
		return false
	}
	if err := commit(t.Context()); err != nil {
		t.Logf("commit: %v", err)
	}
	return true
}

func loaded(t *testing.T, j *journal.Journal, session string) []string {
	t.Helper()
	var out []string
	_, err := j.Load(t.Context(), key(session), func(array []byte) error {
		var es []fakeEntry
		err := abi.Unmarshal(array, &es)
		for _, e := range es {
			out = append(out, fmt.Sprintf("%s/%v", e.Text, e.Record))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNobodyDemandsSoItLingers(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	j.Append(epoch, item("a", 1, "one"))
	commit, next := j.Step(epoch.Add(time.Millisecond))
	if commit != nil || !next.Equal(epoch.Add(5*time.Millisecond)) {
		t.Fatalf("step before the linger: commit %v, next %v", commit != nil, next)
	}
	if !step(t, j, epoch.Add(5*time.Millisecond)) || j.Durable() != 1 {
		t.Fatal("no commit after the linger")
	}
	if step(t, j, epoch.Add(time.Hour)) {
		t.Fatal("a commit of nothing")
	}
}

func TestOneCommitForAllThatIsQueued(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	for i := range 10 {
		j.Append(epoch, item("a", uint64(i+1), fmt.Sprint("a", i)))
		j.Append(epoch, item("b", uint64(i+1), fmt.Sprint("b", i)))
	}
	done := make(chan error, 1)
	go func() { done <- j.Wait(context.Background(), 20) }()
	for j.Durable() == 0 {
		step(t, j, epoch) // the demand alone makes it due
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(f.batches) != 1 || len(f.batches[0].Sessions) != 2 || f.batches[0].Epoch != 7 {
		t.Fatalf("batches: %+v", f.batches)
	}
	if s := f.batches[0].Sessions[0]; s.First != 1 || s.Last != 10 {
		t.Fatalf("positions %d to %d", s.First, s.Last)
	}
	if got := loaded(t, j, "b"); len(got) != 10 || got[9] != "b9/true" {
		t.Fatalf("loaded %v", got)
	}
}

func TestRecordIsLeftOutWhenTheFinishIsInTheBatch(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	add := func(seq, inv uint64, finish bool) {
		it := item("a", seq, fmt.Sprint("inv", inv))
		it.Invocation, it.Attempt, it.Finish = inv, 1, finish
		j.Append(epoch, it)
	}
	add(1, 1, false)
	add(2, 2, false)
	add(3, 1, true)
	step(t, j, epoch.Add(time.Second))
	add(4, 2, true)
	step(t, j, epoch.Add(2*time.Second))
	want := []string{"inv1/false", "inv2/true", "inv1/false", "inv2/false"}
	if got := loaded(t, j, "a"); !slices.Equal(got, want) {
		t.Fatalf("loaded %v, want %v", got, want)
	}
	if s := j.Stats(); s.Dropped != 3 || s.Batches != 2 {
		t.Fatalf("stats %+v", s)
	}
}

func TestPublishesInOrderAfterTheCommitAndBeforeTheAnswer(t *testing.T) {
	var published []string
	f := &fakeStore{}
	var j *journal.Journal
	j = open(t, f, func(c *journal.Config) {
		c.Published = func(tenant string, rows []host.StreamRow) {
			f.mu.Lock()
			committed := len(f.batches)
			f.mu.Unlock()
			if committed != 1 || j.Durable() != 0 {
				t.Errorf("published with %d commits, durable %d", committed, j.Durable())
			}
			for _, r := range rows {
				for _, e := range r.Events {
					published = append(published, fmt.Sprint(tenant, "/", r.HandlerID, "/", e.Seq))
				}
			}
		}
	})
	for i := range 3 {
		it := item("a", uint64(i+1), "x")
		it.Stream = []host.StreamRow{{HandlerID: "h", RunID: "r", Events: []host.StreamEvent{{Seq: uint64(i)}}}}
		it.Runs = []host.Run{{RunID: "r", Steps: uint64(i)}}
		j.Append(epoch, it)
	}
	step(t, j, epoch.Add(time.Second))
	if want := []string{"t/h/0", "t/h/1", "t/h/2"}; !slices.Equal(published, want) {
		t.Fatalf("published %v", published)
	}
	s := f.batches[0].Sessions[0]
	if len(s.Stream) != 1 || len(s.Runs) != 1 || s.Runs[0].Steps != 2 {
		t.Fatalf("a batch holds each run once and its stream in one row: %+v", s)
	}
}

func TestRefusedCommitIsTriedAgainAsTheSameBatch(t *testing.T) {
	f := &fakeStore{fail: []error{fmt.Errorf("disk full: %w", host.ErrNotCommitted)}}
	j := open(t, f, nil)
	j.Append(epoch, item("a", 1, "one"))
	step(t, j, epoch.Add(time.Second))
	if j.Durable() != 0 || !j.OverHardLimit("t") || j.Err() == nil {
		t.Fatal("a refused commit must stop dispatch")
	}
	j.Append(epoch, item("a", 2, "two"))
	commit, next := j.Step(time.Now().Add(-time.Hour))
	if commit != nil || next.IsZero() {
		t.Fatal("tried again at once")
	}
	step(t, j, next)
	if j.Durable() != 2 || j.OverHardLimit("t") || j.Err() != nil {
		t.Fatalf("durable %d, congested %v, err %v", j.Durable(), j.OverHardLimit("t"), j.Err())
	}
	if got := loaded(t, j, "a"); !slices.Equal(got, []string{"one/true", "two/true"}) {
		t.Fatalf("loaded %v", got)
	}
}

func TestUnknownOutcomeKillsTheQueue(t *testing.T) {
	cause := errors.New("I/O error")
	f := &fakeStore{fail: []error{cause}}
	j := open(t, f, nil)
	pos := j.Append(epoch, item("a", 1, "one"))
	done := make(chan error, 1)
	go func() { done <- j.Wait(context.Background(), pos) }()
	for !step(t, j, epoch) {
	}
	if err := <-done; !errors.Is(err, cause) {
		t.Fatalf("waiter got %v", err)
	}
	if err := j.Wait(t.Context(), pos); !errors.Is(err, cause) {
		t.Fatalf("later waiter got %v", err)
	}
	if step(t, j, epoch.Add(time.Hour)) {
		t.Fatal("a dead queue commits")
	}
}

func TestCongestionByTenantAndInAll(t *testing.T) {
	j := open(t, &fakeStore{}, func(c *journal.Config) { c.MaxTenantPendingBytes, c.MaxPendingBytes = 250, 450 })
	seq := map[string]uint64{}
	add := func(tenant string) {
		it := item("s", seq[tenant]+1, "x")
		seq[tenant]++
		it.Key.Tenant = tenant
		j.Append(epoch, it)
	}
	for range 3 {
		add("a")
	}
	if !j.OverHardLimit("a") || j.OverHardLimit("b") {
		t.Fatal("only the tenant above its bound must wait")
	}
	add("b")
	add("b")
	if !j.OverHardLimit("c") {
		t.Fatal("above the bound for all, all must wait")
	}
	step(t, j, epoch.Add(time.Second))
	if j.OverHardLimit("a") || j.OverHardLimit("b") {
		t.Fatal("congested with an empty queue")
	}
}

// A tenant that writes alone keeps the disk busy with one batch while it fills the next.
// While others write too, it keeps to its much smaller part. Both are less than the limit
// at which it is refused.
func TestWhoCrowdsTheQueue(t *testing.T) {
	j := open(t, &fakeStore{}, func(c *journal.Config) { c.MaxBatchBytes, c.MaxSharedBytes = 1<<20, 256<<10 })
	seq := map[string]uint64{}
	add := func(tenant string, now time.Time) {
		it := item("s", seq[tenant]+1, "x")
		it.Size = 1 << 10
		seq[tenant]++
		it.Key.Tenant = tenant
		j.Append(now, it)
	}
	fill := func(tenant string, now time.Time) (kib int) {
		for ; !j.OverSoftLimit(tenant); kib++ {
			add(tenant, now)
		}
		return kib
	}
	if n := fill("a", epoch); n != 2<<10+1 {
		t.Errorf("one that is alone fills %d KiB", n)
	}
	if j.OverSoftLimit("b") || j.OverHardLimit("a") {
		t.Error("another is kept from writing, or one that crowds is refused")
	}
	for step(t, j, epoch.Add(time.Second)) {
	}
	now := epoch.Add(time.Minute)
	add("b", now)
	if n := fill("a", now); n != 128+1 {
		t.Errorf("one beside another fills %d KiB", n)
	}
	if j.OverSoftLimit("b") {
		t.Error("so that the other may not write")
	}
	for step(t, j, now.Add(time.Second)) {
	}
	if n := fill("a", now.Add(time.Minute)); n < 2<<10 {
		t.Errorf("one that is alone again fills %d KiB", n)
	}
}

// The tenants that have something waiting share what the disk takes, and a tenant among
// many still has the least share.
func TestSharesByTenants(t *testing.T) {
	j := open(t, &fakeStore{}, func(c *journal.Config) { c.MaxSharedBytes = 128 << 10 })
	add := func(tenant string) {
		it := item("s", 1, "x")
		it.Key.Tenant, it.Size = tenant, 1<<10
		j.Append(epoch, it)
	}
	fill := func(tenant string) (kib int) {
		for ; !j.OverSoftLimit(tenant); kib++ {
			add(tenant)
		}
		return kib
	}
	for _, tt := range []struct {
		others []string
		tenant string
		kib    int
	}{
		{[]string{"b"}, "a", 64 + 1},                // half
		{nil, "c", 42 + 1},                          // a third
		{[]string{"d", "e", "f", "g"}, "h", 32 + 1}, // the least, above an eighth
	} {
		for _, other := range tt.others {
			add(other)
		}
		if n := fill(tt.tenant); n != tt.kib {
			t.Errorf("tenant %s fills %d KiB, want %d", tt.tenant, n, tt.kib)
		}
	}
}

// However much others have waiting for the disk, a tenant with little is not stopped:
// tenants that want more than there is leave as much as they have.
func TestCongestionLeavesRoomForOthers(t *testing.T) {
	j := open(t, &fakeStore{}, func(c *journal.Config) { c.MaxTenantPendingBytes, c.MaxPendingBytes = 100_000, 100_000 })
	seq := map[string]uint64{}
	for range 10_000 {
		for _, tenant := range []string{"a", "b", "c"} {
			if j.OverHardLimit(tenant) {
				continue
			}
			it := item("s", seq[tenant]+1, "x")
			seq[tenant]++
			it.Key.Tenant = tenant
			j.Append(epoch, it)
		}
	}
	if !j.OverHardLimit("a") || !j.OverHardLimit("b") || !j.OverHardLimit("c") || j.OverHardLimit("d") {
		t.Errorf("three tenants have %d bytes waiting", j.Stats().Pending)
	}
	if most := 76_000; j.Stats().Pending > most || j.Stats().Pending < most/2 {
		t.Errorf("three tenants have %d bytes waiting, want three quarters of 100,000", j.Stats().Pending)
	}
}

func TestRunDrainsOnStop(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, func(c *journal.Config) { c.Linger = time.Hour })
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	j.Append(time.Now(), item("a", 1, "one"))
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if j.Durable() != 1 {
		t.Fatal("what was queued at the stop is lost")
	}
	if err := j.Wait(context.Background(), 99); !errors.Is(err, journal.ErrClosed) {
		t.Fatalf("a wait after the end: %v", err)
	}
}

// A lingering entry is committed after that time, even with a clock that stands still.
func TestRunWaitsByTheClockOnTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		j := open(t, &fakeStore{}, func(c *journal.Config) {
			c.Linger = time.Minute
			c.Now = func() time.Time { return began }
		})
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- j.Run(ctx) }()
		<-time.After(time.Second)
		j.Append(began, item("a", 1, "one"))
		<-time.After(2 * time.Minute)
		if j.Durable() != 1 {
			t.Error("what was queued is not committed")
		}
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitersUnderLoad(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	var wg sync.WaitGroup
	for c := range 16 {
		wg.Go(func() {
			for i := range 200 {
				pos := j.Append(time.Now(), item(fmt.Sprint("s", c), uint64(i+1), "x"))
				if err := j.Wait(context.Background(), pos); err != nil {
					t.Error(err)
					return
				}
				if j.Durable() < pos {
					t.Error("answered before durable")
				}
			}
		})
	}
	wg.Wait()
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if s := j.Stats(); s.Durable != 16*200 || s.Pending != 0 {
		t.Fatalf("stats %+v", s)
	}
}

func TestCorruptAndNewerRowsAreRefused(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	j.Append(epoch, item("a", 1, "one"))
	step(t, j, epoch.Add(time.Second))
	row := f.batches[0].Sessions[0].Data
	load := func() error {
		_, err := j.Load(t.Context(), key("a"), func([]byte) error { return nil })
		return err
	}
	for i := range row {
		row[i] ^= 0x40
		if err := load(); err == nil {
			t.Fatalf("a flipped bit in byte %d goes unseen", i)
		} else if i > 0 && !errors.Is(err, journal.ErrCorrupt) {
			t.Fatalf("byte %d: %v", i, err)
		}
		row[i] ^= 0x40
	}
	if err := load(); err != nil {
		t.Fatal(err)
	}
	f.batches[0].Sessions[0].Data = row[:3]
	if err := load(); !errors.Is(err, journal.ErrCorrupt) {
		t.Fatalf("a torn row: %v", err)
	}
}

// A row of a history that cannot be read is read again, once, because a disk may return
// zeros. A row that is damaged twice counts as damaged.
func TestHistoryIsReadAgain(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	for n := range 5 {
		j.Append(epoch, item("a", uint64(n+1), fmt.Sprint("entry ", n)))
		step(t, j, epoch.Add(time.Duration(n+1)*time.Second))
	}
	read := func() (n int, err error) {
		err = j.History(t.Context(), key("a"), 0, func([]byte) (bool, error) {
			n++
			return true, nil
		})
		return n, err
	}
	for f.zeros = 0; f.zeros <= 5; f.zeros++ {
		f.rereads = 0
		if n, err := read(); n != 5 || err != nil || f.rereads != int(min(f.zeros, 1)) {
			t.Errorf("with zeros in row %d: %d entries, read again %d times, %v", f.zeros, n, f.rereads, err)
		}
	}
	f.batches[2].Sessions[0].Data[7] ^= 1
	if n, err := read(); n != 2 || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("with a damaged row: %d entries, %v", n, err)
	}
}
