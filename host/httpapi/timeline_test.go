package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// TestJournal: the timeline in pages, every part of an entry, and what is refused.
func TestJournal(t *testing.T) {
	f := newFake(t)
	f.journal = []host.TimelineEntry{
		{Seq: 1, At: 1_700_000_000_000_000_001, Kind: "start", Forkable: true, Events: []abi.Event{{Type: "StartEvent", Body: abi.EmptyMap}},
			Began: []host.TimelineAttempt{{Step: "s", Invocation: 1, Attempt: 1}}},
		{Seq: 4, At: 2e9, Kind: "edit", Step: "s", Invocation: 1, Attempt: 1, Call: 2,
			Edits: []host.TimelineEdit{{Path: "a", New: abi.Raw{1}}, {Path: "", Old: abi.Null, New: abi.EmptyMap}}},
		{Seq: 5, At: 2e9, Kind: "wait", Until: 3e9, Wait: &host.TimelineWait{ID: "w", Type: "T", Requirements: abi.EmptyMap, Broadcast: true, Answered: 7}},
		{Seq: 6, At: 2e9, Kind: "child", To: "x", Child: &host.TimelineChild{Workflow: "w", RunID: "r2", HandlerID: "h2", SessionID: "s2"}},
		{Seq: 9, At: 2e9, Kind: "finish", List: true, Fuel: 12, Duration: 1_500_000_000, Err: &abi.Error{Code: "c", Message: "m"}, RetryAt: 4e9, Timer: "attempt",
			Status: host.StatusFailed, Block: &host.Blocked{Code: "b", Message: "bm"}, Logs: []host.TimelineLog{{At: 1, Level: -4, Message: "line", Attrs: abi.Null}}},
	}
	h := newServer(t, f).Handler()
	started := call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id":"h"}`)
	if started.Code != http.StatusOK {
		t.Fatalf("start: %d %s", started.Code, started.Body)
	}
	var all []string
	cursor, first := "", ""
	for pages := 0; ; pages++ {
		w := call(t, h, "GET", "/handlers/h/journal?limit=2&cursor="+cursor, "")
		var page struct {
			Entries []json.RawMessage `json:"entries"`
			Next    *string           `json:"next_cursor"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK || pages > 3 {
			t.Fatalf("page %d: %d %s, %v", pages, w.Code, w.Body, err)
		}
		for _, e := range page.Entries {
			all = append(all, string(e))
		}
		if page.Next == nil {
			break
		}
		if cursor = *page.Next; pages == 0 {
			first = cursor
		}
	}
	want := []string{
		`{"seq":1,"time":"2023-11-14T22:13:20.000000001Z","run_id":"RUN","kind":"start","forkable":true,"events":[{"type":"StartEvent","value":{}}],"began":[{"step":"s","invocation":1,"attempt":1}]}`,
		`{"seq":4,"time":"1970-01-01T00:00:02.000000000Z","run_id":"RUN","kind":"edit","forkable":false,"step":"s","invocation":1,"attempt":1,"call":2,"edits":[{"path":"a","new":1},{"path":"","old":null,"new":{}}]}`,
		`{"seq":5,"time":"1970-01-01T00:00:02.000000000Z","run_id":"RUN","kind":"wait","forkable":false,"until":"1970-01-01T00:00:03.000000000Z","wait":{"waiter_id":"w","type":"T","requirements":{},"broadcast":true,"answered":true}}`,
		`{"seq":6,"time":"1970-01-01T00:00:02.000000000Z","run_id":"RUN","kind":"child","forkable":false,"to":"x","child":{"workflow_name":"w","run_id":"r2","handler_id":"h2","session_id":"s2"}}`,
		`{"seq":9,"time":"1970-01-01T00:00:02.000000000Z","run_id":"RUN","kind":"finish","forkable":false,"list":true,"fuel":12,"duration_seconds":1.5,"error":{"code":"c","message":"m"},"retry_at":"1970-01-01T00:00:04.000000000Z","status":"failed","blocked":{"code":"b","message":"bm"},"timer":"attempt","logs":[{"time":"1970-01-01T00:00:00.000000001Z","level":-4,"message":"line","attrs":null}]}`,
	}
	run, err := f.Get(t.Context(), host.DefaultTenant, "h")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range want {
		if e = strings.ReplaceAll(e, "RUN", run.RunID); i >= len(all) || all[i] != e {
			t.Errorf("entry %d:\n got %s\nwant %s", i, all[min(i, len(all)-1)], e)
		}
	}
	asked := func(query string, want host.TimelineQuery) {
		t.Helper()
		w := call(t, h, "GET", "/runs/h/journal?"+query, "")
		want.Tenant, want.ID = host.DefaultTenant, "h"
		if w.Code != http.StatusOK || !reflect.DeepEqual(f.asked, want) {
			t.Errorf("%s: %d, asks for %+v", query, w.Code, f.asked)
		}
	}
	asked("after=4&before=9&order=desc&cut=64&limit=7", host.TimelineQuery{After: 4, Before: 9, Newest: true, Cut: 64, Limit: 7})
	asked("kind=edit&kind=post&step=s&order=asc&after=0&before=0", host.TimelineQuery{Kinds: []string{"edit", "post"}, Steps: []string{"s"}, Limit: host.MaxTimeline})
	// A cursor continues in the order of its page.
	asked("limit=2&cursor="+first, host.TimelineQuery{After: 4, Limit: 2})
	asked("limit=2&order=desc&before=9&cursor="+first, host.TimelineQuery{Before: 4, Newest: true, Limit: 2})
	if w := call(t, h, "GET", "/runs/h/journal/4", ""); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != strings.ReplaceAll(want[1], "RUN", run.RunID) {
		t.Errorf("an entry: %d %s", w.Code, w.Body)
	}
	wantError(t, call(t, h, "GET", "/runs/h/journal/2", ""), http.StatusNotFound, host.CodeNotFound)
	for _, seq := range []string{"0", "x", "-1", "18446744073709551615"} {
		wantError(t, call(t, h, "GET", "/runs/h/journal/"+seq, ""), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	many := "kind=" + strings.Repeat("x&kind=", 101)
	for _, query := range []string{"after=x", "before=-1", "order=up", "cut=15", "cut=1048577", "cut=x", many, "limit=0", "limit=1001", "limit=x", "cursor=x", "cursor=AAAA", "cursor=AAAAAAAAAAAAAAAAAAAAAA"} {
		wantError(t, call(t, h, "GET", "/handlers/h/journal?"+query, ""), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	if text := wantError(t, call(t, h, "GET", "/handlers/nobody/journal", ""), http.StatusNotFound, host.CodeNotFound); text != "Handler not found" {
		t.Errorf("an unknown handler: %s", text)
	}
}

// TestStateAt: the state at a position, a value in it, its tag, and what is refused.
func TestStateAt(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	if w := call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id":"h"}`); w.Code != http.StatusOK {
		t.Fatalf("start: %d %s", w.Code, w.Body)
	}
	w := call(t, h, "GET", "/runs/h/state?at=7", "")
	if w.Code != http.StatusOK || w.Body.String() != `{"n":7}` || w.Header().Get("ETag") != `"s7"` {
		t.Errorf("the state: %d %s %v", w.Code, w.Body, w.Header())
	}
	if w := call(t, h, "GET", "/runs/h/state?at=8&path=n", ""); w.Code != http.StatusOK || w.Body.String() != "8" {
		t.Errorf("a value: %d %s", w.Code, w.Body)
	}
	if w := call(t, h, "GET", "/runs/h/state?at=7", "", "If-None-Match", `"s7"`); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("a known state: %d %s", w.Code, w.Body)
	}
	if w := call(t, h, "GET", "/runs/h/state?at=7", "", "If-None-Match", `"s8"`); w.Code != http.StatusOK {
		t.Errorf("another state: %d %s", w.Code, w.Body)
	}
	for _, bad := range []string{"", "at=", "at=0", "at=-1", "at=x", "at=1.5", "at=9223372036854775808", "at=10"} {
		wantError(t, call(t, h, "GET", "/runs/h/state?"+bad, ""), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "GET", "/runs/h/state?at=2", ""), http.StatusGone, host.CodeGone)
	wantError(t, call(t, h, "GET", "/runs/nobody/state?at=7", ""), http.StatusNotFound, host.CodeNotFound)
}

