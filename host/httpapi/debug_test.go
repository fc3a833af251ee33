package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/httpapi"
)

// TestDebug: profiles and metrics are available on this machine, or with the key.
func TestDebug(t *testing.T) {
	series := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("series")) })
	open := httpapi.NewDebug(httpapi.DebugConfig{Addr: "127.0.0.1:6060", Metrics: series})
	keyed := httpapi.NewDebug(httpapi.DebugConfig{Addr: "0.0.0.0:6060", Key: "secret", Metrics: series})
	for _, tt := range []struct {
		name    string
		d       *httpapi.Debug
		path    string
		headers []string
		status  int
		has     string
	}{
		{"index", open, "/debug/pprof/", nil, 200, "goroutine"},
		{"a profile", open, "/debug/pprof/goroutine?debug=1", nil, 200, "goroutine profile:"},
		{"metrics", open, "/metrics", nil, 200, "series"},
		{"nothing else", open, "/workflows", nil, 404, ""},
		{"rebinding", open, "/metrics", []string{"Host", "evil.example"}, 403, ""},
		{"a page", open, "/metrics", []string{"Origin", "https://evil.example"}, 403, ""},
		{"no key", keyed, "/metrics", nil, 401, "--debug-key-file"},
		{"a wrong key", keyed, "/debug/pprof/heap", []string{"Authorization", "Bearer secre"}, 401, ""},
		{"the key", keyed, "/metrics", []string{"Authorization", "Bearer secret"}, 200, "series"},
		{"the key, by any name", keyed, "/metrics", []string{"Authorization", "Bearer secret", "Host", "weft.example"}, 200, "series"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, w := request(tt.d, "GET", tt.path, "", tt.headers...)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.has) || w.Header().Get("X-Request-Id") == "" {
				t.Errorf("%d %.200s", w.Code, w.Body)
			}
			if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("%v", w.Header())
			}
		})
	}
}
