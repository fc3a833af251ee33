package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

type rowPage struct {
	Runs       []map[string]any `json:"runs"`
	NextCursor *string          `json:"next_cursor"`
	PrevCursor *string          `json:"prev_cursor"`
}

func getRows(t *testing.T, h http.Handler, query string) (p rowPage) {
	t.Helper()
	w := call(t, h, "GET", "/runs?"+query, "")
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK {
		t.Fatalf("answer = %d %s", w.Code, w.Body)
	}
	return p
}

// Cursors lead forth and back over the same pages.
func TestRowPages(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for i := range 5 {
		call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"p%d"}`, i))
	}
	ids := func(p rowPage) (ids []string) {
		for _, r := range p.Runs {
			ids = append(ids, r["handler_id"].(string))
		}
		return ids
	}
	first := getRows(t, h, "limit=2&workflow_name=plain")
	if first.PrevCursor != nil || first.NextCursor == nil {
		t.Fatalf("the first page = %+v", first)
	}
	second := getRows(t, h, "limit=2&workflow_name=plain&cursor="+*first.NextCursor)
	third := getRows(t, h, "limit=2&workflow_name=plain&cursor="+*second.NextCursor)
	if third.NextCursor != nil {
		t.Error("the last page has a next one")
	}
	back := getRows(t, h, "limit=2&workflow_name=plain&cursor="+*third.PrevCursor)
	top := getRows(t, h, "limit=2&workflow_name=plain&cursor="+*back.PrevCursor)
	if got, want := fmt.Sprint(ids(first), ids(second), ids(third), ids(back), ids(top)), "[p4 p3] [p2 p1] [p0] [p2 p1] [p4 p3]"; got != want {
		t.Errorf("pages = %s, want %s", got, want)
	}
	if top.PrevCursor != nil || top.NextCursor == nil || *top.NextCursor != *first.NextCursor {
		t.Errorf("the way back ends with %+v", top)
	}
	for _, query := range []string{"limit=2&workflow_name=slow&cursor=" + *first.NextCursor, "cursor=x", "cursor=AAAA"} {
		wantError(t, call(t, h, "GET", "/runs?"+query, ""), http.StatusBadRequest, host.CodeInvalidArgument)
	}
}

// Every filter of the query reaches the store.
func TestRowFilters(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for query, want := range map[string]host.RowQuery{
		"":                                 {},
		"phase=waiting&phase=queued":       {Phases: []host.Phase{host.PhaseQueued, host.PhaseWaiting}},
		"status=running":                   {Phases: host.Phases[:6]},
		"status=failed&status=running":     {Phases: append(host.Phases[:6:6], "failed")},
		"status=failed&phase=waiting":      {Phases: []host.Phase{"none"}},
		"blocked=true":                     {Phases: []host.Phase{host.PhaseBlocked}},
		"status=completed&phase=completed": {Phases: []host.Phase{"completed"}},
		"workflow_name=b&workflow_name=a":  {Workflows: []string{"a", "b"}},
		"handler=h&session=s&parent=p&forked_from=f&id=abc&error_code=e&children=true": {
			Handler: "h", Session: "s", Parent: "p", ForkedFrom: "f", ID: "abc", ErrorCode: "e", Children: true},
		"version=ABCDEF12&limit=200":                 {Version: "abcdef12", Limit: 200},
		"q=no+such*":                                 {Search: []host.SearchTerm{{Word: "no"}, {Word: "such", Prefix: true}}},
		"since=2026-11-21T09:00:00Z":                 {Since: at.UnixNano()},
		"until=2026-11-21T09:00:00Z":                 {Until: at.UnixNano()},
		"started_after=2026-11-21T09:00:00Z":         {StartedAfter: at.UnixNano()},
		"started_before=2026-11-21T10:00:00%2B01:00": {StartedBefore: at.UnixNano()},
	} {
		getRows(t, h, query)
		want.Tenant = host.DefaultTenant
		if want.Limit == 0 {
			want.Limit = apiwire.DefaultRows
		}
		if !reflect.DeepEqual(f.lastRows, want) {
			t.Errorf("?%s asks for\n%+v, want\n%+v", query, f.lastRows, want)
		}
	}
	for _, query := range []string{"phase=nonsense", "status=paused", "id=ab", "limit=201", "limit=0", "until=today", "version=12"} {
		wantError(t, call(t, h, "GET", "/runs?"+query, ""), http.StatusBadRequest, host.CodeInvalidArgument)
	}
}

// A row is cut, and says where the run comes from. A run is 200, whatever its status.
func TestRowAndDetails(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	call(t, h, "POST", "/workflows/slow/run-nowait", `{"handler_id":"h"}`)
	f.mu.Lock()
	_, r, err := f.find("h")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ü", 300)
	body, err := abi.Marshal(map[string]string{"text": long})
	if err != nil {
		t.Fatal(err)
	}
	r.Status, r.Error, r.ErrorCode, r.Completed, r.Fuel = host.StatusFailed, long, "broken", r.Started+int64(1500*time.Millisecond), 7
	r.ParentRun, r.ParentStep, r.ForkedFrom, r.ForkedAt, r.RetriedFrom = "parent", "step", "origin", 9, "before"
	r.Result = &host.StreamEvent{Type: "Stop", Body: body}
	f.mu.Unlock()
	row := getRows(t, h, "").Runs[0]
	for name, want := range map[string]any{
		"phase": "failed", "error": strings.Repeat("ü", 199) + "…", "error_code": "broken", "duration_seconds": 1.5, "fuel": 7.0, "retried_from": "before",
		"result": `{"text":"` + strings.Repeat("ü", 190) + "…",
		"parent": map[string]any{"run_id": "parent", "step": "step"}, "forked_from": map[string]any{"run_id": "origin", "at": 9.0},
	} {
		if !reflect.DeepEqual(row[name], want) {
			t.Errorf("%s = %v, want %v", name, row[name], want)
		}
	}
	w := call(t, h, "GET", "/runs/h", "")
	var details map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &details); err != nil || w.Code != http.StatusOK {
		t.Fatalf("answer = %d %s", w.Code, w.Body)
	}
	if details["error"] != long || details["phase"] != "failed" || details["fuel"] != 7.0 || len(details["runs"].([]any)) != 1 || details["children"] == nil || details["forks"] == nil {
		t.Errorf("the run is %s", w.Body)
	}
	wantError(t, call(t, h, "GET", "/runs/"+url.PathEscape("no such"), ""), http.StatusNotFound, host.CodeNotFound)
}

func TestRunCounts(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	if w := call(t, h, "GET", "/runs/counts", ""); w.Code != http.StatusOK || w.Body.String() != `{"counts":[]}` {
		t.Errorf("without runs: %d %s", w.Code, w.Body)
	}
	call(t, h, "POST", "/workflows/plain/run", `{}`)
	if w := call(t, h, "GET", "/runs/counts", ""); w.Body.String() != `{"counts":[{"workflow_name":"plain","phase":"completed","runs":1,"children":0}]}` {
		t.Errorf("with a run: %s", w.Body)
	}
}
