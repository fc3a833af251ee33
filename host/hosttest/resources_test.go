package hosttest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// service is the outside: what it does depends on the path.
type service struct {
	*httptest.Server
	goOn chan struct{} // ends one request to /hang or /first-hangs

	mu   sync.Mutex // guards the fields below
	keys []string   // Idempotency-Keys in the order of the requests
	came chan string
	gone chan struct{} // a request to /hang was cancelled
}

func newService(t *testing.T) *service {
	s := &service{goOn: make(chan struct{}), came: make(chan string, 100), gone: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	first := len(s.keys) == 1
	s.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client leaves
	s.came <- r.Method + " " + r.URL.Path
	switch path := strings.TrimPrefix(r.URL.Path, "/api"); path {
	case "/page":
		_, _ = w.Write([]byte("hello wörld"))
	case "/secret":
		_, _ = fmt.Fprint(w, r.Header.Get("Authorization"))
	case "/500":
		w.WriteHeader(http.StatusInternalServerError)
	case "/private":
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	case "/huge":
		w.Header().Set("Content-Length", "2147483648")
		_, _ = w.Write([]byte("x"))
	case "/endless":
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	case "/garbage":
		c, _, _ := w.(http.Hijacker).Hijack()
		_, _ = c.Write([]byte("SSH-2.0-garbage\r\n"))
		_ = c.Close()
	case "/hang", "/first-hangs":
		if path == "/first-hangs" && !first {
			return
		}
		select {
		case <-r.Context().Done():
			s.gone <- struct{}{}
		case <-s.goOn:
		}
	}
}

// next waits for a value from the service.
func next[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(suite.Hang):
		t.Fatal("the service hears nothing")
	}
	return v
}

