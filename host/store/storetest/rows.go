package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// wantRows compares the run ids of a query's rows, walked in pages of two in both
// directions, with those expected.
func (f *fixture) wantRows(q host.RowQuery, want ...string) {
	f.t.Helper()
	q.Tenant, q.Limit = tenant, 2
	var forth, back []string
	var last *host.RowPlace
	for more := true; more; {
		var page []host.RunRow
		var err error
		page, more, err = f.Rows(f.ctx, q)
		ok(f.t, "Rows", err)
		for i := range page {
			forth = append(forth, page[i].RunID)
			last = &host.RowPlace{Started: page[i].Started, RunID: page[i].RunID}
		}
		if q.From = last; len(page) == 0 && more {
			f.t.Fatalf("Rows(%+v): an empty page says that others follow", q)
		}
	}
	if fmt.Sprint(forth) != fmt.Sprint(want) {
		f.t.Errorf("Rows(%+v) = %v, want %v", q, forth, want)
	}
	if last == nil {
		return
	}
	q.Back = true
	back = append(back, last.RunID)
	for more := true; more; {
		var page []host.RunRow
		var err error
		page, more, err = f.Rows(f.ctx, q)
		ok(f.t, "Rows", err)
		for i := len(page) - 1; i >= 0; i-- {
			back = append(back, page[i].RunID)
		}
		if len(page) > 0 {
			q.From = &host.RowPlace{Started: page[0].Started, RunID: page[0].RunID}
		}
	}
	slices.Reverse(back)
	if fmt.Sprint(back) != fmt.Sprint(want) {
		f.t.Errorf("Rows(%+v) = %v, want %v", q, back, want)
	}
}

