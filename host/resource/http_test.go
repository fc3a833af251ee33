package resource

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

const testSecret = "s3cret/with+signs"

// from is where the tests' secrets are.
var from = Sources{
	Env: func(name string) (string, bool) {
		return map[string]string{"TOKEN": testSecret, "SHORT": "short"}[name], name == "TOKEN" || name == "SHORT"
	},
	ReadFile: func(name string) ([]byte, error) {
		if name == "/token" {
			return []byte(testSecret + "\n"), nil
		}
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	},
}

// crm is a table with the resource crm for a service, with further settings.
func crm(t *testing.T, service *httptest.Server, settings, rest string) *Table {
	t.Helper()
	text := fmt.Sprintf(`{"resources": {"crm": {"kind": "http",
	  "settings": {"base_url": "%s/api/", "allow": [{"url": "%[1]s/api/", "methods": ["GET", "POST", "HEAD"]}], "networks": ["127.0.0.0/8", "::1"]%s},
	  "grants": [{"tenant": "*", "workflow": "*"}]%s}}}`, service.URL, settings, rest)
	table, err := ParseFile([]byte(text), from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return table
}

type answer struct {
	status  int64
	headers map[string]any
	body    string
}

// do makes a call as a step does.
func do(t *testing.T, table *Table, payload map[string]any) (answer, *abi.Error) {
	t.Helper()
	return doCtx(t, t.Context(), table, payload)
}

func doCtx(t *testing.T, ctx context.Context, table *Table, payload map[string]any) (answer, *abi.Error) {
	t.Helper()
	raw, err := abi.EncodeValue(payload)
	if err != nil {
		t.Fatal(err)
	}
	resp, fail := table.Call(ctx, host.ResourceCall{
		User: host.ResourceUser{Tenant: "t", Workflow: "w"}, Resource: "crm", Method: "request", Payload: raw, Key: "the-key", Mode: host.ResourceRepeat,
	})
	if fail != nil {
		if strings.Contains(fail.Message, testSecret) || strings.Contains(fail.Message, url.QueryEscape(testSecret)) {
			t.Errorf("the error has the secret: %s", fail.Message)
		}
		return answer{}, fail
	}
	v, err := abi.DecodeValue(resp)
	if err != nil {
		t.Fatal(err)
	}
	m := v.(map[string]any)
	return answer{m["status"].(int64), m["headers"].(map[string]any), string(m["body"].([]byte))}, nil
}

// serve starts a service.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func wantFail(t *testing.T, fail *abi.Error, code, words string) {
	t.Helper()
	if fail == nil || fail.Code != code || !strings.Contains(fail.Message, words) {
		t.Errorf("got %v, want %s with %q", fail, code, words)
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	var body bytes.Buffer
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body.Reset()
		_, _ = body.ReadFrom(r.Body)
		w.Header().Add("X-Many", "a")
		w.Header().Add("X-Many", "b")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte{0xff, 'x'})
	})
	table := crm(t, s, "", "")
	a, fail := do(t, table, map[string]any{
		"method": "POST", "path": "things/1", "query": map[string]any{"q": "a b", "r": []any{"1", "2"}},
		"headers": map[string]any{"X-Mine": "yes", "content-type": "text/csv"}, "body": "a,b",
	})
	if fail != nil {
		t.Fatal(fail)
	}
	if a.status != 418 || a.body != "\xffx" || fmt.Sprint(a.headers["x-many"]) != "[a b]" {
		t.Errorf("answer %+v", a)
	}
	if got.Method != "POST" || got.URL.Path != "/api/things/1" || got.URL.RawQuery != "q=a+b&r=1&r=2" || body.String() != "a,b" {
		t.Errorf("request %s %s %q", got.Method, got.URL, body.String())
	}
	for name, want := range map[string]string{"Idempotency-Key": "the-key", "X-Mine": "yes", "Content-Type": "text/csv", "User-Agent": "weft"} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q", name, got.Header.Get(name))
		}
	}
	a, fail = do(t, table, map[string]any{"url": s.URL + "/api/x", "expect_success": true})
	wantFail(t, fail, "failed_precondition", "418 I'm a teapot")
	if _, fail = do(t, table, map[string]any{"method": "HEAD", "path": "x"}); fail != nil {
		t.Error(fail)
	}
	_ = a
}