// resources writes a resource file that grants the service to fetch.
func (s *service) resources(t *testing.T, more string) (arg string) {
	t.Helper()
	t.Setenv("FETCH_TOKEN", "a token that nobody may see")
	text := fmt.Sprintf(`{"resources": {"web": {"kind": "http",
	  "settings": {"base_url": "%s/api/", "networks": ["127.0.0.1"], "timeout": "20s",
	               "allow": [{"url": "%[1]s/api/", "methods": ["GET", "POST"]}, {"url": "http://169.254.169.254/"}]},
	  "secrets": {"token": {"env": "FETCH_TOKEN", "header": "Authorization", "prefix": "Bearer "}},
	  "grants": [{"tenant": "default", "workflow": "fetch"}, {"tenant": "default", "workflow": "fetch-rust"}, {"tenant": "default", "workflow": "fetch-ts"}, {"tenant": "default", "workflow": "fetch-py"}]%s}}}`, s.URL, more)
	file := filepath.Join(t.TempDir(), "resources.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--resources=" + file
}

// Requests through the real server to an arbitrary outside.
func TestFetch(t *testing.T) {
	s := newService(t)
	arg := s.resources(t, "")
	for _, lang := range languages("tinygo", "go", "rust", "ts", "py") {
		t.Run(lang, func(t *testing.T) {
			p := hosttest.Serve(t, t.TempDir(), arg)
			name := putFetch(t, p, lang)
			expect(t, p.Result(t, name, in("one", fields{"path": "page"})), `{"asked":1,"length":11,"status":200}`)
			expect(t, p.Result(t, name, in("one", fields{"path": "500"})), `{"asked":2,"length":0,"status":500}`)
			expect(t, p.Result(t, name, start(fields{"path": "secret"})), fmt.Sprintf(`{"asked":1,"length":%d,"status":200}`, len("Bearer [secret]")))
			for path, want := range map[string]string{
				"private":         "is link-local: the resource may not reach it",
				"huge":            "more than 1048576 bytes (response_bytes)",
				"endless":         "more than 1048576 bytes (response_bytes)",
				"garbage":         "cannot be read",
				"../secret":       "has a part that is ..",
				"page%2f..%2fx":   "has %2f",
				"//evil.test/api": "two slashes",
			} {
				r := p.Run(t, name, start(fields{"path": path}))
				if r.Status != "failed" || !strings.Contains(r.Error, want) {
					t.Errorf("%s: %s %q, want %q", path, r.Status, r.Error, want)
				}
			}
			r := p.Run(t, name, start(fields{"path": "page", "method": "DELETE"}))
			if r.Status != "failed" || !strings.Contains(r.Error, "the resource grants GET, POST there") {
				t.Errorf("%+v", r)
			}
			cancelFetch(t, s, p, name)
		})
	}
}

// cancelFetch cancels a run whose request hangs; the request is cancelled too.
func cancelFetch(t *testing.T, s *service, p *hosttest.Process, name string) {
	for len(s.came) > 0 {
		next(t, s.came)
	}
	r := p.RunNoWait(t, name, start(fields{"path": "hang"}))
	expect(t, next(t, s.came), "GET /api/hang")
	_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
	if !strings.Contains(string(out), `"waiting_for":[{"step":"fetch","resource":"web",`) {
		t.Errorf("the record does not say what it waits for: %s", out)
	}
	if status, out := p.Do(t, http.MethodPost, "/handlers/"+r.HandlerID+"/cancel", nil); status != http.StatusOK {
		t.Fatalf("cancel: %d %s", status, out)
	}
	next(t, s.gone)
}

// A server that is killed during a request makes the request again under the same key, or
// tells the step that the outcome is unknown.
func TestKilledWhileARequestIsUnderWay(t *testing.T) {
	for _, lang := range []string{"go", "rust"} {
		for _, mode := range []string{"repeat", "read_only", "fail"} {
			t.Run(lang+" "+mode, func(t *testing.T) { killFetch(t, lang, mode) })
		}
	}
}

func killFetch(t *testing.T, lang, mode string) {
	s := newService(t)
	arg := s.resources(t, fmt.Sprintf(`, "mode": %q`, mode))
	data := t.TempDir()
	p := hosttest.Serve(t, data, arg)
	name := putFetch(t, p, lang)
	r := p.RunNoWait(t, name, in("one", fields{"path": "first-hangs", "method": "POST", "body": "tea"}))
	expect(t, next(t, s.came), "POST /api/first-hangs")
	p = kill(t, p, data, arg)
	next(t, s.gone)
	p.Events(t, r.HandlerID, "", nil) // reads to the end
	_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
	var got hosttest.Record
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if mode == "fail" {
		if got.Status != "failed" || !strings.Contains(got.Error, "outcome unknown") || len(s.keys) != 1 {
			t.Errorf("%s, %d requests", out, len(s.keys))
		}
	} else if got.Status != "completed" || len(s.keys) != 2 || s.keys[0] != s.keys[1] || len(s.keys[0]) != 32 {
		t.Errorf("%s, keys %q", out, s.keys)
	}
	// The run's other effects exist once.
	expect(t, p.Result(t, name, in("one", fields{"path": "page"})), `{"asked":2,"length":11,"status":200}`)
}

// putFetch uploads the plugin in one of its languages and returns the workflow's name.
func putFetch(t *testing.T, p *hosttest.Process, lang string) (workflow string) {
	t.Helper()
	workflow = inLanguage("fetch", lang)
	put(t, p, workflow, hosttest.Plugin(t, "fetch-"+lang))
	return workflow
}

// A server that is stopped cleanly leaves a request to the next server.
func TestStoppedWhileARequestIsUnderWay(t *testing.T) {
	s := newService(t)
	arg := s.resources(t, "")
	data := t.TempDir()
	p := hosttest.Serve(t, data, arg)
	put(t, p, "fetch", hosttest.Plugin(t, "fetch-go"))
	r := p.RunNoWait(t, "fetch", start(fields{"path": "first-hangs"}))
	expect(t, next(t, s.came), "GET /api/first-hangs")
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p = hosttest.Serve(t, data, arg)
	if events := p.Events(t, r.HandlerID, "", nil); len(events) != 1 || events[0].Type != "StopEvent" {
		t.Errorf("events %v", events)
	}
	if len(s.keys) != 2 || s.keys[0] != s.keys[1] {
		t.Errorf("keys %q", s.keys)
	}
}

func TestAStartNeedsItsResource(t *testing.T) {
	p := hosttest.Serve(t, t.TempDir())
	put(t, p, "fetch", hosttest.Plugin(t, "fetch-go"))
	status, out := p.Do(t, http.MethodPost, "/workflows/fetch/run", start(fields{"path": "page"}))
	if status != http.StatusForbidden || !strings.Contains(string(out), "the resource 'web' (kind http) is not granted to workflow 'fetch' of tenant 'default'") {
		t.Errorf("%d %s", status, out)
	}
}