// testRows: all runs are listed, with their phases, by every filter and in both directions.
func testRows(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	f.wantRows(host.RowQuery{})
	id := func(handler string, started int64) string { return fmt.Sprintf("%s@%d", handler, started) }
	put := func(handler, session string, started int64, change func(r *host.Run)) {
		r := running(handler, session, started)
		if change != nil {
			change(&r)
		}
		f.start(r)
	}
	ended := func(status host.Status, code string) func(r *host.Run) {
		return func(r *host.Run) {
			r.Status, r.Completed, r.ErrorCode, r.Updated = status, r.Started+5, code, r.Started+5
		}
	}
	put("alpha", "", 10, ended(host.StatusFailed, "lost"))
	put("alpha", "", 20, nil) // the earlier run of the handler is listed, too
	put("beta", "chat", 20, func(r *host.Run) {
		r.Workflow, r.Version = "talk", "talk-1"
		r.WaitingFor = []host.Waiting{{Step: "s", Until: 99, Since: 1}, {Step: "t", Type: "Answer", Since: 2}}
	})
	put("gamma", "chat", 30, func(r *host.Run) { r.WaitingFor = []host.Waiting{{Reason: host.WaitsForTurn, Since: 3}} })
	put("delta", "", 40, func(r *host.Run) { r.WaitingFor = []host.Waiting{{Step: "s", Until: 99, Since: 1}} })
	put("child", "", 50, func(r *host.Run) { r.ParentRun, r.ParentStep = id("delta", 40), "s" })
	put("epsilon", "", 60, func(r *host.Run) { r.Paused = true })
	put("zeta", "", 70, func(r *host.Run) {
		r.Blocked, r.Paused = &host.Blocked{Code: host.BlockedHostCrash}, true
		r.ForkedFrom, r.ForkedAt = id("alpha", 10), 7
	})
	put("eta", "", 80, func(r *host.Run) {
		ended(host.StatusCompleted, "")(r)
		r.RetriedFrom = id("alpha", 10)
		r.Result = &host.StreamEvent{Type: "Stop", RunID: r.RunID, Body: encoded(t, strings.Repeat("x", host.MaxRowResult))}
	})
	theirs := running("theirs", "", 65)
	theirs.Tenant = "them"
	f.start(theirs)

	all := []string{"eta@80", "zeta@70", "epsilon@60", "delta@40", "gamma@30", "beta@20", "alpha@20", "alpha@10"}
	lost, err := search.Parse("lost")
	ok(t, "Parse", err)
	for _, test := range []struct {
		query host.RowQuery
		want  []string
	}{
		{host.RowQuery{}, all},
		{host.RowQuery{Children: true}, slices.Insert(slices.Clone(all), 3, "child@50")},
		{host.RowQuery{Phases: []host.Phase{host.PhaseRunning}}, []string{"alpha@20"}},
		{host.RowQuery{Phases: []host.Phase{host.PhaseRunning}, Children: true}, []string{"child@50", "alpha@20"}},
		{host.RowQuery{Phases: []host.Phase{host.PhaseWaiting}}, []string{"beta@20"}},
		{host.RowQuery{Phases: []host.Phase{host.PhaseSleeping, host.PhaseQueued, host.PhaseQueued}}, []string{"delta@40", "gamma@30"}},
		{host.RowQuery{Phases: []host.Phase{host.PhasePaused, host.PhaseBlocked}}, []string{"zeta@70", "epsilon@60"}},
		{host.RowQuery{Phases: []host.Phase{"completed", "failed", "cancelled"}}, []string{"eta@80", "alpha@10"}},
		{host.RowQuery{Phases: host.Phases}, all},
		{host.RowQuery{Phases: []host.Phase{"nonsense"}}, nil},
		{host.RowQuery{Workflows: []string{"talk", "none"}}, []string{"beta@20"}},
		{host.RowQuery{Workflows: []string{"flow"}, Phases: []host.Phase{host.PhaseRunning, host.PhaseWaiting}}, []string{"alpha@20"}},
		{host.RowQuery{Handler: "alpha"}, []string{"alpha@20", "alpha@10"}},
		{host.RowQuery{Handler: "alpha", Phases: []host.Phase{"failed"}}, []string{"alpha@10"}},
		{host.RowQuery{Handler: "child"}, []string{"child@50"}},
		{host.RowQuery{Handler: "theirs"}, nil},
		{host.RowQuery{Session: "chat"}, []string{"gamma@30", "beta@20"}},
		{host.RowQuery{Session: "alpha"}, []string{"alpha@20", "alpha@10"}},
		{host.RowQuery{Session: "chat", Phases: []host.Phase{host.PhaseQueued}}, []string{"gamma@30"}},
		{host.RowQuery{Parent: id("delta", 40)}, []string{"child@50"}},
		{host.RowQuery{Parent: "delta"}, nil},
		{host.RowQuery{ForkedFrom: id("alpha", 10)}, []string{"zeta@70"}},
		{host.RowQuery{ID: "alp"}, []string{"alpha@20", "alpha@10"}},
		{host.RowQuery{ID: "alpha@1"}, []string{"alpha@10"}},
		{host.RowQuery{ID: "chi"}, []string{"child@50"}},
		{host.RowQuery{ID: "lpha"}, nil},
		{host.RowQuery{Version: "talk-"}, []string{"beta@20"}},
		{host.RowQuery{ErrorCode: "lost"}, []string{"alpha@10"}},
		{host.RowQuery{Search: lost}, []string{"alpha@10"}},
		{host.RowQuery{Search: lost, Phases: []host.Phase{"completed"}}, nil},
		{host.RowQuery{Since: 70}, []string{"eta@80", "zeta@70"}},
		{host.RowQuery{Since: 20, Until: 40}, []string{"gamma@30", "beta@20", "alpha@20"}},
		{host.RowQuery{StartedAfter: 20, StartedBefore: 40}, []string{"gamma@30", "beta@20", "alpha@20"}},
	} {
		f.wantRows(test.query, test.want...)
	}

	page, _, err := f.Rows(f.ctx, host.RowQuery{Tenant: tenant, Limit: 2})
	ok(t, "Rows", err)
	if !page[0].LongResult || page[0].Result != nil || page[0].RetriedFrom != "alpha@10" || page[0].Phase != "completed" {
		t.Errorf("the row of a long result: %+v", page[0])
	}
	if page[1].LongResult || page[1].ForkedAt != 7 || page[1].Phase != host.PhaseBlocked {
		t.Errorf("the row of a fork: %+v", page[1])
	}

	// A change moves a run to the list of its new phase.
	r, err := f.Run(f.ctx, tenant, "delta@40")
	ok(t, "Run", err)
	r.WaitingFor = nil
	p := f.part("delta", 1)
	p.Runs = []host.Run{r}
	f.append(p)
	f.wantRows(host.RowQuery{Phases: []host.Phase{host.PhaseSleeping}})
	f.wantRows(host.RowQuery{Phases: []host.Phase{host.PhaseRunning}}, "delta@40", "alpha@20")
}

// recount counts the runs of a tenant one by one.
func recount(ctx context.Context, s host.Store, tenant string) (counts []host.RunCount, err error) {
	q := host.RowQuery{Tenant: tenant, Children: true, Limit: host.MaxListed}
	for more := true; more; {
		var rows []host.RunRow
		if rows, more, err = s.Rows(ctx, q); err != nil {
			return nil, err
		}
		for i := range rows {
			r := &rows[i]
			q.From = &host.RowPlace{Started: r.Started, RunID: r.RunID}
			at := slices.IndexFunc(counts, func(n host.RunCount) bool { return n.Workflow == r.Workflow && n.Phase == r.Phase })
			if at < 0 {
				at = len(counts)
				counts = append(counts, host.RunCount{Workflow: r.Workflow, Phase: r.Phase})
			}
			if counts[at].Runs++; r.ParentRun != "" {
				counts[at].Children++
			}
		}
	}
	slices.SortFunc(counts, func(a, b host.RunCount) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), strings.Compare(string(a.Phase), string(b.Phase)))
	})
	return counts, nil
}

