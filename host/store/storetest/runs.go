package storetest

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// testRecords: every field of a run is stored, at its start and after a change.
func testRecords(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	_, err := f.Handler(f.ctx, tenant, "h")
	missing(t, "handler", err)
	_, err = f.Run(f.ctx, tenant, "h@10")
	missing(t, "run", err)

	r := running("h", "session", 10)
	r.ParentRun, r.ParentStep = "parent", "step"
	r.ForkedFrom, r.ForkedAt, r.RetriedFrom = "origin", math.MaxInt64, "before"
	want := func() {
		t.Helper()
		got, err := f.Run(f.ctx, tenant, r.RunID)
		ok(t, "Run", err)
		same(t, "Run", got, r)
		h, err := f.Handler(f.ctx, tenant, "h")
		ok(t, "Handler", err)
		same(t, "Handler", h, host.Handler{HandlerID: "h", SessionID: "session", Workflow: "flow", Run: r})
	}
	change := func() {
		t.Helper()
		p := f.part("session", 1)
		p.Runs = []host.Run{r}
		f.append(p)
		want()
	}
	f.start(r)
	want()

	r.Updated, r.Steps, r.Fuel = 20, 3, math.MaxUint64
	r.Paused = true
	r.Version = "4567cdef"
	r.Blocked = &host.Blocked{Code: host.BlockedReplayMismatch, Message: "call 3 was state_get, is random"}
	change()
	r.Paused = false
	r.Blocked = &host.Blocked{}
	change()
	r.Blocked = nil
	r.WaitingFor = []host.Waiting{{Step: "s", Type: "Answer", WaiterID: "boss", Since: 7}, {Step: "t", Type: "Answer", Since: 8}}
	change()
	r.WaitingFor[0].Requirements = `{"role":"boss"}`
	r.Kept = []host.Kept{{Type: "Note"}, {Type: "Note", Step: "s"}}
	change()
	r.WaitingFor = nil
	change()
	r.Kept = nil
	r.Status, r.Completed = host.StatusFailed, 30
	r.Error, r.ErrorCode = "it broke: \x00 \u00fc \U0001f9f5", host.RunTrap
	r.ErrorStep, r.ErrorAttempt = "s", 3
	change()
	r.Status, r.Error, r.ErrorCode, r.ErrorStep, r.ErrorAttempt = host.StatusCompleted, "", "", "", 0
	r.Result = &host.StreamEvent{
		Seq: math.MaxInt64, RunID: r.RunID, Type: "Stop", Types: []string{"End", "Base"}, Base: true,
		Internal: true, Terminal: true, Body: abi.EmptyMap, Workflow: "flow",
	}
	change()
	r.Result = nil
	change()

	_, err = f.Handler(f.ctx, "them", "h")
	missing(t, "another tenant's handler", err)
	_, err = f.Run(f.ctx, "them", r.RunID)
	missing(t, "another tenant's run", err)
	_, err = f.Run(f.ctx, tenant, "h")
	missing(t, "a handler id as a run id", err)
}

// testRestart: a handler points to its latest run. Older runs can still be read and
// changed.
func testRestart(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	first := running("h", "", 10)
	f.start(first)
	first.Status = host.StatusCompleted
	second := running("h", "", 5) // the order of starts counts, not the clock
	second.Workflow = "other"
	p := f.part("h", 1)
	p.Runs, p.Started = []host.Run{second, first}, []string{second.RunID}
	f.append(p)

	latest := func(want host.Run) {
		t.Helper()
		h, err := f.Handler(f.ctx, tenant, "h")
		ok(t, "Handler", err)
		same(t, "the latest run", h.Run, want)
		if h.Workflow != want.Workflow {
			t.Errorf("workflow = %s, want %s", h.Workflow, want.Workflow)
		}
		runs, _, err := f.Runs(f.ctx, host.RunQuery{Tenant: tenant, Limit: 10})
		ok(t, "Runs", err)
		same(t, "Runs", runs, []host.Run{want})
	}
	latest(second)
	got, err := f.Run(f.ctx, tenant, first.RunID)
	ok(t, "Run", err)
	same(t, "the older run", got, first)

	first.Updated = 99
	p = f.part("h", 1)
	p.Runs = []host.Run{first}
	f.append(p)
	latest(second)

	// With two starts in one batch, the order in Started decides.
	third, fourth := running("h", "", 30), running("h", "", 20)
	p = f.part("h", 1)
	p.Runs, p.Started = []host.Run{fourth, third}, []string{third.RunID, fourth.RunID}
	f.append(p)
	latest(fourth)
}

