package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/host/httpapi"
)

// TestObserve: each request is reported with its route's pattern and its status. Invented
// paths and methods are not reported as routes or methods.
func TestObserve(t *testing.T) {
	f := newFake(t)
	var seen []string
	s := newServer(t, f, func(c *httpapi.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write([]byte("series"))
		})
		c.Observe = func(route, method string, status int, took time.Duration) {
			seen = append(seen, fmt.Sprintf("%s %s %d", method, route, status))
			if took < 0 {
				t.Error(took)
			}
		}
	})
	h := s.Handler()
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/metrics", "", "GET /metrics 200"},
		{"GET", "/handlers/nobody", "", "GET /handlers/:id 404"},
		{"POST", "/workflows/plain/run", `{"handler_id": 5}`, "POST /workflows/:name/run 400"},
		{"POST", "/workflows/plain/run", `{}`, "POST /workflows/:name/run 200"},
		{"GET", "/made/up", "", "GET  404"},
		{"BREW", "/metrics", "", "other /metrics 405"},
	} {
		seen = nil
		w := call(t, h, c.method, c.path, c.body)
		if c.path == "/metrics" && c.method == "GET" && w.Body.String() != "series" {
			t.Errorf("metrics: %s", w.Body)
		}
		if !slices.Equal(seen, []string{c.want}) {
			t.Errorf("%s %s is told as %q, want %q", c.method, c.path, seen, c.want)
		}
	}
}
