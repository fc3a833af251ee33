package console

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

const rightKey, otherKey = "weft_right", "weft_other"

// fakeAPI is an API with two keys, each of a tenant. It says by which key a request came.
func fakeAPI(keyed bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if keyed && key != rightKey && key != otherKey {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"detail":"a key is needed"}`)
			return
		}
		if r.URL.Path == "/whoami" {
			_, _ = fmt.Fprintf(w, `{"tenant":"of %s"}`, key)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s by %q", r.Method, r.URL, r.Header.Get("Authorization"))
	})
}

// world is a console before a fake API, with a clock that stands still.
type world struct {
	t   *testing.T
	now time.Time
	h   http.Handler
	c   *Console
}

func newWorld(t *testing.T, keyed bool) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.c = New(func() time.Time { return w.now })
	w.h = w.c.Around(fakeAPI(keyed))
	return w
}

// do makes a request with headers given as "Name: value".
func (w *world) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	out := httptest.NewRecorder()
	w.h.ServeHTTP(out, r)
	return out
}

const mark = Header + ": 1"

// signIn returns the header with the cookie.
func (w *world) signIn() string {
	w.t.Helper()
	return w.signInWith(rightKey)
}

func (w *world) signInWith(key string) string {
	w.t.Helper()
	out := w.do("POST", "/console/session", `{"key":"`+key+`"}`, mark)
	if out.Code != http.StatusNoContent || len(out.Result().Cookies()) != 1 {
		w.t.Fatalf("the sign-in: %d %s", out.Code, out.Body)
	}
	c := out.Result().Cookies()[0]
	return "Cookie: " + c.Name + "=" + c.Value
}

// Every answer of the console has the policy, whatever the path, the method and the outcome.
func TestHeaders(t *testing.T) {
	w := newWorld(t, true)
	index := w.do("GET", "/console/", "").Body.String()
	script := regexp.MustCompile(`/console/(assets/index-[\w-]+\.js)`).FindStringSubmatch(index)
	if script == nil {
		t.Fatalf("the page has no script:\n%s", index)
	}
	style := regexp.MustCompile(`/console/(assets/index-[\w-]+\.css)`).FindStringSubmatch(index)
	if style == nil {
		t.Fatalf("the page has no style sheet:\n%s", index)
	}
	for _, test := range []struct {
		method, path, cache, kind string
		code                      int
	}{
		{"GET", "/console/", "no-store", "text/html; charset=utf-8", 200},
		{"HEAD", "/console/", "no-store", "text/html; charset=utf-8", 200},
		{"GET", "/console/runs/a%2Fb", "no-store", "text/html; charset=utf-8", 200},
		{"GET", "/console/licences.txt", "no-store", "text/plain; charset=utf-8", 200},
		{"GET", "/console/" + script[1], "max-age=31536000, immutable", "text/javascript; charset=utf-8", 200},
		{"GET", "/console/" + style[1], "max-age=31536000, immutable", "text/css; charset=utf-8", 200},
		{"GET", "/console/assets/index-old.js", "no-store", "text/plain; charset=utf-8", 404},
		{"GET", "/console/assets/../../console.go", "no-store", "text/plain; charset=utf-8", 404},
		{"POST", "/console/", "no-store", "text/plain; charset=utf-8", 405},
		{"GET", "/console", "no-store", "text/html; charset=utf-8", 302},
		{"GET", "/console/session", "no-store", "application/json", 403},
		{"PUT", "/console/session", "no-store", "application/json", 405},
	} {
		out := w.do(test.method, test.path, "")
		h := out.Header()
		if out.Code != test.code || h.Get("Cache-Control") != test.cache || h.Get("Content-Type") != test.kind {
			t.Errorf("%s %s: %d, %q, %q", test.method, test.path, out.Code, h.Get("Cache-Control"), h.Get("Content-Type"))
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; " +
				"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
		} {
			if got := h.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s %s: %s: %q", test.method, test.path, name, got)
			}
		}
		if test.method == "HEAD" && out.Body.Len() != 0 {
			t.Errorf("%s %s has a body", test.method, test.path)
		}
	}
}

// A file is compressed for those who take it, and not sent again to those who have it.
func TestEncodings(t *testing.T) {
	w := newWorld(t, true)
	plain := w.do("GET", "/console/", "")
	for accept, packed := range map[string]bool{"gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip;q=0.0": false, "identity": false, "xgzip": false} {
		out := w.do("GET", "/console/", "", "Accept-Encoding: "+accept)
		if got := out.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%q: compressed is %t", accept, got)
			continue
		}
		body := io.Reader(out.Body)
		if packed {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != plain.Body.String() {
			t.Errorf("%q: %v, another page", accept, err)
		}
	}
	if out := w.do("GET", "/console/", "", "If-None-Match: "+plain.Header().Get("ETag")); out.Code != http.StatusNotModified || out.Body.Len() != 0 {
		t.Errorf("the page that a client has: %d", out.Code)
	}
}

// A browser that opens the root address sees the console; programs see the API.
func TestRoot(t *testing.T) {
	w := newWorld(t, false)
	for accept, there := range map[string]bool{"text/html,application/xhtml+xml,*/*;q=0.8": true, "*/*": false, "": false, "application/json": false} {
		out := w.do("GET", "/", "", "Accept: "+accept)
		if got := out.Code == http.StatusFound && out.Header().Get("Location") == "/console/"; got != there {
			t.Errorf("%q: %d", accept, out.Code)
		}
	}
	if out := w.do("POST", "/", "", "Accept: text/html"); out.Code != http.StatusOK {
		t.Errorf("POST /: %d", out.Code)
	}
}

// The cookie counts only for requests of the console itself.
func TestWhoMayUseTheCookie(t *testing.T) {
	w := newWorld(t, true)
	cookie := w.signIn()
	for _, test := range []struct {
		name    string
		headers []string
		code    int
	}{
		{"the console", []string{mark, cookie}, 200},
		{"the console, as newer browsers say", []string{mark, cookie, "Sec-Fetch-Site: same-origin"}, 200},
		{"its own origin", []string{mark, cookie, "Origin: http://example.com"}, 200},
		{"behind a proxy that ends TLS", []string{mark, cookie, "Origin: https://example.com", "Sec-Fetch-Site: same-origin"}, 200},
		{"no mark", []string{cookie}, 401},
		{"another mark", []string{Header + ": 0", cookie}, 401},
		{"two marks", []string{mark, mark, cookie}, 401},
		{"another site", []string{mark, cookie, "Sec-Fetch-Site: cross-site"}, 401},
		{"another port", []string{mark, cookie, "Sec-Fetch-Site: same-site"}, 401},
		{"the address bar", []string{mark, cookie, "Sec-Fetch-Site: none"}, 401},
		{"two sites", []string{mark, cookie, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-origin"}, 401},
		{"another origin", []string{mark, cookie, "Origin: http://evil.example"}, 401},
		{"a sandboxed page", []string{mark, cookie, "Origin: null"}, 401},
		{"no cookie", []string{mark}, 401},
		{"an invented cookie", []string{mark, "Cookie: weft-console=abc"}, 401},
		{"an empty cookie", []string{mark, "Cookie: weft-console="}, 401},
		{"two cookies", []string{mark, cookie + "; weft-console=abc"}, 401},
		{"the cookie of TLS", []string{mark, strings.Replace(cookie, "weft-console", "__Host-weft", 1)}, 401},
		{"a key of its own, which decides", []string{mark, cookie, "Authorization: Bearer weft_wrong"}, 401},
	} {
		if out := w.do("GET", "/handlers", "", test.headers...); out.Code != test.code {
			t.Errorf("%s: %d", test.name, out.Code)
		}
	}
}

func TestSignIn(t *testing.T) {
	w := newWorld(t, true)
	for _, test := range []struct {
		name, body string
		headers    []string
		code       int
	}{
		{"a wrong key", `{"key":"weft_wrong"}`, []string{mark}, 401},
		{"no key", `{"key":" "}`, []string{mark}, 400},
		{"a key that leaves its header", `{"key":"a\r\nX: y"}`, []string{mark}, 400},
		{"no JSON", `key=x`, []string{mark}, 400},
		{"more than a key", `{"key":"x","role":"admin"}`, []string{mark}, 400},
		{"too much", `{"key":"` + strings.Repeat("x", 5000) + `"}`, []string{mark}, 400},
		{"a form of another page", `{"key":"` + rightKey + `"}`, nil, 403},
		{"another origin", `{"key":"` + rightKey + `"}`, []string{mark, "Origin: http://evil.example"}, 403},
	} {
		out := w.do("POST", "/console/session", test.body, test.headers...)
		if out.Code != test.code || len(out.Result().Cookies()) != 0 || !json.Valid(out.Body.Bytes()) {
			t.Errorf("%s: %d %s", test.name, out.Code, out.Body)
		}
	}
	ask := func(headers ...string) string {
		return strings.TrimSpace(w.do("GET", "/console/session", "", append(headers, mark)...).Body.String())
	}
	if got := ask(); got != `{"session":"signed-out"}` {
		t.Errorf("before the sign-in: %s", got)
	}
	cookie := w.signIn()
	if got := ask(cookie); got != `{"session":"signed-in"}` {
		t.Errorf("after the sign-in: %s", got)
	}
	if out := w.do("DELETE", "/console/session", "", mark, cookie, "Origin: http://evil.example"); out.Code != http.StatusForbidden || ask(cookie) != `{"session":"signed-in"}` {
		t.Errorf("another page signed out: %d", out.Code)
	}
	if out := w.do("DELETE", "/console/session", "", mark, cookie); out.Code != http.StatusNoContent || out.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("the sign-out: %d", out.Code)
	}
	if got := ask(cookie); got != `{"session":"signed-out"}` {
		t.Errorf("after the sign-out: %s", got)
	}
	if got := strings.TrimSpace(newWorld(t, false).do("GET", "/console/session", "", mark).Body.String()); got != `{"session":"keyless"}` {
		t.Errorf("without keys: %s", got)
	}
}

// The cookie has every attribute that keeps it from scripts and other sites.
func TestCookie(t *testing.T) {
	w := newWorld(t, true)
	for _, encrypted := range []bool{false, true} {
		r := httptest.NewRequest("POST", "/console/session", strings.NewReader(`{"key":"`+rightKey+`"}`))
		r.Header.Set(Header, "1")
		want := `^weft-console=[\w-]{43}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$`
		if encrypted {
			r.TLS = &tls.ConnectionState{}
			want = `^__Host-weft=[\w-]{43}; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict$`
		}
		out := httptest.NewRecorder()
		w.h.ServeHTTP(out, r)
		if got := out.Header().Get("Set-Cookie"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("encrypted %t: %q", encrypted, got)
		}
	}
}

// Sessions end after an hour without use, after twelve hours, and when there are too many.
func TestSessionsEnd(t *testing.T) {
	w := newWorld(t, true)
	in := func(cookie string) bool { return w.do("GET", "/handlers", "", mark, cookie).Code == http.StatusOK }
	idle := w.signIn()
	w.now = w.now.Add(MaxIdle - 1)
	if !in(idle) {
		t.Error("a session ended before its time")
	}
	w.now = w.now.Add(MaxIdle)
	if in(idle) {
		t.Error("a session outlived an hour without use")
	}
	old := w.signIn()
	for range int(MaxAge/MaxIdle)*2 - 1 {
		w.now = w.now.Add(MaxIdle / 2)
		if !in(old) {
			t.Fatal("a session in use ended before its time")
		}
	}
	w.now = w.now.Add(MaxIdle / 2)
	if in(old) {
		t.Error("a session outlived twelve hours")
	}
	other := w.signInWith(otherKey) // of another tenant: it makes no room
	w.now = w.now.Add(time.Second)
	first := w.signIn()
	w.now = w.now.Add(time.Second)
	second := w.signIn()
	for range MaxSessions - 1 {
		w.signIn()
	}
	if in(first) || !in(second) || !in(other) || len(w.c.sessions.byID) != MaxSessions+1 {
		t.Errorf("of too many sessions, the oldest is in %t, another %t, that of another tenant %t; %d are held", in(first), in(second), in(other), len(w.c.sessions.byID))
	}
	w.now = w.now.Add(MaxIdle)
	w.signIn()
	w.c.sessions.makeRoom("of "+rightKey, w.now)
	if len(w.c.sessions.byID) != 1 || len(w.c.sessions.of) != 1 || w.c.sessions.of["of "+rightKey] != 1 {
		t.Errorf("after all but one have ended: %d sessions, %v", len(w.c.sessions.byID), w.c.sessions.of)
	}
}

// No cookie that a client can send opens a session, or stops the console.
func FuzzCookies(f *testing.F) {
	for _, seed := range []string{"weft-console=", "weft-console=a; weft-console=b", `weft-console="`, "; =;,", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cookie string) {
		w := newWorld(t, true)
		w.signIn()
		if out := w.do("GET", "/handlers", "", mark, "Cookie: "+cookie); out.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", cookie, out.Code)
		}
	})
}
