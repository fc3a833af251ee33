package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
)

// realServer serves a whole host in memory with examples as plugins.
func realServer(t *testing.T, heartbeat time.Duration, examples ...string) *httptest.Server {
	t.Helper()
	h := hosttest.New(t, hosttest.Config{})
	h.Load(t, "tinygo", examples...)
	s := httptest.NewServer(httpapi.New(httpapi.Config{Runs: h.Runs, Plugins: h.Plugins, Health: h.Host, Heartbeat: heartbeat}).Handler())
	t.Cleanup(s.Close)
	return s
}

// streamOf reads a stream that ends: "ID:TYPE" of each event, or the status.
func streamOf(t *testing.T, s *httptest.Server, target, lastID string) string {
	t.Helper()
	w := call(t, s.Config.Handler, "GET", target, "", "Last-Event-ID", lastID)
	if w.Code != http.StatusOK {
		return fmt.Sprint(w.Code)
	}
	events := readNDJSON(w.Body.Bytes())
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		events = readSSE(t, w.Body.Bytes(), true)
	}
	var out []string
	for _, e := range events {
		var known struct{ Type string }
		if err := json.Unmarshal(e.data, &known); err != nil {
			t.Fatalf("%s: %v", e.data, err)
		}
		out = append(out, fmt.Sprint(e.id, ":", known.Type))
	}
	return strings.Join(out, " ")
}

// TestStreamOverTheRunsOfAHandler: ids continue from run to run, -1 is the beginning of
// the latest run, and a stream can begin after any id, in whatever run.
func TestStreamOverTheRunsOfAHandler(t *testing.T) {
	s := realServer(t, 0, "stream")
	for range 2 {
		if w := call(t, s.Config.Handler, "POST", "/workflows/stream/run", `{"handler_id":"h","start_event":{"n":2}}`); w.Code != 200 {
			t.Fatal(w.Body)
		}
	}
	// Each run: 0 running, 1 and 2 ProgressEvent, 3 not running, 4 StopEvent.
	const latest = "6:ProgressEvent 7:ProgressEvent 9:StopEvent"
	for _, tt := range []struct{ query, lastID, want string }{
		{"?after_sequence=-1", "", latest},
		{"?after_sequence=0", "", "1:ProgressEvent 2:ProgressEvent 4:StopEvent " + latest},
		{"?after_sequence=4", "", latest},
		{"?after_sequence=-1", "2", "4:StopEvent " + latest},
		{"?after_sequence=now", "7", "9:StopEvent"},
		{"?after_sequence=0", "9", "204"},
		{"?after_sequence=-1", "x", latest},
		{"?after_sequence=8", "", "9:StopEvent"},
		{"?after_sequence=9", "", "204"},
		{"", "", "204"},
		{"?sse=false&after_sequence=-1", "9", "0:ProgressEvent 0:ProgressEvent 0:StopEvent"},
		{"?sse=false", "2", "204"},
		{"?sse=false&after_sequence=9", "", "204"},
		{"?after_sequence=5&include_internal=true", "", "6:ProgressEvent 7:ProgressEvent 8:StepStateChanged 9:StopEvent"},
	} {
		if got := streamOf(t, s, "/events/h"+tt.query, tt.lastID); got != tt.want {
			t.Errorf("%q after %q: %s, want %s", tt.query, tt.lastID, got, tt.want)
		}
	}
}

// TestStreamOfOneRunIntoTheNext: a reader that is one run behind follows into the active
// run, and receives its end.
func TestStreamOfOneRunIntoTheNext(t *testing.T) {
	s := realServer(t, 0, "human")
	ask := func() {
		t.Helper()
		if w := call(t, s.Config.Handler, "POST", "/workflows/human/run-nowait", `{"handler_id":"h"}`); w.Code != 200 {
			t.Fatal(w.Body)
		}
	}
	answer := func() {
		t.Helper()
		if w := call(t, s.Config.Handler, "POST", "/events/h", `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`); w.Code != 200 {
			t.Fatal(w.Body)
		}
	}
	ask()
	first := bufio.NewReader(open(t, s, "/events/h?after_sequence=-1"))
	readLines(t, first, 3)
	answer()
	if rest, err := io.ReadAll(first); err != nil || !strings.Contains(string(rest), `"type":"StopEvent"`) {
		t.Fatalf("the end of the first run: %q, %v", rest, err)
	}
	ask()
	behind := bufio.NewReader(open(t, s, "/events/h?after_sequence=0"))
	latest := bufio.NewReader(open(t, s, "/events/h?after_sequence=-1"))
	for _, typ := range []string{"InputRequiredEvent", "StopEvent", "InputRequiredEvent"} {
		if got := readLines(t, behind, 3); !strings.Contains(got, `"type":"`+typ+`"`) {
			t.Fatalf("behind by a run: %q, want %s", got, typ)
		}
	}
	if got := readLines(t, latest, 3); !strings.Contains(got, `"type":"InputRequiredEvent"`) {
		t.Fatalf("the latest run: %q", got)
	}
	answer()
	for _, r := range []*bufio.Reader{behind, latest} {
		if rest, err := io.ReadAll(r); err != nil || len(readSSE(t, rest, true)) != 1 || !strings.Contains(string(rest), `"type":"StopEvent"`) {
			t.Errorf("rest = %q, %v", rest, err)
		}
	}
}

