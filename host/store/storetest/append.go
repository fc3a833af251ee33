package storetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

func testClaim(t *testing.T, open func(t *testing.T) host.Store) {
	s := open(t)
	var before uint64
	for range 3 {
		epoch, err := s.Claim(t.Context())
		ok(t, "Claim", err)
		if epoch <= before {
			t.Fatalf("Claim = %d after %d, want a higher one", epoch, before)
		}
		before = epoch
	}
}

func testFencing(t *testing.T, open func(t *testing.T) host.Store) {
	t.Run("unclaimed", func(t *testing.T) {
		s := open(t)
		if err := s.Append(t.Context(), host.Batch{}); !errors.Is(err, host.ErrFenced) {
			t.Errorf("Append before any Claim = %v, want ErrFenced", err)
		}
	})
	f := claimed(t, open)
	f.append(f.part("s", 1))
	newer, err := f.Claim(f.ctx)
	ok(t, "Claim", err)
	for _, epoch := range []uint64{f.epoch, newer + 1, 0, math.MaxUint64} {
		err := f.Append(f.ctx, host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{f.part("s", 1)}})
		if !errors.Is(err, host.ErrFenced) {
			t.Errorf("Append with epoch %d, newest %d = %v, want ErrFenced", epoch, newer, err)
		}
	}
	stored, err := f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "s"})
	ok(t, "LoadSession", err)
	if stored.Last != 1 {
		t.Errorf("a fenced batch was written: Last = %d", stored.Last)
	}
	f.epoch = newer
	f.append(f.part("s", 1))
}

// testClaimsAtOnce: of owners that claim the store concurrently, each with its own epoch,
// the one with the highest epoch can write, whatever the others try meanwhile. Nothing
// that the others append or delete has an effect.
func testClaimsAtOnce(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	f.ran("s", completed("h", "s", 1, 10))
	before := dump(f)
	epochs := make([]uint64, 8)
	var owners sync.WaitGroup
	for i := range epochs {
		owners.Go(func() {
			var err error
			if epochs[i], err = f.Claim(f.ctx); err != nil {
				t.Errorf("Claim: %v", err)
			}
		})
	}
	owners.Wait()
	slices.Sort(epochs)
	if distinct := slices.Compact(slices.Clone(epochs)); len(distinct) != len(epochs) || epochs[0] <= f.epoch {
		t.Fatalf("the epochs are %d, after %d", epochs, f.epoch)
	}
	key := host.SessionKey{Tenant: tenant, Session: "s"}
	for _, epoch := range append([]uint64{f.epoch}, epochs[:len(epochs)-1]...) {
		for _, part := range []host.SessionBatch{f.part("s", 1), f.part("new", 1), {Key: key, Purge: []string{"h"}}, {Key: key, Drop: []string{"h@1"}}} {
			err := f.Append(f.ctx, host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{part}})
			if !errors.Is(err, host.ErrFenced) {
				t.Fatalf("Append with epoch %d of %d = %v, want ErrFenced", epoch, epochs, err)
			}
		}
	}
	same(t, "the store after what fenced owners tried", dump(f), before)
	f.epoch = epochs[len(epochs)-1]
	f.append(f.part("s", 1))
}

func testPositions(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	refuse := func(session string, first, last uint64) {
		t.Helper()
		p := f.part(session, 1)
		p.First, p.Last = first, last
		f.refused(p)
	}
	refuse("new", 2, 2)
	refuse("new", 2, 1)
	refuse("new", 1, 0)
	refuse("new", 1, math.MaxInt64+1)
	refuse("new", math.MaxUint64, math.MaxUint64)
	_, err := f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "new"})
	missing(t, "a session of refused batches", err)

	f.append(f.part("s", 3))
	for _, first := range []uint64{1, 2, 3, 5, math.MaxInt64} {
		refuse("s", first, first)
	}
	refuse("s", 4, 3)
	f.append(f.part("s", 2), f.part("t", 1))
	refuse("s", 4, 5)
	stored, err := f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "s"})
	ok(t, "LoadSession", err)
	if stored.Last != 5 || len(stored.Rows) != 2 {
		t.Errorf("Last = %d with %d rows, want 5 with 2", stored.Last, len(stored.Rows))
	}

	// One batch may hold several parts of a session, if they are consecutive.
	p, q := f.part("s", 1), f.part("s", 1)
	q.First, q.Last = 7, 9
	f.append(p, q)
	f.append(f.part("s", 1))
}