// TestFork: requests, answers and refusals.
func TestFork(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	if w := call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id":"h"}`); w.Code != http.StatusOK {
		t.Fatalf("start: %d %s", w.Code, w.Body)
	}
	w := call(t, h, "POST", "/handlers/h/fork", `{"at": 7}`)
	body := w.Body.String()
	if w.Code != http.StatusOK || !strings.HasPrefix(body, `{"handler_id":"forked",`) ||
		!strings.HasSuffix(body, `,"anew":[{"kind":"child","step":"s","workflow_name":"w","handler_id":"new","was":"old"},{"kind":"child"}]}`) || !json.Valid(w.Body.Bytes()) {
		t.Errorf("fork: %d %s", w.Code, body)
	}
	for _, bad := range []string{`{}`, `{"at": null}`, `{"at": 0}`, `{"at": -1}`, `{"at": "7"}`, `{"at": 7.5}`, `{"at": 7, "to": 1}`, `[7]`, `{"at": 1e99}`, ``} {
		wantError(t, call(t, h, "POST", "/handlers/h/fork", bad), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "POST", "/handlers/h/fork", `{"at": 2}`), http.StatusGone, host.CodeGone)
	w = call(t, h, "POST", "/runs/h/fork", `{"at": 8}`)
	if text := wantError(t, w, http.StatusConflict, host.CodeConflict); text != "the nearest is 7" || !strings.Contains(w.Body.String(), `"nearest":{"before":7}`) {
		t.Errorf("no resting point: %s", w.Body)
	}
	for _, tt := range []struct {
		body string
		want host.ForkRequest
	}{
		{`{"at": 7, "state": {"n": 1}}`, host.ForkRequest{State: json2raw(t, `{"n":1}`)}},
		{`{"at": 7, "patch": {"n": null}, "paused": true}`, host.ForkRequest{Patch: json2raw(t, `{"n":null}`), Paused: true}},
		{`{"at": 7, "edits": [["set", "n", 1]], "dry_run": true}`, host.ForkRequest{Edits: []abi.Edit{{Op: abi.OpSet, Path: "n", Value: json2raw(t, `1`)}}, DryRun: true}},
		{`{"at": 7, "answer": {"type": "T", "value": {"x": 2}}, "step": "s"}`, host.ForkRequest{Answer: &abi.Event{Type: "T", Body: json2raw(t, `{"x":2}`)}, Step: "s"}},
		{`{"at": 7, "answer": "{\"qualified_name\": \"plain.T\", \"value\": {}}"}`, host.ForkRequest{Answer: &abi.Event{Type: "T", Body: abi.EmptyMap}}},
		{`{"at": 7, "state": null, "answer": null, "edits": null}`, host.ForkRequest{}},
	} {
		tt.want.Tenant, tt.want.ID, tt.want.At = host.DefaultTenant, "h", 7
		if w := call(t, h, "POST", "/runs/h/fork", tt.body); w.Code != http.StatusOK || !reflect.DeepEqual(f.forked, tt.want) {
			t.Errorf("%s: %d %s, asks for %+v", tt.body, w.Code, w.Body, f.forked)
		}
	}
	for _, bad := range []string{`{"at": 7, "state": [1]}`, `{"at": 7, "state": {}, "patch": {}}`, `{"at": 7, "patch": {}, "edits": []}`, `{"at": 7, "edits": {}}`, `{"at": 7, "edits": [["leap", "n", 1]]}`,
		`{"at": 7, "step": "s"}`, `{"at": 7, "answer": 3}`, `{"at": 7, "answer": {"x": 1}}`, `{"at": 7, "paused": 1}`} {
		wantError(t, call(t, h, "POST", "/runs/h/fork", bad), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "POST", "/handlers/nobody/fork", `{"at": 7}`), http.StatusNotFound, host.CodeNotFound)
}

