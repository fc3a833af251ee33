package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
)

type page struct {
	Handlers []struct {
		HandlerID string `json:"handler_id"`
	} `json:"handlers"`
	NextCursor *string `json:"next_cursor"`
}

func getPage(t *testing.T, h http.Handler, query string) page {
	t.Helper()
	w := call(t, h, "GET", "/handlers?"+query, "")
	var p page
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 {
		t.Fatalf("answer = %d %s", w.Code, w.Body)
	}
	if !strings.Contains(w.Body.String(), `"next_cursor":`) {
		t.Error("no next_cursor")
	}
	return p
}

func TestListPages(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for i := range 5 {
		call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"p%d"}`, i))
		call(t, h, "POST", "/workflows/slow/run-nowait", fmt.Sprintf(`{"handler_id":"s%d"}`, i))
	}
	var got []string
	query := url.Values{"workflow_name": {"plain", ""}, "limit": {"2"}}
	for {
		p := getPage(t, h, query.Encode())
		for _, r := range p.Handlers {
			got = append(got, r.HandlerID)
		}
		if p.NextCursor == nil {
			break
		}
		query.Set("cursor", *p.NextCursor)
	}
	if want := []string{"p4", "p3", "p2", "p1", "p0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pages = %v, want %v", got, want)
	}
	// A full page may be the last one.
	if p := getPage(t, h, "workflow_name=plain&limit=5"); len(p.Handlers) != 5 || p.NextCursor != nil {
		t.Errorf("full page = %+v", p)
	}
	// The limit is not a filter, so it may change. Filters may be in any order.
	first := getPage(t, h, "status=running&status=completed&limit=1")
	cursor := "&cursor=" + url.QueryEscape(*first.NextCursor)
	getPage(t, h, "status=completed&status=running&limit=3"+cursor)
	// A cursor that is too long is refused, although its beginning is valid.
	wantError(t, call(t, h, "GET", "/handlers?status=running&status=completed"+cursor+strings.Repeat("A", 400), ""), 400, host.CodeInvalidArgument)
	for _, other := range []string{"", "status=running", "status=running&status=completed&session=s", "status=running&status=completed&version=01234567", "status=running&status=completed&blocked=true", "status=running&status=completed&q=a", "status=running&status=completed&since=2026-01-01T00:00:00Z"} {
		detail := wantError(t, call(t, h, "GET", "/handlers?"+other+cursor, ""), 400, host.CodeInvalidArgument)
		if !strings.Contains(detail, "other filters") {
			t.Errorf("%s: detail = %q", other, detail)
		}
	}
}

func TestListQuery(t *testing.T) {
	stamp := time.Date(2026, 11, 21, 2, 47, 31, 384221000, time.UTC).UnixNano()
	tests := []struct {
		query string
		want  host.RunQuery
	}{
		{"", host.RunQuery{Limit: 1000}},
		{"status=&workflow_name=&session=&since=&limit=&cursor=&blocked=", host.RunQuery{Limit: 1000}},
		{"status=b&status=a&status=b&workflow_name=w", host.RunQuery{Statuses: []string{"a", "b"}, Workflows: []string{"w"}, Limit: 1000}},
		{"status=%20a+&status=+&workflow_name=w%09", host.RunQuery{Statuses: []string{"a"}, Workflows: []string{"w"}, Limit: 1000}},
		{"version=0123abCD&session=s", host.RunQuery{Version: "0123abcd", Session: "s", Limit: 1000}},
		{"version=" + strings.Repeat("0a", 32), host.RunQuery{Version: strings.Repeat("0a", 32), Limit: 1000}},
		{"session=s&blocked=True&limit=1", host.RunQuery{Session: "s", Blocked: true, Limit: 1}},
		{"q=Time%20out*", host.RunQuery{Search: []host.SearchTerm{{Word: "time"}, {Word: "out", Prefix: true}}, Limit: 1000}},
		{"q=a&q=b&q=", host.RunQuery{Search: []host.SearchTerm{{Word: "a"}, {Word: "b"}}, Limit: 1000}},
		{"blocked=1&limit=1000", host.RunQuery{Limit: 1000}},
		{"since=2026-11-21T02:47:31.384221Z", host.RunQuery{Since: stamp, Limit: 1000}},
		{"since=2026-11-21T02:47:31.384221%2B00:00", host.RunQuery{Since: stamp, Limit: 1000}},
		{"since=2026-11-21T02:47:31.384221+00:00", host.RunQuery{Since: stamp, Limit: 1000}},
		{"since=2026-11-21T03:47:31.384221+01:00", host.RunQuery{Since: stamp, Limit: 1000}},
		{"since=0001-01-01T00:00:00Z", host.RunQuery{Limit: 1000}},
		{"since=9999-01-01T00:00:00Z", host.RunQuery{Since: math.MaxInt64, Limit: 1000}},
	}
	f := newFake(t)
	h := newServer(t, f).Handler()
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			getPage(t, h, tt.query)
			got := f.lastQuery
			if len(got.Statuses) == 0 {
				got.Statuses = nil
			}
			if len(got.Workflows) == 0 {
				got.Workflows = nil
			}
			tt.want.Tenant = host.DefaultTenant
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("query = %+v, want %+v", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"q=%22", "q=ab*", "q=%ff", "q=a+b+c+d+e+f+g+h+i", "q=" + strings.Repeat("a", 257), "version=0123abc", "version=0123abcx", "version=" + strings.Repeat("0", 65), "limit=0", "limit=1001", "limit=-1", "limit=x", "limit=1.0", "since=yesterday", "since=2026-11-21", "cursor=x", "cursor=!!", "cursor=AAAAAAAAAAAAAAAAAAAAAAAA"} {
		wantError(t, call(t, h, "GET", "/handlers?"+bad, ""), 400, host.CodeInvalidArgument)
	}
}

// TestListSearchCursor: a cursor belongs to the words of its search, in any notation.
func TestListSearchCursor(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for i := range 3 {
		call(t, h, "POST", "/workflows/plain/run", fmt.Sprintf(`{"handler_id":"p%d"}`, i))
	}
	first := getPage(t, h, "q=no+such*&limit=1")
	cursor := "&cursor=" + url.QueryEscape(*first.NextCursor)
	getPage(t, h, "q=NO,SUCH*!&limit=1"+cursor)
	for _, other := range []string{"q=no+such", "q=no", "q="} {
		wantError(t, call(t, h, "GET", "/handlers?"+other+cursor, ""), 400, host.CodeInvalidArgument)
	}
}

func TestRecord(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	call(t, h, "POST", "/workflows/hello/run", `{"handler_id":"h","session":"s","start_event":{"name":"Ann"}}`)
	const want = `{"handler_id":"h","workflow_name":"hello","run_id":"run-1","error":null,` +
		`"result":{"value":{"text":"hello Ann","count":1},"qualified_name":"hello.Greeting","type":"Greeting","types":["StopEvent"]},` +
		`"result_unreadable":false,"status":"completed","started_at":"2026-11-21T02:47:31.385221+00:00",` +
		`"updated_at":"2026-11-21T02:47:31.386221+00:00","completed_at":"2026-11-21T02:47:31.386221+00:00",` +
		`"session_id":"s","paused":false,"steps":2}`
	if got := call(t, h, "GET", "/handlers/h", "").Body.String(); got != want {
		t.Errorf("record =\n%s, want\n%s", got, want)
	}
	if got := call(t, h, "GET", "/handlers/run-1", "").Body.String(); got != want {
		t.Errorf("record by run id =\n%s", got)
	}

	call(t, h, "POST", "/workflows/slow/run-nowait", `{"handler_id":"b"}`)
	f.mu.Lock()
	f.handlers["b"].latest().Blocked = &host.Blocked{Code: host.BlockedReplayMismatch, Message: "call 3"}
	f.handlers["b"].latest().Paused = true
	f.handlers["b"].latest().Version = "0123abcd"
	f.handlers["b"].latest().WaitingFor = []host.Waiting{{Reason: host.WaitsForTurn}, {Step: "s", Type: "T", WaiterID: "w", Requirements: `{"role":"boss"}`}}
	f.handlers["b"].latest().Kept = []host.Kept{{Type: "T"}, {Type: "U", Step: "s"}}
	f.mu.Unlock()
	remedy := codes.Remedy(codes.InBlocked, host.BlockedReplayMismatch, "call 3")
	w := call(t, h, "GET", "/handlers/b", "")
	if remedy == "" || w.Code != 202 || !strings.HasSuffix(w.Body.String(), `"completed_at":null,"session_id":"b","version":"0123abcd","paused":true,"blocked":{"code":"replay_mismatch","message":"call 3"},`+
		`"waiting_for":[{"reason":"session","since":"1970-01-01T00:00:00.000000+00:00"},{"step":"s","type":"T","waiter_id":"w","since":"1970-01-01T00:00:00.000000+00:00","requirements":{"role":"boss"}}],"kept":[{"type":"T"},{"type":"U","step":"s"}],"steps":0,"error_remedy":`+strconv.Quote(remedy)+`}`) {
		t.Errorf("blocked record = %d %s", w.Code, w.Body)
	}
	if p := getPage(t, h, "blocked=true"); len(p.Handlers) != 1 || p.Handlers[0].HandlerID != "b" {
		t.Errorf("blocked = %+v", p)
	}
}

func TestLongListIsWrittenInPieces(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	text := strings.Repeat("x", 200<<10)
	for range 4 {
		if w := call(t, h, "POST", "/workflows/plain/run", `{"kwargs":{"a":"`+text+`"}}`); w.Code != 200 {
			t.Fatal(w.Code)
		}
	}
	if p := getPage(t, h, ""); len(p.Handlers) != 4 {
		t.Errorf("%d records", len(p.Handlers))
	}
	if w := call(t, h, "HEAD", "/handlers", ""); w.Code != 200 {
		t.Errorf("HEAD = %d", w.Code)
	}
}