// TestStreamFraming: an event is one line in both framings, whatever its content, and the
// answers have the correct media types.
func TestStreamFraming(t *testing.T) {
	s := realServer(t, 0, "human")
	const text = "a\u2028b\u2029c\u0085d\r\n\x00e"
	if w := call(t, s.Config.Handler, "POST", "/workflows/human/run-nowait", `{"handler_id":"h"}`); w.Code != 200 {
		t.Fatal(w.Body)
	}
	readLines(t, bufio.NewReader(open(t, s, "/events/h?after_sequence=-1")), 3) // the run has asked
	body, err := json.Marshal(map[string]any{"event": map[string]any{"type": "HumanResponseEvent", "value": map[string]any{"response": text}}})
	if err != nil {
		t.Fatal(err)
	}
	if w := call(t, s.Config.Handler, "POST", "/events/h", string(body)); w.Code != 200 {
		t.Fatal(w.Body)
	}
	for query, kind := range map[string]string{"": "text/event-stream; charset=utf-8", "&sse=false": "application/x-ndjson", "&sse=no": "application/x-ndjson"} {
		w := call(t, s.Config.Handler, "GET", "/events/h?after_sequence=-1"+query, "")
		if got := w.Header().Get("Content-Type"); w.Code != 200 || got != kind {
			t.Errorf("%s: %d, Content-Type = %s", query, w.Code, got)
		}
		for name, want := range map[string]string{"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s = %q", query, name, got)
			}
		}
		out := w.Body.String()
		if strings.ContainsAny(out, "\r\x00\u2028\u2029\u0085") {
			t.Errorf("%s: a separator is not escaped: %q", query, out)
		}
		events := readNDJSON(w.Body.Bytes())
		if query == "" {
			events = readSSE(t, w.Body.Bytes(), true)
		} else if !strings.HasSuffix(out, "}\n") || strings.Contains(out, "\n\n") {
			t.Errorf("%s: not lines: %q", query, out)
		}
		if len(events) != 2 {
			t.Fatalf("%s: %d events: %q", query, len(events), out)
		}
		var stop struct{ Value struct{ Result string } }
		if err := json.Unmarshal(events[1].data, &stop); err != nil || stop.Value.Result != text {
			t.Errorf("%s: result %q, %v", query, stop.Value.Result, err)
		}
	}
}

// TestStreamHeartbeatOfARealRun: a run that waits for a person is silent. The comments
// that keep its stream open have no id, so they do not change the position.
func TestStreamHeartbeatOfARealRun(t *testing.T) {
	s := realServer(t, 5*time.Millisecond, "human")
	call(t, s.Config.Handler, "POST", "/workflows/human/run-nowait", `{"handler_id":"h"}`)
	r := bufio.NewReader(open(t, s, "/events/h?after_sequence=-1"))
	lines := bufio.NewReader(open(t, s, "/events/h?after_sequence=-1&sse=false"))
	asked, beats := false, 0
	for !asked || beats < 3 {
		switch line := readLines(t, r, 1); {
		case line == ": heartbeat\n":
			if asked {
				beats++
			}
			if got := readLines(t, r, 1); got != "\n" {
				t.Fatalf("after a heartbeat: %q", got)
			}
		case strings.HasPrefix(line, "id: "):
			if got := readLines(t, r, 2); asked || !strings.Contains(got, `"InputRequiredEvent"`) {
				t.Fatalf("event: %q", got)
			}
			asked = true
		default:
			t.Fatalf("line: %q", line)
		}
	}
	call(t, s.Config.Handler, "POST", "/events/h", `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`)
	rest, err := io.ReadAll(r)
	if events := readSSE(t, rest, true); err != nil || len(events) != 1 {
		t.Errorf("rest = %q, %v", rest, err)
	}
	all, err := io.ReadAll(lines)
	if err != nil || len(readNDJSON(all)) != 2 || strings.Contains(string(all), "heartbeat") {
		t.Errorf("NDJSON = %q, %v", all, err)
	}
}

// TestStreamOfAPurgedHandler: the stream of a purged run ends. Its last event is the
// run's cancellation, which a slow reader misses.
func TestStreamOfAPurgedHandler(t *testing.T) {
	s := realServer(t, 0, "human")
	call(t, s.Config.Handler, "POST", "/workflows/human/run-nowait", `{"handler_id":"h"}`)
	r := bufio.NewReader(open(t, s, "/events/h?after_sequence=-1"))
	readLines(t, r, 3)
	if w := call(t, s.Config.Handler, "POST", "/handlers/h/cancel?purge=true", ""); w.Code != 200 {
		t.Fatal(w.Body)
	}
	rest, err := io.ReadAll(r)
	if events := readSSE(t, rest, true); err != nil || len(events) > 1 || len(events) == 1 && !strings.Contains(string(rest), `"type":"WorkflowCancelledEvent"`) {
		t.Errorf("rest = %q, %v", rest, err)
	}
	if got := streamOf(t, s, "/events/h?after_sequence=-1", ""); got != "404" {
		t.Errorf("stream = %s", got)
	}
}