// testRefusals: each batch contradicts itself or the stored data. None of them changes
// anything, and the store keeps working.
func testRefusals(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	known := running("h", "s", 10)
	p := f.part("s", 1)
	p.Runs, p.Started = []host.Run{known}, []string{known.RunID}
	p.Stream = []host.StreamRow{events(known, 0, 3)}
	f.append(p)
	fresh := running("fresh", "s", 20)
	foreign := running("h", "s", 30)
	foreign.SessionID = "other"
	taken := running("h", "other", 30)
	twice := known
	twice.HandlerID = "k"
	strange := known
	strange.Tenant = "strange"

	for _, test := range []struct {
		name    string
		session string
		edit    func(p *host.SessionBatch)
	}{
		{"started run is not among the runs", "s", func(p *host.SessionBatch) { p.Started = []string{"x"} }},
		{"started twice", "s", func(p *host.SessionBatch) {
			p.Runs, p.Started = []host.Run{fresh}, []string{fresh.RunID, fresh.RunID}
		}},
		{"started run exists", "s", func(p *host.SessionBatch) { p.Runs, p.Started = []host.Run{known}, []string{known.RunID} }},
		{"run id of another handler", "s", func(p *host.SessionBatch) { p.Runs, p.Started = []host.Run{twice}, []string{twice.RunID} }},
		{"changed run is unknown", "s", func(p *host.SessionBatch) { p.Runs = []host.Run{fresh} }},
		{"run of another session", "s", func(p *host.SessionBatch) { p.Runs, p.Started = []host.Run{foreign}, []string{foreign.RunID} }},
		{"run of another tenant", "s", func(p *host.SessionBatch) { p.Runs = []host.Run{strange} }},
		{"handler of another session", "other", func(p *host.SessionBatch) { p.Runs, p.Started = []host.Run{taken}, []string{taken.RunID} }},
		{"changed workflow", "s", func(p *host.SessionBatch) { p.Runs = []host.Run{known}; p.Runs[0].Workflow = "x" }},
		{"changed start", "s", func(p *host.SessionBatch) { p.Runs = []host.Run{known}; p.Runs[0].Started++ }},
		{"stream of an unknown handler", "s", func(p *host.SessionBatch) { p.Stream = []host.StreamRow{events(fresh, 0, 1)} }},
		{"stream of another session's handler", "other", func(p *host.SessionBatch) { p.Stream = []host.StreamRow{events(known, 3, 1)} }},
		{"stream event exists", "s", func(p *host.SessionBatch) { p.Stream = []host.StreamRow{events(known, 2, 1)} }},
		{"stream row overlaps", "s", func(p *host.SessionBatch) { p.Stream = []host.StreamRow{events(known, 1, 5)} }},
		{"stream row before the others", "s", func(p *host.SessionBatch) {
			p.Stream = []host.StreamRow{events(known, 4, 1), events(known, 3, 1)}
		}},
		{"stream row without events", "s", func(p *host.SessionBatch) { p.Stream = []host.StreamRow{events(known, 3, 0)} }},
		{"stream row with a gap", "s", func(p *host.SessionBatch) {
			row := events(known, 3, 2)
			row.Events[1].Seq++
			p.Stream = []host.StreamRow{row}
		}},
		{"stream event out of range", "s", func(p *host.SessionBatch) {
			row := events(known, 3, 1)
			row.Events[0].Seq = math.MaxUint64
			p.Stream = []host.StreamRow{row}
		}},
		{"wakes before time", "s", func(p *host.SessionBatch) { p.WakeAt = -2 }},
		{"runs without entries", "s", func(p *host.SessionBatch) {
			p.First, p.Last, p.Data, p.Runs = 0, 0, nil, []host.Run{known}
		}},
		{"stream without entries", "s", func(p *host.SessionBatch) {
			p.First, p.Last, p.Data, p.Stream = 0, 0, nil, []host.StreamRow{events(known, 3, 1)}
		}},
		{"data without entries", "s", func(p *host.SessionBatch) { p.First, p.Last = 0, 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := *f
			f.t = t
			p := f.part(test.session, 1)
			test.edit(&p)
			f.refused(p)
		})
	}
	_, err := f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "other"})
	missing(t, "a session of refused batches", err)
	h, err := f.Handler(f.ctx, tenant, "h")
	ok(t, "Handler", err)
	same(t, "the run", h.Run, known)
	if last, _, err := f.StreamEnd(f.ctx, tenant, "h"); err != nil || last != 2 {
		t.Errorf("StreamEnd = %d, %v, want 2", last, err)
	}
	f.append(f.part("s", 1))
}