// TestSnapshot: an exported snapshot is accepted as a start's context, in JSON and CBOR.
func TestSnapshot(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	if w := call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id":"h"}`); w.Code != http.StatusOK {
		t.Fatalf("start: %d %s", w.Code, w.Body)
	}
	want, err := f.Export(t.Context(), host.DefaultTenant, "h")
	if err != nil {
		t.Fatal(err)
	}
	want.Status, want.Modules = "", nil // a snapshot's own values are not trusted
	w := call(t, h, "GET", "/handlers/h/snapshot", "")
	text := w.Body.String()
	if w.Code != http.StatusOK || !strings.HasPrefix(text, `{"format":"weft run","version":1,"workflow_name":"plain","handler_id":"h",`) || !strings.HasSuffix(text, `"modules":["d"],"session":"AQL/","held":"gA=="}`) {
		t.Fatalf("snapshot: %d %s", w.Code, text)
	}
	binary := call(t, h, "GET", "/handlers/h/snapshot", "", "Accept", "application/cbor")
	fromCBOR, err := abi.ToJSON(binary.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := abi.FromJSON([]byte(`{"handler_id": "c", "context": ` + text + `}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range []*httptest.ResponseRecorder{
		call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id": "a", "context": `+text+`}`),
		call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id": "b", "context": `+string(fromCBOR)+`}`),
		call(t, h, "POST", "/workflows/plain/run-nowait", string(raw), "Content-Type", "application/cbor"),
	} {
		if got := f.lastStart.Snapshot; w.Code != http.StatusOK || got == nil {
			t.Fatalf("start %d: %d %s", i, w.Code, w.Body)
		}
	}
	if !reflect.DeepEqual(*f.lastStart.Snapshot, want) {
		t.Errorf("it arrives as %+v, want %+v", *f.lastStart.Snapshot, want)
	}
	for _, bad := range []string{
		`[1]`, `"text"`, `7`, `{"format": "weft run"}`, `{"format": "other", "version": 1}`, `{"format": "weft run", "version": "1"}`, `{"format": "weft run", "version": 0}`,
		`{"format": "weft run", "version": 1, "more": 1}`, `{"format": "weft run", "version": 1, "session": "%"}`, `{"format": "weft run", "version": 1, "held": 1}`,
	} {
		wantError(t, call(t, h, "POST", "/workflows/plain/run-nowait", `{"context": `+bad+`}`), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	if text := wantError(t, call(t, h, "POST", "/workflows/plain/run-nowait", `{"context": {"format": "weft run", "version": 2}}`), http.StatusBadRequest, host.CodeInvalidArgument); !strings.Contains(text, "has version 2, this server reads up to 1") {
		t.Errorf("a newer version: %s", text)
	}
	wantError(t, call(t, h, "GET", "/handlers/nobody/snapshot", ""), http.StatusNotFound, host.CodeNotFound)
}