func testList(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	q := host.RunQuery{Tenant: tenant}
	f.wantIDs(q)
	f.start(running("b", "", 20))
	f.start(running("a", "", 20))
	f.start(running("c", "", 20))
	f.start(running("old", "", 10))
	f.start(running("B", "", 20)) // ids compare by bytes
	f.start(running("new", "", 30))
	theirs := running("theirs", "", 25)
	theirs.Tenant = "them"
	f.start(theirs)
	f.wantIDs(q, "new", "c", "b", "a", "B", "old")
	f.wantIDs(host.RunQuery{Tenant: "them"}, "theirs")
	f.wantIDs(host.RunQuery{Tenant: "nobody"})

	after := q
	after.AfterStarted, after.AfterHandler = 20, "b"
	f.wantIDs(after, "a", "B", "old")
	after.AfterHandler = "bb" // a position may name a handler that does not exist
	f.wantIDs(after, "b", "a", "B", "old")
	after.AfterStarted, after.AfterHandler = 10, "old"
	f.wantIDs(after)

	// A new run moves its handler to the top.
	again := running("old", "", 40)
	f.start(again)
	f.wantIDs(q, "old", "new", "c", "b", "a", "B")
}

func testListFilters(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	for i, c := range []struct {
		handler, session, workflow string
		status                     host.Status
		updated                    int64
		blocked                    bool
	}{
		{"h0", "", "flow", host.StatusRunning, 100, false},
		{"h1", "", "flow", host.StatusCompleted, 20, false},
		{"h2", "chat", "flow", host.StatusFailed, 30, false},
		{"h3", "chat", "talk", host.StatusRunning, 40, true},
		{"h4", "h1", "talk", host.StatusCancelled, 50, false},
		{"h5", "chat", "talk", host.StatusCompleted, 50, false},
		{"h6", "", "third", host.StatusRunning, 60, true},
	} {
		r := running(c.handler, c.session, int64(10+i))
		r.Workflow, r.Status, r.Updated = c.workflow, c.status, c.updated
		r.Version = fmt.Sprintf("%s-%d", c.workflow, i%2) // of digests
		if c.status == host.StatusFailed || c.status == host.StatusCancelled {
			r.ErrorCode = "was_" + string(c.status)
		}
		if c.blocked {
			r.Blocked = &host.Blocked{Code: host.BlockedHostCrash}
		}
		f.start(r)
	}
	for _, test := range []struct {
		query host.RunQuery
		want  []string
	}{
		{host.RunQuery{Statuses: []string{"running"}}, []string{"h6", "h3", "h0"}},
		{host.RunQuery{Statuses: []string{"failed", "completed", "failed"}}, []string{"h5", "h2", "h1"}},
		{host.RunQuery{Statuses: []string{"nonsense"}}, nil},
		{host.RunQuery{Statuses: []string{"nonsense", "cancelled"}}, []string{"h4"}},
		{host.RunQuery{Statuses: []string{"running", "failed", "completed", "cancelled", "a", "b", "c", "d", "e"}},
			[]string{"h6", "h5", "h4", "h3", "h2", "h1", "h0"}},
		{host.RunQuery{Workflows: []string{"talk"}}, []string{"h5", "h4", "h3"}},
		{host.RunQuery{Workflows: []string{"talk", "third", "talk"}}, []string{"h6", "h5", "h4", "h3"}},
		{host.RunQuery{Workflows: []string{"talk", "flow"}, Statuses: []string{"running", "failed"}}, []string{"h3", "h2", "h0"}},
		{host.RunQuery{ErrorCode: "was_failed"}, []string{"h2"}},
		{host.RunQuery{ErrorCode: "was_cancelled", Workflows: []string{"flow", "talk"}}, []string{"h4"}},
		{host.RunQuery{ErrorCode: "was_failed", Statuses: []string{"completed"}}, nil},
		{host.RunQuery{Version: "talk-"}, []string{"h5", "h4", "h3"}},
		{host.RunQuery{Version: "talk-1"}, []string{"h5", "h3"}},
		{host.RunQuery{Version: "talk-1", Statuses: []string{"running"}, Workflows: []string{"flow", "talk"}}, []string{"h3"}},
		{host.RunQuery{Version: "alk-1"}, nil},
		{host.RunQuery{Session: "chat"}, []string{"h5", "h3", "h2"}},
		{host.RunQuery{Session: "h1"}, []string{"h4", "h1"}},
		{host.RunQuery{Session: "h6"}, []string{"h6"}},
		{host.RunQuery{Session: "unknown"}, nil},
		{host.RunQuery{Session: "chat", Statuses: []string{"completed"}, Workflows: []string{"talk"}}, []string{"h5"}},
		{host.RunQuery{Since: 50}, []string{"h6", "h5", "h4", "h0"}},
		{host.RunQuery{Since: 50, Workflows: []string{"talk", "flow"}}, []string{"h5", "h4", "h0"}},
		{host.RunQuery{Since: 101}, nil},
		{host.RunQuery{Blocked: true}, []string{"h6", "h3"}},
		{host.RunQuery{Blocked: true, Session: "chat"}, []string{"h3"}},
		{host.RunQuery{Blocked: true, Workflows: []string{"third"}, Statuses: []string{"running"}}, []string{"h6"}},
		{host.RunQuery{Blocked: true, Statuses: []string{"failed"}}, nil},
		{host.RunQuery{AfterStarted: 14, AfterHandler: "h4", Statuses: []string{"running", "failed"}}, []string{"h3", "h2", "h0"}},
	} {
		test.query.Tenant = tenant
		f.wantIDs(test.query, test.want...)
		test.query.Tenant = "them"
		f.wantIDs(test.query)
	}

	// Filters look only at the latest run.
	again := running("h2", "chat", 90)
	again.Workflow = "talk"
	f.start(again)
	f.wantIDs(host.RunQuery{Tenant: tenant, Statuses: []string{"failed"}})
	f.wantIDs(host.RunQuery{Tenant: tenant, Workflows: []string{"flow"}}, "h1", "h0")

	// A run that is unblocked or ends leaves its list.
	r, err := f.Run(f.ctx, tenant, "h6@16")
	ok(t, "Run", err)
	r.Blocked, r.Status = nil, host.StatusCompleted
	p := f.part("h6", 1)
	p.Runs = []host.Run{r}
	f.append(p)
	f.wantIDs(host.RunQuery{Tenant: tenant, Blocked: true}, "h3")
	f.wantIDs(host.RunQuery{Tenant: tenant, Statuses: []string{"completed"}}, "h6", "h5", "h1")
}