// TestStreamOfAnOlderRun: the stream of a run id has only the events of that run.
func TestStreamOfAnOlderRun(t *testing.T) {
	s := realServer(t, 0, "stream")
	var runs []string
	for range 2 {
		w := call(t, s.Config.Handler, "POST", "/workflows/stream/run", `{"handler_id":"h","start_event":{"n":2}}`)
		var rec struct {
			RunID string `json:"run_id"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &rec); err != nil || w.Code != 200 {
			t.Fatal(w.Body)
		}
		runs = append(runs, rec.RunID)
	}
	for _, tt := range []struct{ target, want string }{
		{"/events/" + runs[0] + "?after_sequence=-1", "1:ProgressEvent 2:ProgressEvent 4:StopEvent"},
		{"/events/" + runs[0] + "?after_sequence=1", "2:ProgressEvent 4:StopEvent"},
		{"/events/" + runs[0] + "?after_sequence=4", "204"},
		{"/events/" + runs[0], "204"},
		{"/events/" + runs[1] + "?after_sequence=0", "6:ProgressEvent 7:ProgressEvent 9:StopEvent"},
		{"/events/" + runs[0] + "?after_sequence=-1&include_children=true", "1:ProgressEvent 2:ProgressEvent 4:StopEvent"},
	} {
		if got := streamOf(t, s, tt.target, ""); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.target, got, tt.want)
		}
	}
}

// TestStreamWithChildren: the events of children precede the events that depend on them,
// with their handler and parent; a stream can begin at the position of any event.
func TestStreamWithChildren(t *testing.T) {
	s := realServer(t, 0, "parent", "accumulator")
	if w := call(t, s.Config.Handler, "POST", "/workflows/parent/run", `{"handler_id":"h","start_event":{"items":["a","b","c","d"]}}`); w.Code != 200 {
		t.Fatal(w.Body)
	}
	type event struct {
		Type      string
		HandlerID string  `json:"handler_id"`
		RunID     string  `json:"run_id"`
		Parent    *string `json:"parent_handler_id"`
		Sequence  int
		Position  string
	}
	read := func(query string) (out []event) {
		t.Helper()
		w := call(t, s.Config.Handler, "GET", "/events/h?include_children=true&sse=false&"+query, "")
		for _, e := range readNDJSON(w.Body.Bytes()) {
			var known event
			if err := json.Unmarshal(e.data, &known); err != nil || w.Code != 200 {
				t.Fatalf("%s: %d %s: %v", query, w.Code, e.data, err)
			}
			out = append(out, known)
		}
		return out
	}
	all := read("after_sequence=-1")
	ends := map[string]bool{}
	for i, e := range all {
		switch {
		case e.HandlerID == "" || e.RunID == "" || e.Position == "" || e.Type == "":
			t.Errorf("event %d: %+v", i, e)
		case e.HandlerID == "h" && (e.Parent != nil || e.Type == "StopEvent" && i != len(all)-1):
			t.Errorf("event %d of the run: %+v", i, e)
		case e.HandlerID != "h" && (e.Parent == nil || *e.Parent != "h"):
			t.Errorf("event %d of a child: %+v", i, e)
		case e.Type == "StopEvent":
			ends[e.HandlerID] = true
		}
	}
	if len(ends) != 3 {
		t.Errorf("%d runs ended: %+v", len(ends), all)
	}
	for i, e := range all[:len(all)-1] {
		if rest := read("after_sequence=" + e.Position); len(rest) != len(all)-i-1 {
			t.Errorf("from %s: %d events, want %d", e.Position, len(rest), len(all)-i-1)
		}
	}
	if w := call(t, s.Config.Handler, "GET", "/events/h?include_children=true&after_sequence=-1", ""); strings.Count(w.Body.String(), "\nid: ")+1 == strings.Count(w.Body.String(), "data: ") {
		t.Errorf("events of children have ids: %s", w.Body)
	}
	wantError(t, call(t, s.Config.Handler, "GET", "/events/h?include_children=true&after_sequence=1/x", ""), http.StatusBadRequest, host.CodeInvalidArgument)
}

// TestIDsThatPathsLose: clients and proxies shorten paths with these names.
func TestIDsThatPathsLose(t *testing.T) {
	s := realServer(t, 0, "stream")
	for _, id := range []string{".", ".."} {
		for _, body := range []string{`{"handler_id":"` + id + `","start_event":{"n":1}}`, `{"session":"` + id + `","start_event":{"n":1}}`} {
			wantError(t, call(t, s.Config.Handler, "POST", "/workflows/stream/run-nowait", body), http.StatusBadRequest, host.CodeInvalidArgument)
		}
	}
	if w := call(t, s.Config.Handler, "POST", "/workflows/stream/run-nowait", `{"handler_id":"...","session":".a","start_event":{"n":1}}`); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