func TestPayloadsAreChecked(t *testing.T) {
	var served atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	table := crm(t, s, `, "request_bytes": 10`, `, "secrets": {"token": {"env": "TOKEN", "header": "x-api-key"}}`)
	many := map[string]any{}
	for i := range maxHeaders + 1 {
		many[fmt.Sprint("x-", i)] = "v"
	}
	for _, c := range []struct {
		payload     map[string]any
		code, words string
	}{
		{map[string]any{}, "invalid_message", "either url"},
		{map[string]any{"url": s.URL + "/api/", "path": "x"}, "invalid_message", "either url"},
		{map[string]any{"path": "x", "metod": "GET"}, "invalid_message", `unknown name "metod"`},
		{map[string]any{"path": "x", "method": "get"}, "invalid_message", "upper case"},
		{map[string]any{"path": "x", "method": "GE T"}, "invalid_message", "method"},
		{map[string]any{"path": "x", "method": "DELETE"}, "permission_denied", "the resource grants GET, POST, HEAD there"},
		{map[string]any{"path": "x", "timeout": 0}, "invalid_message", "nanoseconds"},
		{map[string]any{"path": "x", "body": 1}, "invalid_message", "body must be"},
		{map[string]any{"path": "x", "body": "eleven bytes"}, "limit_exceeded", "request_bytes"},
		{map[string]any{"path": "x", "headers": map[string]any{"Host": "evil"}}, "invalid_message", "set by the server"},
		{map[string]any{"path": "x", "headers": map[string]any{"idempotency-key": "1"}}, "invalid_message", "set by the server"},
		{map[string]any{"path": "x", "headers": map[string]any{"proxy-authorization": "1"}}, "invalid_message", "set by the server"},
		{map[string]any{"path": "x", "headers": map[string]any{"X": "a\r\nY: b"}}, "invalid_message", "control characters"},
		{map[string]any{"path": "x", "headers": map[string]any{"X:": "a"}}, "invalid_message", "not a name"},
		{map[string]any{"path": "x", "headers": map[string]any{"A-B": "a", "a-b": "b"}}, "invalid_message", "twice"},
		{map[string]any{"path": "x", "headers": many}, "invalid_message", "65 headers"},
		{map[string]any{"path": "x", "headers": map[string]any{"X-Api-Key": "mine"}}, "permission_denied", "secret of the resource"},
		{map[string]any{"path": "../admin"}, "permission_denied", ".."},
		{map[string]any{"path": "/\\evil.test/"}, "permission_denied", "backslash"},
		{map[string]any{"path": "//evil.test/"}, "permission_denied", "two slashes"},
		{map[string]any{"path": "x#y"}, "permission_denied", "fragment"},
		{map[string]any{"path": "x?a=b", "query": map[string]any{"c": "d"}}, "permission_denied", "query already"},
		{map[string]any{"url": s.URL + "/admin"}, "permission_denied", "the resource grants " + s.URL + "/api/"},
		{map[string]any{"url": "http://user:pw@127.0.0.1/"}, "permission_denied", "user name"},
	} {
		_, fail := do(t, table, c.payload)
		wantFail(t, fail, c.code, c.words)
	}
	if _, fail := table.Call(t.Context(), host.ResourceCall{Resource: "crm", Method: "delete_all", Payload: abi.EmptyMap}); fail == nil || fail.Code != "not_found" {
		t.Errorf("another method: %v", fail)
	}
	if _, fail := table.Call(t.Context(), host.ResourceCall{Resource: "other", Method: "request", Payload: abi.EmptyMap}); fail == nil || fail.Code != "permission_denied" {
		t.Errorf("another resource: %v", fail)
	}
	if served.Load() != 0 {
		t.Errorf("%d requests were made", served.Load())
	}
}

// A name is worth what it resolves to when it is dialled.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
	at, _ := url.Parse(s.URL)
	for _, name := range []string{"localhost", "127.0.0.1"} {
		text := fmt.Sprintf(`{"resources": {"crm": {"kind": "http", "settings": {"allow": [{"url": "http://%s:%s/"}], "networks": ["10.0.0.0/8"]},
		  "grants": [{"tenant": "*", "workflow": "*"}]}}}`, name, at.Port())
		table, err := ParseFile([]byte(text), from)
		if err != nil {
			t.Fatal(err)
		}
		_, fail := do(t, table, map[string]any{"url": "http://" + net.JoinHostPort(name, at.Port()) + "/"})
		wantFail(t, fail, "permission_denied", "is loopback")
		table.Close()
	}
}

