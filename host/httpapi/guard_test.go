package httpapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi"
)

func TestGuard(t *testing.T) {
	const port = "localhost:8080"
	tests := []struct {
		name    string
		path    string
		headers []string
		want    int
	}{
		{"localhost", "/workflows", []string{"Host", port}, 200},
		{"any case, any port", "/workflows", []string{"Host", "LocalHost.:1"}, 200},
		{"IPv4", "/workflows", []string{"Host", "127.1.2.3:99"}, 200},
		{"IPv6", "/workflows", []string{"Host", "[::1]:8080"}, 200},
		{"IPv6 without port", "/workflows", []string{"Host", "[::1]"}, 200},
		{"own name", "/workflows", []string{"Host", "weft.internal:80"}, 200},
		{"address it listens on", "/workflows", []string{"Host", "10.0.0.7:8080"}, 200},
		{"rebound name", "/workflows", []string{"Host", "evil.example:8080"}, 403},
		{"name under localhost", "/workflows", []string{"Host", "localhost.evil.example"}, 403},
		{"other address", "/workflows", []string{"Host", "192.168.0.1:8080"}, 403},
		{"wildcard address", "/workflows", []string{"Host", "0.0.0.0:8080"}, 403},
		{"no host", "/workflows", []string{"Host", ""}, 403},
		{"health under any name", "/health", []string{"Host", "evil.example", "Origin", "null"}, 200},
		{"ready under any name", "/ready", []string{"Host", "10.1.1.1"}, 200},
		{"not below health", "/health/x", []string{"Host", "evil.example"}, 403},

		{"own origin", "/workflows", []string{"Host", port, "Origin", "http://localhost:8080"}, 200},
		{"own page", "/workflows", []string{"Host", port, "Origin", "http://localhost:8080", "Sec-Fetch-Site", "same-origin"}, 200},
		{"foreign origin", "/workflows", []string{"Host", port, "Origin", "https://evil.example"}, 403},
		{"other local port", "/workflows", []string{"Host", port, "Origin", "http://localhost:9090"}, 403},
		{"other local name", "/workflows", []string{"Host", port, "Origin", "http://127.0.0.1:8080"}, 403},
		{"other scheme", "/workflows", []string{"Host", port, "Origin", "https://localhost:8080"}, 403},
		{"null origin", "/workflows", []string{"Host", port, "Origin", "null"}, 403},
		{"empty origin", "/workflows", []string{"Host", port, "Origin", ""}, 403},
		{"two origins", "/workflows", []string{"Host", port, "Origin", "http://localhost:8080", "Origin", "https://evil.example"}, 403},
		{"allowed origin", "/workflows", []string{"Host", port, "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, 200},
		{"allowed origin, rebound", "/workflows", []string{"Host", "evil.example", "Origin", "https://app.example"}, 403},

		{"typed by the user", "/workflows", []string{"Host", port, "Sec-Fetch-Site", "none"}, 200},
		{"cross-site", "/workflows", []string{"Host", port, "Sec-Fetch-Site", "cross-site"}, 403},
		{"same-site", "/workflows", []string{"Host", port, "Sec-Fetch-Site", "same-site"}, 403},
		{"own origin but cross-site", "/workflows", []string{"Host", port, "Origin", "http://localhost:8080", "Sec-Fetch-Site", "cross-site"}, 403},
		{"unknown path", "/nope", []string{"Host", "evil.example"}, 403},
	}
	h := newServer(t, newFake(t), func(c *httpapi.Config) {
		c.Addr = "10.0.0.7:8080"
		c.AllowedHosts = []string{"Weft.internal"}
		c.CORSOrigins = []string{"https://app.example", "null"}
	}).Handler()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := call(t, h, "GET", tt.path, "", tt.headers...)
			if w.Code != tt.want {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if tt.want == http.StatusForbidden {
				wantError(t, w, 403, host.CodePermissionDenied)
			}
			allowed := w.Header().Get("Access-Control-Allow-Origin") == "https://app.example"
			if allowed != (tt.name == "allowed origin") {
				t.Errorf("Access-Control-Allow-Origin = %q", w.Header().Get("Access-Control-Allow-Origin"))
			}
		})
	}
}

func TestGuardBehindAWildcard(t *testing.T) {
	h := newServer(t, newFake(t), func(c *httpapi.Config) { c.Addr = "0.0.0.0:8080" }).Handler()
	wantError(t, call(t, h, "GET", "/workflows", "", "Host", "0.0.0.0:8080"), 403, host.CodePermissionDenied)
}

