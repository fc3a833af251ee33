package storetest

import (
	"slices"
	"testing"

	"github.com/weftrun/weft/host"
)

// completed returns a run that has ended at a time.
func completed(handler, session string, started, ended int64) host.Run {
	r := running(handler, session, started)
	r.Status, r.Completed, r.Updated = host.StatusCompleted, ended, ended
	return r
}

// ran appends a part in which runs start with three events each. Those that have ended
// end in the same part.
func (f *fixture) ran(session string, runs ...host.Run) {
	f.t.Helper()
	p := f.part(session, 1)
	for _, r := range runs {
		last, _, err := f.StreamEnd(f.ctx, tenant, r.HandlerID)
		if err != nil {
			last = -1
		}
		p.Runs, p.Started = append(p.Runs, r), append(p.Started, r.RunID)
		p.Stream = append(p.Stream, events(r, int(last)+1, 3))
	}
	f.append(p)
}

// drop appends a part that only drops runs.
func (f *fixture) drop(session string, runIDs ...string) {
	f.t.Helper()
	f.append(host.SessionBatch{Key: host.SessionKey{Tenant: tenant, Session: session}, Drop: runIDs})
}

// wantRuns expects some runs to exist and others not.
func (f *fixture) wantRuns(there, gone []host.Run) {
	f.t.Helper()
	for _, r := range there {
		got, err := f.Run(f.ctx, tenant, r.RunID)
		ok(f.t, "Run "+r.RunID, err)
		same(f.t, "Run "+r.RunID, got, r)
	}
	for _, r := range gone {
		_, err := f.Run(f.ctx, tenant, r.RunID)
		missing(f.t, "dropped run "+r.RunID, err)
	}
}

func testEnded(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	all := host.EndedAt{Completed: 1 << 62}
	list := func(q host.EndedQuery) []string {
		t.Helper()
		q.Tenant = tenant
		runs, _, err := f.Ended(f.ctx, q)
		ok(t, "Ended", err)
		ids := []string{}
		for _, r := range runs {
			ids = append(ids, r.HandlerID)
		}
		return ids
	}
	want := func(q host.EndedQuery, ids ...string) {
		t.Helper()
		if got := list(q); !slices.Equal(got, ids) {
			t.Errorf("Ended(%+v) = %q, want %q", q, got, ids)
		}
	}
	want(host.EndedQuery{Until: all, Limit: 10}, []string{}...)
	if tenants, err := f.Tenants(f.ctx); err != nil || len(tenants) != 0 {
		t.Errorf("Tenants = %q, %v, want none", tenants, err)
	}
	_, err := f.EndedBehind(f.ctx, tenant, 0)
	missing(t, "EndedBehind of none", err)

	f.ran("d", completed("d", "", 1, 40))
	f.ran("a", completed("a", "", 2, 20))
	f.ran("c", completed("c", "", 3, 30))
	f.ran("b", completed("b", "", 3, 30))
	f.ran("runs", running("runs", "", 4))
	theirs := completed("theirs", "", 1, 10)
	theirs.Tenant = "them"
	p := f.partOf(host.SessionKey{Tenant: "them", Session: "theirs"}, 1)
	p.Runs, p.Started = []host.Run{theirs}, []string{theirs.RunID}
	f.append(p)

	tenants, err := f.Tenants(f.ctx)
	ok(t, "Tenants", err)
	same(t, "Tenants", tenants, []string{tenant, "them"})
	want(host.EndedQuery{Until: all, Limit: 10}, "a", "b", "c", "d")
	want(host.EndedQuery{Until: all, Limit: 2}, "a", "b")
	want(host.EndedQuery{Until: all, After: host.EndedAt{Completed: 30, RunID: "b@3"}, Limit: 2}, "c", "d")
	want(host.EndedQuery{Until: host.EndedAt{Completed: 30, RunID: "b@3"}, Limit: 10}, "a", "b")
	want(host.EndedQuery{Until: host.EndedAt{Completed: 30}, Limit: 10}, "a")
	for newer, id := range []string{"d@1", "c@3", "b@3", "a@2"} {
		at, err := f.EndedBehind(f.ctx, tenant, newer)
		if err != nil || at.RunID != id {
			t.Errorf("EndedBehind(%d) = %+v, %v, want %s", newer, at, err, id)
		}
	}
	_, err = f.EndedBehind(f.ctx, tenant, 4)
	missing(t, "EndedBehind all", err)
	runs, _, err := f.Ended(f.ctx, host.EndedQuery{Tenant: "them", Until: all, Limit: 1})
	ok(t, "Ended", err)
	same(t, "Ended", runs, []host.EndedRun{{EndedAt: host.EndedAt{Completed: 10, RunID: "theirs@1"}, HandlerID: "theirs", SessionID: "theirs"}})
}