func TestRedirects(t *testing.T) {
	var elsewhere atomic.Pointer[http.Request]
	other := serve(t, func(w http.ResponseWriter, r *http.Request) { elsewhere.Store(r) })
	var last atomic.Pointer[http.Request]
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		last.Store(r)
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			status := http.StatusFound
			if r.URL.Query().Get("keep") != "" {
				status = http.StatusTemporaryRedirect
			}
			w.WriteHeader(status)
			return
		}
		if r.URL.Path == "/api/loop" {
			http.Redirect(w, r, "/api/loop", http.StatusSeeOther)
		}
	})
	rules := fmt.Sprintf(`[{"url": "%s/api/", "methods": ["GET", "POST"]}, {"url": "%s/ok/", "methods": ["GET", "POST"]}, {"url": "http://127.1.1.1:1/"}]`, s.URL, other.URL)
	text := fmt.Sprintf(`{"resources": {"crm": {"kind": "http", "settings": {"base_url": "%s/api/", "allow": %s, "networks": ["127.0.0.1"], "redirects": 2},
	  "secrets": {"token": {"env": "TOKEN", "header": "x-api-key"}, "more": {"file": "/token", "query": "key"}},
	  "grants": [{"tenant": "*", "workflow": "*"}]}}}`, s.URL, rules)
	table, err := ParseFile([]byte(text), from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	to := func(where string, more ...string) (answer, *abi.Error) {
		query := map[string]any{"to": where}
		for _, name := range more {
			query[name] = "1"
		}
		return do(t, table, map[string]any{"method": "POST", "path": "x", "query": query, "body": "b", "headers": map[string]any{"Authorization": "guest's"}})
	}
	if a, fail := to("/api/y"); fail != nil || a.status != 200 {
		t.Fatal(a, fail)
	}
	if r := last.Load(); r.Method != "GET" || r.URL.Path != "/api/y" || r.Header.Get("X-Api-Key") != testSecret || r.URL.Query().Get("key") != testSecret || r.Header.Get("Authorization") != "guest's" || r.Header.Get("Content-Type") != "" {
		t.Errorf("within the origin: %s %s %v", r.Method, r.URL, r.Header)
	}
	if a, fail := to(other.URL+"/ok/y", "keep"); fail != nil || a.status != 200 {
		t.Fatal(a, fail)
	}
	if r := elsewhere.Load(); r.Method != "POST" || r.ContentLength != 1 || r.Header.Get("X-Api-Key") != "" || r.URL.RawQuery != "" || r.Header.Get("Authorization") != "" {
		t.Errorf("to another origin: %s %s %v", r.Method, r.URL, r.Header)
	}
	for where, words := range map[string]string{
		other.URL + "/no/":          "a redirect leads elsewhere",
		"/admin":                    "a redirect leads elsewhere",
		"/api/../admin":             "a redirect leads elsewhere",
		"/api/%2e%2e/admin":         "a redirect leads elsewhere",
		"//169.254.169.254/latest/": "a redirect leads elsewhere",
		"http://[::ffff:7f00:1]/":   "a redirect leads elsewhere",
		"file:///etc/passwd":        "a redirect leads elsewhere",
		"http://x@127.0.0.1/api/":   "a redirect leads elsewhere",
		"http:\\\\127.0.0.1\\api":   "a redirect leads elsewhere",
		"http://127.1.1.1:1/x":      "is loopback",
	} {
		_, fail := to(where)
		wantFail(t, fail, "permission_denied", words)
	}
	_, fail := do(t, table, map[string]any{"path": "loop"})
	wantFail(t, fail, "limit_exceeded", "more than 2 times")
}