// testRunCounts: counts follow every start, change and deletion of runs.
func testRunCounts(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	want := func(what string, want ...host.RunCount) {
		t.Helper()
		got, err := f.RunCounts(f.ctx, tenant)
		ok(t, "RunCounts", err)
		if again, err := recount(f.ctx, f.Store, tenant); err != nil || !slices.Equal(got, again) {
			t.Errorf("%s: RunCounts = %+v, a recount is %+v, %v", what, got, again, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: RunCounts = %+v, want %+v", what, got, want)
		}
	}
	want("no runs")
	for i := range 3 {
		r := running(fmt.Sprintf("h%d", i), "", int64(10+i))
		if i == 2 {
			r.ParentRun = "h0@10"
		}
		f.start(r)
	}
	theirs := running("theirs", "", 10)
	theirs.Tenant = "them"
	f.start(theirs)
	want("three", host.RunCount{Workflow: "flow", Phase: host.PhaseRunning, Runs: 3, Children: 1})

	change := func(id, session string, change func(r *host.Run)) {
		t.Helper()
		r, err := f.Run(f.ctx, tenant, id)
		ok(t, "Run", err)
		change(&r)
		p := f.part(session, 1)
		p.Runs = []host.Run{r}
		f.append(p)
	}
	change("h2@12", "h2", func(r *host.Run) { r.Steps++ })
	change("h2@12", "h2", func(r *host.Run) { r.Paused = true })
	change("h1@11", "h1", func(r *host.Run) { r.Status, r.Completed = host.StatusFailed, 20 })
	want("changed", host.RunCount{Workflow: "flow", Phase: "failed", Runs: 1}, host.RunCount{Workflow: "flow", Phase: host.PhasePaused, Runs: 1, Children: 1},
		host.RunCount{Workflow: "flow", Phase: host.PhaseRunning, Runs: 1})

	f.start(running("h1", "", 30)) // another run of the handler
	refused := f.part("h0", 1)
	refused.Runs, refused.Started = []host.Run{running("h0", "", 10)}, []string{"h0@10"}
	if f.try(refused) == nil {
		t.Error("a run began twice")
	}
	want("another", host.RunCount{Workflow: "flow", Phase: "failed", Runs: 1}, host.RunCount{Workflow: "flow", Phase: host.PhasePaused, Runs: 1, Children: 1},
		host.RunCount{Workflow: "flow", Phase: host.PhaseRunning, Runs: 2})
	drop := f.part("h1", 1)
	drop.Drop = []string{"h1@11"}
	f.append(drop)
	purge := f.part("h2", 1)
	purge.Purge = []string{"h2"}
	f.append(purge)
	want("deleted", host.RunCount{Workflow: "flow", Phase: host.PhaseRunning, Runs: 2})
	for more := true; more; {
		var err error
		more, err = f.ClearTenant(f.ctx, tenant, 1)
		ok(t, "ClearTenant", err)
	}
	want("cleared")
}

func encoded(t *testing.T, v any) abi.Raw {
	t.Helper()
	data, err := abi.Marshal(v)
	ok(t, "Marshal", err)
	return data
}

// rows compares lists of rows.
func (p *pair) rows() {
	q := host.RowQuery{
		Tenant:    drawTenant.Draw(p.rt, "tenant"),
		Workflows: rapid.SliceOfN(drawFlow, 0, 2).Draw(p.rt, "workflows"),
		Version:   rapid.SampledFrom([]string{"", "", "v1", "x"}).Draw(p.rt, "version"),
		Phases:    rapid.SliceOfN(rapid.SampledFrom(host.Phases), 0, 3).Draw(p.rt, "phases"),
		Since:     rapid.Int64Range(0, 4).Draw(p.rt, "since"),
		Children:  rapid.Bool().Draw(p.rt, "children"),
		Limit:     rapid.IntRange(1, 5).Draw(p.rt, "limit"),
	}
	switch rapid.IntRange(0, 9).Draw(p.rt, "of") {
	case 0:
		q.Session = drawName.Draw(p.rt, "session")
	case 1:
		q.Handler = drawName.Draw(p.rt, "handler")
	case 2:
		q.ID = rapid.SampledFrom([]string{"a", "a1", "run00", "run001"}).Draw(p.rt, "id")
	case 3:
		q.Parent = "run001"
	case 4:
		q.ForkedFrom = "run002"
	}
	if sometimes.Draw(p.rt, "further") {
		q.From = &host.RowPlace{Started: drawInstant.Draw(p.rt, "from"), RunID: "run003"}
		q.Back = rapid.Bool().Draw(p.rt, "back")
	}
	counts := ask(p, "RunCounts", func(s host.Store) ([]host.RunCount, error) { return s.RunCounts(p.ctx, q.Tenant) })
	if again, err := recount(p.ctx, p.one, q.Tenant); err != nil || !slices.Equal(counts, again) {
		p.rt.Fatalf("RunCounts is\n  %+v, a recount\n  %+v, %v", counts, again, err)
	}
	ask(p, fmt.Sprintf("Rows(%+v)", q), func(s host.Store) (paged[host.RunRow], error) { return pagedOf(s.Rows(p.ctx, q)) })
}