// testDropPrivate: the runs of a private session are dropped one by one, and the session
// with the last of them.
func testDropPrivate(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	one, two, three := completed("h", "", 1, 10), completed("h", "", 2, 20), completed("h", "", 3, 30)
	child := completed("child", "h", 3, 30)
	for _, r := range []host.Run{one, two, three, child} {
		f.ran("h", r)
	}
	f.ran("bystander", completed("bystander", "", 1, 10))

	f.drop("h", two.RunID, two.RunID)
	f.wantRuns([]host.Run{one, three, child}, []host.Run{two})
	stream, err := wholeStream(f.ctx, f, tenant, "h", -1, 2)
	ok(t, "Stream", err)
	if len(stream) != 6 || stream[3].Seq != 6 {
		t.Errorf("the stream has %d events, want those of the other runs", len(stream))
	}
	if last, first, err := f.StreamEnd(f.ctx, tenant, "h"); err != nil || last != 8 || first != 6 {
		t.Errorf("StreamEnd = %d, %d, %v, want 8, 6", last, first, err)
	}
	f.drop("h", one.RunID, three.RunID)
	f.wantRuns([]host.Run{child}, []host.Run{one, two, three})
	_, err = f.Handler(f.ctx, tenant, "h")
	missing(t, "handler without runs", err)
	key := host.SessionKey{Tenant: tenant, Session: "h"}
	_, err = f.LoadSession(f.ctx, key)
	ok(t, "a session that still has a handler", err)
	f.drop("h", child.RunID)
	for range 2 {
		_, err = f.LoadSession(f.ctx, key)
		missing(t, "a session without handlers", err)
		f.drop("h", child.RunID)
	}
	f.wantIDs(host.RunQuery{Tenant: tenant}, "bystander")

	// The names are free again.
	delete(f.last, key)
	f.ran("h", one)
	f.wantRuns([]host.Run{one}, nil)
}

// testDropNamed: a named session and its journal outlive its runs.
func testDropNamed(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	one, two := completed("h", "chat", 1, 10), completed("h", "chat", 2, 20)
	f.ran("chat", one)
	p := f.part("chat", 1) // a part may write and drop
	p.Runs, p.Started, p.Drop = []host.Run{two}, []string{two.RunID}, []string{one.RunID, two.RunID}
	f.append(p)
	f.wantRuns(nil, []host.Run{one, two})
	stored, err := f.LoadSession(f.ctx, p.Key)
	ok(t, "LoadSession", err)
	if stored.Last != 2 || len(stored.Rows) != 2 {
		t.Errorf("LoadSession = %+v, want what it was", stored)
	}
	three := completed("h", "chat", 3, 30)
	f.ran("chat", three)
	if last, first, err := f.StreamEnd(f.ctx, tenant, "h"); err != nil || last != 2 || first != 0 {
		t.Errorf("StreamEnd = %d, %d, %v, want a stream of one run", last, first, err)
	}
}

// testDropNot: a run that must not be dropped stays, without an error.
func testDropNot(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	older, latest := completed("h", "", 1, 10), completed("h", "", 2, 20)
	f.ran("h", older)
	f.ran("h", latest)
	active := running("active", "", 3)
	f.ran("active", active)
	busy := completed("busy", "", 4, 40)
	f.ran("busy", busy)
	p := f.part("busy", 1)
	p.WakeAt = 7 // for example, a message to another session must be carried
	f.append(p)
	foreign := completed("foreign", "chat", 5, 50)
	f.ran("chat", foreign)
	before := dump(f)

	f.drop("h", latest.RunID) // while an older run exists
	f.drop("active", active.RunID)
	f.drop("busy", busy.RunID)
	f.drop("h", foreign.RunID)
	f.drop("h", "unknown")
	f.drop("unknown", older.RunID)
	same(t, "the store after drops of what stays", dump(f), before)

	f.drop("h", latest.RunID, older.RunID) // one at a time: the latest stays, and is the only one now
	f.wantRuns([]host.Run{latest}, []host.Run{older})
	p = f.part("busy", 1)
	p.Drop = []string{busy.RunID}
	f.append(p)
	f.wantRuns(nil, []host.Run{busy})
	_, err := f.LoadSession(f.ctx, p.Key)
	missing(t, "a session that has nothing to do any more", err)
}