// testAllOrNothing: a batch whose last part is refused leaves nothing of the parts before
// it, nor of their deletions.
func testAllOrNothing(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	old, other := running("old", "", 10), running("other", "", 11)
	p := f.part("old", 1)
	p.Runs, p.Started = []host.Run{old}, []string{old.RunID}
	p.Stream = []host.StreamRow{events(old, 0, 2)}
	f.append(p)
	f.start(other)
	before := dump(f)

	good := f.part("old", 2)
	again := running("old", "", 20)
	done := old
	done.Status = host.StatusCompleted
	good.WakeAt = 5
	good.Runs, good.Started = []host.Run{done, again}, []string{again.RunID}
	good.Stream = []host.StreamRow{events(old, 2, 2), events(again, 4, 1)}
	deletes := host.SessionBatch{Key: host.SessionKey{Tenant: tenant, Session: "other"}, Purge: []string{"other"}}
	purged := host.SessionBatch{Key: good.Key, Purge: []string{"old"}}
	bad := f.part("third", 1)
	bad.First, bad.Last = 7, 7
	f.refused(good, f.part("fourth", 1), deletes, purged, bad)
	_, err := f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "fourth"})
	missing(t, "a session of a refused batch", err)
	same(t, "the store after a refused batch", dump(f), before)
	f.append(good, deletes, purged)
}

func testEndedContext(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	err := f.Append(ended, host.Batch{Epoch: f.epoch, Sessions: []host.SessionBatch{f.part("s", 1)}})
	if !errors.Is(err, host.ErrNotCommitted) || !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want ErrNotCommitted and the context's error", err)
	}
	_, err = f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "s"})
	missing(t, "session", err)
	if _, err := f.LoadSession(ended, host.SessionKey{Tenant: tenant, Session: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("LoadSession = %v, want the context's error", err)
	}
	if _, err := f.Claim(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Claim = %v, want the context's error", err)
	}
	f.append(f.part("s", 1))
}

