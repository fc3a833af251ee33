package client_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

func TestRows(t *testing.T) {
	r := host.Run{
		Tenant: host.DefaultTenant, HandlerID: "h", RunID: "r", SessionID: "s", Workflow: "flow", Version: "v", Status: host.StatusRunning, Started: 1e9, Updated: 2e9,
		Paused: true, ParentRun: "p", ParentStep: "step", ForkedFrom: "o", ForkedAt: 4, RetriedFrom: "b", Steps: 3, Fuel: 5, Error: "bad",
		WaitingFor: []host.Waiting{{Step: "s", Type: "Answer", Since: 1e9}},
	}
	f := &fake{runs: []host.Run{r}, more: true}
	c := serve(t, f, nil)
	at := time.Unix(100, 0)
	q := client.RowQuery{
		Phases: []host.Phase{host.PhasePaused}, Workflows: []string{"flow"}, Version: "12345678", Session: "s", Handler: "h", Parent: "p", ForkedFrom: "o", ID: "abc",
		ErrorCode: "e", Since: at, Until: at, StartedAfter: at, StartedBefore: at, Children: true, Text: "word", Limit: 1,
	}
	page, err := c.Rows(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := host.RowQuery{
		Tenant: host.DefaultTenant, Phases: q.Phases, Workflows: q.Workflows, Version: q.Version, Session: "s", Handler: "h", Parent: "p", ForkedFrom: "o", ID: "abc",
		ErrorCode: "e", Since: 100e9, Until: 100e9, StartedAfter: 100e9, StartedBefore: 100e9, Children: true, Search: []host.SearchTerm{{Word: "word"}}, Limit: 1,
	}
	if !reflect.DeepEqual(f.rows, want) {
		t.Errorf("the query is\n%+v, want\n%+v", f.rows, want)
	}
	r.Tenant = ""
	if row := page.Rows[0]; !reflect.DeepEqual(row.Run, r) || row.Phase != host.PhasePaused || page.Next == "" || page.Previous != "" {
		t.Errorf("the page is %+v, want %+v", page, r)
	}
	q.Cursor = page.Next
	if _, err := c.Rows(t.Context(), q); err != nil || f.rows.From == nil || *f.rows.From != (host.RowPlace{Started: 1e9, RunID: "r"}) || f.rows.Back {
		t.Errorf("the next page is after %+v, %v", f.rows.From, err)
	}
}

func TestRunCounts(t *testing.T) {
	counts, err := serve(t, &fake{}, nil).RunCounts(t.Context())
	if want := (host.RunCount{Workflow: "flow", Phase: host.PhaseWaiting, Runs: 3, Children: 1}); err != nil || len(counts) != 1 || counts[0] != want {
		t.Errorf("RunCounts = %+v, %v", counts, err)
	}
}
