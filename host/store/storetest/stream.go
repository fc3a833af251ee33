package storetest

import (
	"bytes"
	"math"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// streamed opens a store with a handler whose stream holds 12 events of two
// runs in five rows: 0-2, 3, 4-7 | 8-9, 10-11.
func streamed(t *testing.T, open func(t *testing.T) host.Store) (f *fixture, all []host.StreamEvent) {
	f = claimed(t, open)
	first, second := running("h", "s", 10), running("h", "s", 20)
	add := func(p host.SessionBatch, rows ...host.StreamRow) {
		p.Stream = rows
		f.append(p)
		for _, row := range rows {
			all = append(all, row.Events...)
		}
	}
	p := f.part("s", 1)
	p.Runs, p.Started = []host.Run{first}, []string{first.RunID}
	add(p, events(first, 0, 3))
	p = f.part("s", 1)
	add(p, events(first, 3, 1), events(first, 4, 4))
	p = f.part("s", 1)
	p.Runs, p.Started = []host.Run{second}, []string{second.RunID}
	add(p, events(second, 8, 2))
	full := events(second, 10, 2)
	full.Events[1].Types, full.Events[1].Base = []string{"A", "B"}, true
	full.Events[1].Internal, full.Events[1].Terminal = true, true
	p = f.part("s", 1)
	add(p, full)
	return f, all
}

func testStream(t *testing.T, open func(t *testing.T) host.Store) {
	f, all := streamed(t, open)
	for after := int64(-1); after <= 13; after++ {
		want := all[min(after+1, int64(len(all))):]
		for _, limit := range []int{1, 2, 3, 100, math.MaxInt32} {
			got, err := wholeStream(f.ctx, f, tenant, "h", after, limit)
			ok(t, "Stream", err)
			if len(got)+len(want) > 0 {
				same(t, "Stream", got, want)
			}
		}
		page, err := f.Stream(f.ctx, tenant, "h", after, 1)
		ok(t, "Stream", err)
		if len(page) > 4 {
			t.Errorf("Stream after %d with limit 1 = %d events, more than the longest row", after, len(page))
		}
	}
	_, err := f.Stream(f.ctx, tenant, "x", -1, 10)
	missing(t, "an unknown handler's stream", err)
	_, err = f.Stream(f.ctx, "them", "h", -1, 10)
	missing(t, "another tenant's stream", err)

	f.start(running("silent", "", 10))
	got, err := f.Stream(f.ctx, tenant, "silent", -1, 10)
	if err != nil || len(got) != 0 {
		t.Errorf("Stream of a handler without events = %v, %v, want none", got, err)
	}
}

// testStreamOfManyEvents: one row with very many events does not make a page with very
// many events.
func testStreamOfManyEvents(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	r := running("h", "", 10)
	const n = 3000
	p := f.part("h", 1)
	p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
	p.Stream = []host.StreamRow{events(r, 0, n)}
	f.append(p)
	page, err := f.Stream(f.ctx, tenant, "h", 9, 100)
	ok(t, "Stream", err)
	if len(page) < 1 || len(page) > 600 || page[0].Seq != 10 {
		t.Errorf("a page of %d events, limit 100", len(page))
	}
	got, err := wholeStream(f.ctx, f, tenant, "h", -1, 100)
	ok(t, "Stream", err)
	same(t, "the whole stream", got, p.Stream[0].Events)
	if last, first, err := f.StreamEnd(f.ctx, tenant, "h"); err != nil || last != n-1 || first != 0 {
		t.Errorf("StreamEnd = %d, %d, %v", last, first, err)
	}
}

// testStreamOfLargeEvents: large events come in smaller pages, and none is lost.
func testStreamOfLargeEvents(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	r := running("h", "", 10)
	body, err := abi.EncodeValue(map[string]any{"data": bytes.Repeat([]byte("x"), 3<<20)})
	ok(t, "EncodeValue", err)
	row := events(r, 0, 5)
	for i := range row.Events {
		row.Events[i].Body = body
	}
	p := f.part("h", 1)
	p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
	p.Stream = []host.StreamRow{row}
	f.append(p)
	got, err := wholeStream(f.ctx, f, tenant, "h", -1, 1000)
	ok(t, "Stream", err)
	if len(got) != len(row.Events) {
		t.Fatalf("%d events, want %d", len(got), len(row.Events))
	}
	for i := range got {
		if got[i].Seq != uint64(i) || !bytes.Equal(got[i].Body, body) {
			t.Errorf("event %d came back changed", i)
		}
	}
}

func testStreamEnd(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	want := func(wantLast, wantFirst int64) {
		t.Helper()
		last, first, err := f.StreamEnd(f.ctx, tenant, "h")
		ok(t, "StreamEnd", err)
		if last != wantLast || first != wantFirst {
			t.Errorf("StreamEnd = %d, %d, want %d, %d", last, first, wantLast, wantFirst)
		}
	}
	_, _, err := f.StreamEnd(f.ctx, tenant, "h")
	missing(t, "an unknown handler's end", err)

	write := func(started []host.Run, rows ...host.StreamRow) {
		t.Helper()
		p := f.part("s", 1)
		p.Runs, p.Stream = started, rows
		for _, r := range started {
			p.Started = append(p.Started, r.RunID)
		}
		f.append(p)
	}
	a, b, c, d := running("h", "s", 10), running("h", "s", 20), running("h", "s", 30), running("h", "s", 40)
	e, g := running("h", "s", 50), running("h", "s", 60)
	write([]host.Run{a})
	want(-1, 0) // the first event does not exist yet
	write(nil, events(a, 0, 2))
	want(1, 0)
	write([]host.Run{b})
	want(1, 2)
	write(nil, events(b, 2, 1))
	want(2, 2)
	write([]host.Run{c}, events(b, 3, 2), events(c, 5, 2)) // the old run's last events come first
	want(6, 5)
	write([]host.Run{d}, events(c, 7, 1)) // the new run has no events yet
	want(7, 8)
	write([]host.Run{e, g}, events(g, 8, 1)) // two starts, the first without events
	want(8, 8)
	f.start(running("other", "s", 70))
	want(8, 8)
}

func testPurgePrivate(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	older, r := running("h", "", 5), running("h", "", 10)
	child := running("child", "h", 11)
	f.start(older)
	p := f.part("h", 1)
	p.Runs, p.Started = []host.Run{r, child}, []string{r.RunID, child.RunID}
	p.Stream = []host.StreamRow{events(r, 0, 3), events(child, 0, 2)}
	p.WakeAt = 5
	f.append(p)
	f.start(running("bystander", "", 12))
	further := f.part("h", 1) // a part that starts nothing leaves the session private
	further.WakeAt = 5
	f.append(further)

	f.append(host.SessionBatch{Key: p.Key, Purge: []string{"h"}})
	_, err := f.Handler(f.ctx, tenant, "h")
	missing(t, "purged handler", err)
	for _, run := range []string{older.RunID, r.RunID} {
		_, err = f.Run(f.ctx, tenant, run)
		missing(t, "run of a purged handler", err)
	}
	_, err = f.Stream(f.ctx, tenant, "h", -1, 10)
	missing(t, "stream of a purged handler", err)
	f.wantIDs(host.RunQuery{Tenant: tenant}, "bystander", "child")
	// The child is still there, and so is the session.
	stored, err := f.LoadSession(f.ctx, p.Key)
	ok(t, "LoadSession", err)
	if stored.Last != 3 || stored.WakeAt != 5 {
		t.Errorf("LoadSession = %+v, want what it was", stored)
	}
	got, err := wholeStream(f.ctx, f, tenant, "child", -1, 10)
	ok(t, "Stream", err)
	if len(got) != 2 {
		t.Errorf("the child's stream has %d events, want 2", len(got))
	}

	// The session is deleted with its last handler. Deleting again is not an error.
	for range 2 {
		f.append(host.SessionBatch{Key: p.Key, Purge: []string{"child", "unknown"}})
		_, err = f.LoadSession(f.ctx, p.Key)
		missing(t, "private session without handlers", err)
	}
	if due, next, err := f.Due(f.ctx, math.MaxInt64, 10); err != nil || len(due) != 0 || next != host.WakeNever {
		t.Errorf("Due = %v, %d, %v, want nothing", due, next, err)
	}
	counts, err := f.CountRuns(f.ctx, tenant)
	ok(t, "CountRuns", err)
	same(t, "CountRuns", counts, []host.VersionRuns{{Workflow: "flow", Version: r.Version, Runs: 1}})

	// The names are free again.
	delete(f.last, p.Key)
	f.start(r)
	if last, first, err := f.StreamEnd(f.ctx, tenant, "h"); err != nil || last != -1 || first != 0 {
		t.Errorf("StreamEnd = %d, %d, %v, want an empty stream", last, first, err)
	}
}

// testPurgeNamed: a named session outlives its handlers, and a session cannot purge
// another session's handlers.
func testPurgeNamed(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	f.start(running("a", "chat", 10))
	f.start(running("b", "chat", 11))
	f.start(running("other", "", 12))
	chat := host.SessionKey{Tenant: tenant, Session: "chat"}
	f.append(host.SessionBatch{Key: chat, Purge: []string{"a", "other"}})
	f.wantIDs(host.RunQuery{Tenant: tenant}, "other", "b")
	f.append(host.SessionBatch{Key: host.SessionKey{Tenant: "them", Session: "chat"}, Purge: []string{"b"}})
	f.wantIDs(host.RunQuery{Tenant: tenant}, "other", "b")
	f.append(host.SessionBatch{Key: chat, Purge: []string{"b", "b"}})
	stored, err := f.LoadSession(f.ctx, chat)
	ok(t, "LoadSession", err)
	if stored.Last != 2 || len(stored.Rows) != 2 {
		t.Errorf("LoadSession = %+v, want the journal as it was", stored)
	}
	f.start(running("a", "chat", 20))
	f.wantIDs(host.RunQuery{Tenant: tenant, Session: "chat"}, "a")
}

// testPurgeInItsBatch: a part may write and purge, in this order. Later parts of the
// batch begin the handler again.
func testPurgeInItsBatch(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	r := running("h", "", 10)
	p := f.part("h", 2)
	p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
	p.Stream = []host.StreamRow{events(r, 0, 3)}
	p.Purge = []string{"h"}
	anew := f.part("h", 1)
	anew.Runs, anew.Started = p.Runs, p.Started
	f.append(p, anew)
	stored, err := f.LoadSession(f.ctx, p.Key)
	ok(t, "LoadSession", err)
	same(t, "LoadSession", stored, host.StoredSession{Last: 1, Rows: [][]byte{anew.Data}, WakeAt: host.WakeNever})
	got, err := f.Stream(f.ctx, tenant, "h", -1, 10)
	if err != nil || len(got) != 0 {
		t.Errorf("Stream = %v, %v, want an empty one", got, err)
	}
}
