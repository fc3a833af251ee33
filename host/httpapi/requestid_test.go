package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/httpapi"
)

// TestRequestID: every answer has its request's id: the client's, if the log can contain
// it.
func TestRequestID(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	long := strings.Repeat("a", 64)
	for _, given := range []string{"a", "Job-7.retry_2", long} {
		if got := call(t, h, "GET", "/health", "", "X-Request-Id", given).Header().Get("X-Request-Id"); got != given {
			t.Errorf("%q is answered as %q", given, got)
		}
	}
	seen := map[string]bool{}
	for _, given := range []string{"", long + "a", "a b", "a\nb", "ä", "a/b"} {
		got := call(t, h, "GET", "/health", "", "X-Request-Id", given).Header().Get("X-Request-Id")
		if len(got) < 16 || got == given || seen[got] {
			t.Errorf("%q is answered as %q", given, got)
		}
		seen[got] = true
	}
	if got := call(t, h, "GET", "/health", "", "X-Request-Id", "a", "X-Request-Id", "b").Header().Get("X-Request-Id"); got == "a" || got == "b" {
		t.Errorf("one of two was taken: %q", got)
	}
	for path, status := range map[string]int{"/made/up": 404, "/workflows//run": 404, "/handlers/nobody": 404, "/events/nobody": 404, "/workflows": 200} {
		w := call(t, h, "GET", path, "", "X-Request-Id", "r1")
		if w.Code != status || w.Header().Get("X-Request-Id") != "r1" {
			t.Errorf("%s: %d %q", path, w.Code, w.Header().Get("X-Request-Id"))
		}
	}
	if w := call(t, h, "GET", "/handlers", "", "X-Request-Id", "r1", "Host", "evil.example"); w.Code != http.StatusForbidden || w.Header().Get("X-Request-Id") != "r1" {
		t.Errorf("foreign host: %d %q", w.Code, w.Header().Get("X-Request-Id"))
	}
}

// TestRequestIDWithoutServer: the front's own answers have ids, too.
func TestRequestIDWithoutServer(t *testing.T) {
	_, _, url := fronted(t)
	if _, header, _ := ask(t, http.MethodGet, url+"/health"); header.Get("X-Request-Id") == "" {
		t.Errorf("no id: %v", header)
	}
}

// TestRequestLog: a request's log lines have its id, its tenant and its run.
func TestRequestLog(t *testing.T) {
	f := newFake(t)
	var out bytes.Buffer
	h := newServer(t, f, func(c *httpapi.Config) {
		c.Log = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}).Handler()
	line := func(method, path, body string) map[string]any {
		t.Helper()
		out.Reset()
		call(t, h, method, path, body, "X-Request-Id", "r1")
		var all map[string]any
		if err := json.Unmarshal(out.Bytes(), &all); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if all["request"] != "r1" {
			t.Errorf("%s %s: %s", method, path, &out)
		}
		return all
	}
	run := line("POST", "/workflows/plain/run", `{"handler_id":"h1"}`)
	if run["tenant"] != "default" || run["run"] == nil || run["run"] == "" || run["handler"] != "h1" || run["workflow"] != "plain" {
		t.Errorf("start: %v", run)
	}
	if got := line("GET", "/handlers/h1", ""); got["run"] != run["run"] || got["handler"] != "h1" {
		t.Errorf("read: %v", got)
	}
	if got := line("GET", "/events/nobody", ""); got["run"] != nil || got["handler"] != "nobody" {
		t.Errorf("stream: %v", got)
	}
	if got := line("GET", "/sessions/s1", ""); got["session"] != "s1" {
		t.Errorf("session: %v", got)
	}
	if got := line("GET", "/health", ""); got["tenant"] != nil {
		t.Errorf("a probe has no tenant: %v", got)
	}
}