func testSessions(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	key := host.SessionKey{Tenant: tenant, Session: "s"}
	_, err := f.LoadSession(f.ctx, key)
	missing(t, "session", err)

	want := host.StoredSession{}
	for n := 1; n <= 12; n++ { // past the point where "10" sorts before "9"
		p := f.part("s", n)
		p.WakeAt = int64(n % 3)
		want.Rows = append(want.Rows, p.Data)
		want.Last, want.WakeAt = p.Last, p.WakeAt
		f.append(p, f.part("t", 1))
	}
	got, err := f.LoadSession(f.ctx, key)
	ok(t, "LoadSession", err)
	same(t, "LoadSession", got, want)

	// The same name in another tenant is another session.
	theirs := host.SessionKey{Tenant: "them", Session: "s"}
	_, err = f.LoadSession(f.ctx, theirs)
	missing(t, "another tenant's session", err)
	p := f.partOf(theirs, 1)
	p.Data = nil
	f.append(p)
	got, err = f.LoadSession(f.ctx, theirs)
	ok(t, "LoadSession", err)
	if got.Last != 1 || got.WakeAt != host.WakeNever || len(got.Rows) != 1 || len(got.Rows[0]) != 0 {
		t.Errorf("LoadSession = %+v, want one empty row", got)
	}

	// A row of some megabytes, as a large start event makes it.
	p = f.part("s", 1)
	p.Data = slices.Repeat([]byte("0123456789abcdef"), 5<<16)
	f.append(p)
	got, err = f.LoadSession(f.ctx, key)
	ok(t, "LoadSession", err)
	if !slices.Equal(got.Rows[len(got.Rows)-1], p.Data) {
		t.Error("a large row came back changed")
	}
}

// testOwnership: the caller owns the arguments again after the call, and owns the
// results.
func testOwnership(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	r := running("h", "", 10)
	r.Status = host.StatusCompleted
	r.Blocked = &host.Blocked{Code: "c", Message: "m"}
	r.WaitingFor = []host.Waiting{{Step: "s", Type: "A"}}
	result := event(r, 2)
	result.Types = []string{"A", "B"}
	r.Result = &result
	p := f.part("h", 1)
	p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
	row := events(r, 0, 3)
	row.Events[1].Types = []string{"A"}
	p.Stream = []host.StreamRow{row}
	f.append(p)
	before := dump(f)

	p.Data[0] ^= 0xff
	p.Runs[0].Blocked.Code = "changed"
	p.Runs[0].WaitingFor[0].Step = "changed"
	p.Runs[0].Result.Body[1] ^= 0xff
	p.Runs[0].Result.Types[0] = "changed"
	p.Stream[0].Events[1].Body[1] ^= 0xff
	p.Stream[0].Events[1].Types[0] = "changed"
	same(t, "the store after the batch was overwritten", dump(f), before)

	stored, err := f.LoadSession(f.ctx, p.Key)
	ok(t, "LoadSession", err)
	stored.Rows[0][0] ^= 0xff
	h, err := f.Handler(f.ctx, tenant, "h")
	ok(t, "Handler", err)
	h.Run.Result.Body[1] ^= 0xff
	h.Run.Blocked.Code = "changed"
	h.Run.WaitingFor[0].Step = "changed"
	list, _, err := f.Runs(f.ctx, host.RunQuery{Tenant: tenant, Limit: 1})
	ok(t, "Runs", err)
	list[0].Result.Types[0] = "changed"
	stream, err := f.Stream(f.ctx, tenant, "h", -1, 10)
	ok(t, "Stream", err)
	stream[1].Body[1] ^= 0xff
	stream[1].Types[0] = "changed"
	same(t, "the store after its answers were overwritten", dump(f), before)
}

