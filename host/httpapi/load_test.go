package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/httpapi"
)

// TestShed: beyond its limits the server refuses by name, says when to retry, and answers
// probes; a request that ends makes room.
func TestShed(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f, func(c *httpapi.Config) { c.MaxRequests, c.MaxRequestBytes = 1, 1<<20 }).Handler()
	big := `{"start_event":{"text":"` + strings.Repeat("a", 2<<20) + `"}}`
	for range 3 { // the place is released each time
		w := call(t, h, "POST", "/workflows/plain/run", big)
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), `"too_large"`) ||
			!strings.Contains(w.Body.String(), "max-request-bytes") {
			t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if w := call(t, h, "POST", "/workflows/plain/run", `{}`); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	h = newServer(t, f, func(c *httpapi.Config) { c.MaxRequests = -1 }).Handler()
	if w := call(t, h, "GET", "/workflows", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "max-requests") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/health", "/ready"} {
		if w := call(t, h, "GET", path, ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