func TestPreflight(t *testing.T) {
	h := newServer(t, newFake(t), func(c *httpapi.Config) { c.CORSOrigins = []string{"https://app.example"} }).Handler()
	w := call(t, h, "OPTIONS", "/plugins/p", "", "Origin", "https://app.example",
		"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "content-type, x-a")
	if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Headers") != "content-type, x-a" ||
		!strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("answer = %d %v", w.Code, w.Header())
	}
	w = call(t, h, "OPTIONS", "/plugins/p", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "PUT")
	wantError(t, w, 403, host.CodePermissionDenied)
	if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("Access-Control-Allow-Origin = %q", got)
	}
}

func TestRouting(t *testing.T) {
	tests := []struct {
		method, path string
		want         int
		allow        string
	}{
		{"DELETE", "/workflows", 405, "GET, HEAD"},
		{"OPTIONS", "/workflows", 405, "GET, HEAD"},
		{"OPTIONS", "/nope", 404, ""},
		{"POST", "/health", 405, "GET, HEAD"},
		{"GET", "/workflows/hello/run", 405, "POST"},
		{"HEAD", "/workflows/hello/run", 405, "POST"},
		{"PATCH", "/plugins/p", 405, "DELETE, GET, HEAD, PUT"},
		{"HEAD", "/events/x", 405, "GET, POST"},
		{"QUERY", "/handlers", 405, "GET, HEAD"},
		{"GET", "/", 302, ""},
		{"GET", "/nope", 404, ""},
		{"GET", "/workflows/", 404, ""},
		{"DELETE", "/workflows/", 404, ""},
		{"GET", "/workflows//schema", 404, ""},
		{"GET", "/handlers/", 404, ""},
		{"GET", "/workflows/hello/schema/", 404, ""},
		{"GET", "/workflows/hello/nope", 404, ""},
		{"HEAD", "/workflows/hello/schema", 200, ""},
		{"GET", "/workflows/%68ello", 200, ""},
	}
	h := newServer(t, newFake(t)).Handler()
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			w := call(t, h, tt.method, tt.path, "")
			if w.Code != tt.want || w.Header().Get("Allow") != tt.allow {
				t.Fatalf("answer = %d, Allow %q, want %d, %q", w.Code, w.Header().Get("Allow"), tt.want, tt.allow)
			}
			switch tt.want {
			case 404:
				if got := wantError(t, w, 404, host.CodeNotFound); !strings.HasPrefix(got, "Not Found: ") {
					t.Errorf("detail = %q", got)
				}
			case 405:
				if got := wantError(t, w, 405, host.CodeMethodNotAllowed); got != "Method Not Allowed" {
					t.Errorf("detail = %q", got)
				}
			}
		})
	}
}

func TestHealth(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	f.unready = host.Errorf(host.CodeUnavailable, "draining")
	if w := call(t, h, "GET", "/health", ""); w.Code != 200 || w.Body.String() != `{"status":"healthy"}` || w.Header().Get("Server") != "weft/test" {
		t.Errorf("health = %d %s %v", w.Code, w.Body, w.Header())
	}
	w := call(t, h, "GET", "/ready", "")
	if w.Code != 503 || w.Body.String() != `{"status":"unhealthy","detail":"The server is not ready","code":"unavailable"}` &&
		w.Body.String() != `{"status":"unhealthy","detail":"draining","code":"unavailable"}` {
		t.Errorf("ready = %d %s", w.Code, w.Body)
	}
	f.unready, f.reduced = nil, "1 of 2 steps"
	if w := call(t, h, "GET", "/ready", ""); w.Code != 200 || w.Body.String() != `{"status":"healthy","reduced":"1 of 2 steps"}` {
		t.Errorf("/ready of a server that does less: %d %s", w.Code, w.Body)
	}
	f.unhealthy = errors.New("disk /secret/path is gone")
	if w := call(t, h, "GET", "/health", ""); w.Code != 503 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("health = %d %s", w.Code, w.Body)
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f, func(c *httpapi.Config) { c.Plugins = nil }).Handler() // a nil interface panics
	wantError(t, call(t, h, "GET", "/workflows", ""), 500, host.CodeInternal)
	// The server lives on.
	if w := call(t, h, "GET", "/health", ""); w.Code != 200 {
		t.Errorf("health = %d", w.Code)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	resp, err := s.Client().Get(s.URL + "/workflows")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 500 {
		t.Errorf("status = %d", resp.StatusCode)
	}
}