func testDue(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	due := func(until int64, limit int) ([]string, int64) {
		t.Helper()
		keys, next, err := f.Due(f.ctx, until, limit)
		ok(t, "Due", err)
		names := []string{}
		for _, key := range keys {
			names = append(names, key.Session)
		}
		return names, next
	}
	want := func(until int64, limit int, wantNext int64, wantNames ...string) {
		t.Helper()
		names, next := due(until, limit)
		if !slices.Equal(names, wantNames) || next != wantNext {
			t.Errorf("Due(%d, %d) = %q, next %d, want %q, next %d", until, limit, names, next, wantNames, wantNext)
		}
	}
	want(math.MaxInt64, 10, host.WakeNever)

	set := func(session string, at int64) {
		t.Helper()
		p := f.part(session, 1)
		p.WakeAt = at
		f.append(p)
	}
	hour := int64(time.Hour)
	set("never", host.WakeNever)
	set("late", 3*hour)
	set("soon", hour)
	set("now", 0)
	set("later", 2*hour)
	want(0, 10, hour, "now")
	want(hour-1, 10, hour, "now")
	want(hour, 10, 2*hour, "now", "soon")
	want(math.MaxInt64, 10, host.WakeNever, "now", "soon", "later", "late")
	want(2*hour, 2, 3*hour, "now", "soon")
	want(2*hour, 0, 3*hour)

	set("now", host.WakeNever)
	set("never", 90)
	want(hour, 10, 2*hour, "never", "soon")

	// Due covers all tenants.
	p := f.partOf(host.SessionKey{Tenant: "them", Session: "theirs"}, 1)
	p.WakeAt = 80
	f.append(p)
	keys, _, err := f.Due(f.ctx, 85, 10)
	ok(t, "Due", err)
	same(t, "Due", keys, []host.SessionKey{p.Key})
}

// testHistory: the journal is read in pages, a session is loaded from its newest
// snapshot, and a cut removes the rows before a snapshot.
func testHistory(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	ctx := t.Context()
	key := host.SessionKey{Tenant: "t", Session: "s"}
	if _, err := f.History(ctx, key, 9, 0, 10); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("history of no session: %v", err)
	}
	// Rows of two entries each, 1-2, 3-4, ... 19-20; snapshots at 4, 9, 15.
	snapshots := map[int]uint64{3: 4, 9: 9, 15: 15}
	put := func(first int, cut uint64) {
		p := f.partOf(key, 2)
		p.Snapshot, p.Cut = snapshots[first], cut
		if p.First != uint64(first) {
			t.Fatalf("the row begins at %d, want %d", p.First, first)
		}
		f.append(p)
	}
	for first := 1; first < 20; first += 2 {
		put(first, 0)
	}
	firsts := func(position, after uint64, limit int) []uint64 {
		t.Helper()
		rows, err := f.History(ctx, key, position, after, limit)
		ok(t, "History", err)
		out := []uint64{}
		for _, r := range rows {
			if len(r.Data) == 0 {
				t.Errorf("row %d is empty", r.First)
			}
			out = append(out, r.First)
		}
		return out
	}
	loaded := func(want int) {
		t.Helper()
		stored, err := f.LoadSession(ctx, key)
		ok(t, "LoadSession", err)
		same(t, "rows from the newest snapshot", len(stored.Rows), want)
	}
	loaded(3)
	same(t, "from the beginning", firsts(3, 0, 100), []uint64{1, 3, 5, 7, 9, 11, 13, 15, 17, 19})
	same(t, "from the snapshot itself", firsts(4, 0, 2), []uint64{3, 5})
	same(t, "from before a later one", firsts(8, 0, 1), []uint64{3})
	same(t, "from the middle", firsts(14, 0, 3), []uint64{9, 11, 13})
	same(t, "the next page", firsts(14, 13, 3), []uint64{15, 17, 19})
	same(t, "the end", firsts(14, 19, 3), []uint64{})
	same(t, "beyond", firsts(1<<63, 0, 100), []uint64{15, 17, 19})
	put(21, 3)
	same(t, "a cut before any snapshot", firsts(1, 0, 1), []uint64{1})
	put(23, 14)
	same(t, "after a cut", firsts(1, 0, 3), []uint64{9, 11, 13})
	loaded(5)
	for _, bad := range []func(p *host.SessionBatch){
		func(p *host.SessionBatch) { p.Snapshot = p.First - 1 },
		func(p *host.SessionBatch) { p.Snapshot = p.Last + 1 },
		func(p *host.SessionBatch) { p.Cut = p.Last + 1 },
	} {
		p := f.partOf(key, 2)
		bad(&p)
		f.refused(p)
	}
}