// testListWhileStarting: pages that are read while runs start and end show each run that
// exists all the time exactly once.
func testListWhileStarting(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	const n = 30
	for i := range n {
		f.start(running(fmt.Sprintf("h%02d", i), "", int64(100+i/3)))
	}
	q := host.RunQuery{Tenant: tenant, Limit: 4}
	seen := map[string]int{}
	for round := 0; ; round++ {
		page, _, err := f.Runs(f.ctx, q)
		ok(t, "Runs", err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			seen[r.HandlerID]++
		}
		end := page[len(page)-1]
		q.AfterStarted, q.AfterHandler = end.Started, end.HandlerID
		f.start(running(fmt.Sprintf("new%d", round), "", int64(1000+round)))
		purged := f.part(end.HandlerID, 1)
		purged.Purge = []string{end.HandlerID}
		f.append(purged)
		delete(f.last, purged.Key)
	}
	for i := range n {
		if id := fmt.Sprintf("h%02d", i); seen[id] != 1 {
			t.Errorf("%s was listed %d times", id, seen[id])
		}
	}
	if len(seen) != n {
		t.Errorf("%d runs were listed, want %d", len(seen), n)
	}
}

func testCountRuns(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	want := func(tenant string, want ...host.VersionRuns) {
		t.Helper()
		got, err := f.CountRuns(f.ctx, tenant)
		ok(t, "CountRuns", err)
		if len(got)+len(want) > 0 {
			same(t, "CountRuns", got, want)
		}
	}
	run := func(i int) host.Run {
		r := running(fmt.Sprintf("h%d", i), "", 10)
		r.Version = "v" + strconv.Itoa(i%2)
		if i > 2 {
			r.Workflow, r.Version = "talk", ""
		}
		return r
	}
	want(tenant)
	for i := range 5 {
		f.start(run(i))
	}
	want(tenant, host.VersionRuns{Workflow: "flow", Version: "v0", Runs: 2}, host.VersionRuns{Workflow: "flow", Version: "v1", Runs: 1},
		host.VersionRuns{Workflow: "talk", Runs: 2})
	want("them")
	for i := range 4 {
		r := run(i)
		r.Status = host.StatusCancelled
		p := f.part(r.SessionID, 1)
		p.Runs = []host.Run{r}
		f.append(p)
	}
	want(tenant, host.VersionRuns{Workflow: "talk", Runs: 1})
}