func TestSecrets(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = fmt.Fprintf(w, "you sent %s and %s", r.Header.Get("Authorization"), r.URL.RawQuery)
	})
	table := crm(t, s, "", `, "secrets": {"token": {"env": "TOKEN", "header": "Authorization", "prefix": "Bearer "}, "q": {"file": "/token", "query": "key"}}`)
	a, fail := do(t, table, map[string]any{"path": "x?a=b"})
	if fail != nil {
		t.Fatal(fail)
	}
	if a.body != "you sent Bearer [secret] and a=b&key=[secret]" || fmt.Sprint(a.headers["x-echo"]) != "[Bearer [secret]]" {
		t.Errorf("%+v", a)
	}
	s.Close()
	_, fail = do(t, table, map[string]any{"path": "x"})
	wantFail(t, fail, "unavailable", "refuses the connection")
	if fail.Retryable != nil {
		t.Error("a connection that is refused may be tried again")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	goOn := make(chan struct{})
	t.Cleanup(func() { close(goOn) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/declared":
			w.Header().Set("Content-Length", "2147483648")
			_, _ = w.Write([]byte("x"))
		case "/api/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/api/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
			_ = z.Close()
		case "/api/headers":
			for i := range 100 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		case "/api/garbage":
			c, _, _ := w.(http.Hijacker).Hijack()
			_, _ = c.Write([]byte("\x00\x01garbage\r\n\r\n"))
			_ = c.Close()
		case "/api/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
		case "/api/hang":
			select {
			case <-r.Context().Done():
			case <-goOn:
			}
		case "/api/whole":
			_, _ = w.Write(make([]byte, 1000))
		}
	})
	table := crm(t, s, `, "response_bytes": 1000, "header_bytes": 4096`, "")
	for path, want := range map[string][2]string{
		"declared": {"limit_exceeded", "more than 1000 bytes (response_bytes)"},
		"endless":  {"limit_exceeded", "more than 1000 bytes (response_bytes)"},
		"bomb":     {"limit_exceeded", "more than 1000 bytes (response_bytes)"},
		"headers":  {"limit_exceeded", "header_bytes"},
		"garbage":  {"unavailable", "cannot be read"},
		"cut":      {"unavailable", "ended the connection"},
	} {
		_, fail := do(t, table, map[string]any{"path": path})
		wantFail(t, fail, want[0], want[1])
	}
	if a, fail := do(t, table, map[string]any{"path": "whole"}); fail != nil || len(a.body) != 1000 {
		t.Errorf("%d bytes, %v", len(a.body), fail)
	}
	_, fail := do(t, table, map[string]any{"path": "hang", "timeout": 1_000_000})
	wantFail(t, fail, "timeout", "no answer within 1ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, fail := doCtx(t, ctx, table, map[string]any{"path": "hang"}); fail == nil {
		t.Error("a call that nobody wants goes on")
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, fail := do(t, crm(t, s, "", ""), map[string]any{"path": "x"})
	wantFail(t, fail, "permission_denied", "certificate of 127.0.0.1 is not trusted")
}

// In mode fail a request is sent once, whatever its connection does: a kept one
// that turns out dead would have it sent again.
func TestModeFailSendsOnce(t *testing.T) {
	var requests, connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 { // the connection is used again: end it without an answer
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	table := crm(t, s, "", "")
	call := func() *abi.Error {
		raw, _ := abi.EncodeValue(map[string]any{"path": "x", "method": "POST", "body": "b"})
		_, fail := table.Call(t.Context(), host.ResourceCall{Resource: "crm", Method: "request", Payload: raw, Key: "k", Mode: host.ResourceFail})
		return fail
	}
	if fail := call(); fail != nil {
		t.Fatal(fail)
	}
	wantFail(t, call(), "unavailable", "ended the connection")
	if requests.Load() != 2 || connections.Load() != 2 {
		t.Errorf("%d requests on %d connections, want 2 on 2", requests.Load(), connections.Load())
	}
}

// However an answer writes a secret, it is put out.
func TestSecretsArePutOutInEveryForm(t *testing.T) {
	const value = `s3cr/t+<"token">&\x`
	s := secret{value: value, prefix: "Bearer "}
	k := newHTTP(httpSettings{}, []secret{s}, nil)
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	said := []string{value, url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value), string(quoted),
		inJSON(value, false), strings.ReplaceAll(inJSON(value, false), "/", `\/`)}
	for _, around := range []string{"", "B", "Be", "Bearer ", "user:"} {
		for _, after := range []string{"", "!", "!!", " and more"} {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				said = append(said, e.EncodeToString([]byte(around+value+after)))
			}
		}
	}
	for _, text := range said {
		got := string(k.blot([]byte("it says " + text + " here")))
		if !strings.Contains(got, "[secret]") || !strings.HasPrefix(got, "it says ") || !strings.HasSuffix(got, " here") {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := string(k.blot([]byte("nothing of that"))); got != "nothing of that" {
		t.Errorf("got %q", got)
	}
}
