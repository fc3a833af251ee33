package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/access"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/store/memory"
)

const adminKey = "the server's own admin key"

// keyed creates a server that needs keys, or without an admin key one that needs none.
func keyed(t testing.TB, admin string) (*fakeHost, *access.Service, http.Handler) {
	t.Helper()
	f := newFake(t)
	a, err := access.New(t.Context(), access.Config{Store: memory.New(), Runs: f, Plugins: fakePlugins{f}, AdminKey: admin})
	if err != nil {
		t.Fatal(err)
	}
	return f, a, newServer(t, f, func(c *httpapi.Config) { c.Access, c.CORSOrigins = a, []string{"https://app.example"} }).Handler()
}

// as is the header of a key.
func as(key string) []string { return []string{"Authorization", "Bearer " + key} }

// made reads the answer with a key or a tenant.
func made(t testing.TB, w *httptest.ResponseRecorder, status int) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != status {
		t.Fatalf("answer = %d %s, want %d", w.Code, w.Body, status)
	}
	return v
}

// newKey creates a key through the API.
func newKey(t testing.TB, h http.Handler, tenant string, role host.Role) (id, key string) {
	t.Helper()
	w := call(t, h, "POST", "/keys", `{"tenant":"`+tenant+`","role":"`+string(role)+`"}`, as(adminKey)...)
	k := made(t, w, 201)
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Error("an answer with a key may be stored")
	}
	return k["id"].(string), k["key"].(string)
}

func TestAuthentication(t *testing.T) {
	_, _, h := keyed(t, adminKey)
	_, key := newKey(t, h, "default", host.RoleRead)
	for _, tt := range []struct {
		name, path string
		headers    []string
		want       int
	}{
		{"no key", "/workflows", nil, 401},
		{"no key, no path", "/nope", nil, 401},
		{"no key, not the method", "/workflows/x/run", nil, 401},
		{"wrong key", "/workflows", as("weft_default_" + strings.Repeat("A", 43)), 401},
		{"empty key", "/workflows", as(""), 401},
		{"another scheme", "/workflows", []string{"Authorization", "Basic " + key}, 401},
		{"two keys", "/workflows", append(as(key), as(key)...), 401},
		{"key in the query", "/workflows?key=" + key, nil, 401},
		{"key", "/workflows", as(key), 200},
		{"scheme in any case", "/workflows", []string{"Authorization", "bearer  " + key}, 200},
		{"the server's key", "/workflows", as(adminKey), 200},
		{"no path", "/nope", as(key), 404},
		{"not the method", "/workflows/x/run", as(key), 405},
		{"its tenant named", "/workflows", append(as(key), "Weft-Tenant", "default"), 200},
		{"another tenant named", "/workflows", append(as(key), "Weft-Tenant", "acme"), 404},
		{"two tenants named", "/workflows", append(as(key), "Weft-Tenant", "default", "Weft-Tenant", "default"), 400},
		{"the server's key in no tenant", "/workflows", append(as(adminKey), "Weft-Tenant", "acme"), 404},
		{"health", "/health", nil, 200},
		{"ready", "/ready", as("wrong"), 200},
		{"below health", "/health/x", nil, 401},
		{"any host", "/workflows", append(as(key), "Host", "weft.example"), 200},
		{"a foreign page", "/workflows", append(as(key), "Origin", "https://evil.example"), 200},
		{"too low a role", "/keys", as(key), 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := call(t, h, "GET", tt.path, "", tt.headers...)
			if w.Code != tt.want {
				t.Fatalf("status %d %s, want %d", w.Code, w.Body, tt.want)
			}
			challenge := w.Header().Get("WWW-Authenticate")
			switch {
			case tt.want == 401 && challenge != "Bearer", tt.want != 401 && challenge != "":
				t.Errorf("WWW-Authenticate = %q", challenge)
			case tt.want == 401:
				wantError(t, w, 401, host.CodeUnauthenticated)
			case tt.want == 403:
				wantError(t, w, 403, host.CodePermissionDenied)
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("Access-Control-Allow-Origin = %q", got)
			}
			if strings.Contains(w.Body.String(), key) {
				t.Error("the answer repeats the key")
			}
		})
	}
	// An allowed page may send a key, but its preflight has none.
	origin := []string{"Origin", "https://app.example"}
	w := call(t, h, "OPTIONS", "/workflows", "", append(origin, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")...)
	if w.Code != 200 || w.Header().Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight = %d %v", w.Code, w.Header())
	}
	if w := call(t, h, "GET", "/workflows", "", append(origin, as(key)...)...); w.Header().Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "X-Request-Id") {
		t.Errorf("headers = %v", w.Header())
	}
}

// GET /whoami shows who asks, without a secret.
func TestWhoAmI(t *testing.T) {
	_, _, h := keyed(t, adminKey)
	id, key := newKey(t, h, "default", host.RoleRead)
	w := call(t, h, "GET", "/whoami", "", as(key)...)
	me := made(t, w, 200)
	own, _ := me["key"].(map[string]any)
	if me["keyless"] != false || me["server_admin"] != false || me["tenant"] != "default" || me["role"] != "read" || own["id"] != id ||
		!strings.HasPrefix(key, own["prefix"].(string)) || own["expires_at"] != nil || strings.Contains(w.Body.String(), key) {
		t.Errorf("a key is %s", w.Body)
	}
	if me := made(t, call(t, h, "GET", "/whoami", "", as(adminKey)...), 200); me["server_admin"] != true || me["role"] != "admin" || me["key"] != nil {
		t.Errorf("the server's key is %v", me)
	}
	_, _, open := keyed(t, "")
	if me := made(t, call(t, open, "GET", "/whoami", ""), 200); me["keyless"] != true || me["server_admin"] != true || me["role"] != "admin" || me["key"] != nil {
		t.Errorf("no key is %v", me)
	}
	if _, err := time.Parse(time.RFC3339Nano, me["started_at"].(string)); err != nil {
		t.Error(err)
	}
}

// TestRolesAreLadders: each role may do what the roles below it may, and no more.
func TestRolesAreLadders(t *testing.T) {
	_, _, h := keyed(t, adminKey)
	ladder := []struct {
		role       host.Role
		method, on string
	}{
		{host.RoleRead, "GET", "/handlers"},
		{host.RoleRun, "POST", "/workflows/nope/run"},
		{host.RoleDeploy, "DELETE", "/plugins/nope"},
		{host.RoleAdmin, "DELETE", "/keys/nope"},
	}
	for i, by := range ladder {
		_, key := newKey(t, h, "default", by.role)
		for j, step := range ladder {
			w := call(t, h, step.method, step.on, "", as(key)...)
			if denied := w.Code == 403; denied != (j > i) {
				t.Errorf("%s with role %s = %d %s", step.on, by.role, w.Code, w.Body)
			}
		}
	}
}

func TestKeyRoutes(t *testing.T) {
	_, _, h := keyed(t, adminKey)
	admin := as(adminKey)
	if got := made(t, call(t, h, "POST", "/tenants", `{"name":"acme"}`, admin...), 201); got["name"] != "acme" || got["created_at"] == nil {
		t.Errorf("tenant = %v", got)
	}
	wantError(t, call(t, h, "POST", "/tenants", `{"name":"acme"}`, admin...), 409, host.CodeConflict)
	for _, bad := range []string{`{}`, `{"name":"-a"}`, `{"name":"A"}`, `{"name":1}`, `{"name":"a","limits":1}`, `[]`, `{"name":"` + strings.Repeat("a", 65) + `"}`} {
		if w := call(t, h, "POST", "/tenants", bad, admin...); w.Code != 400 {
			t.Errorf("%s = %d %s", bad, w.Code, w.Body)
		}
	}
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	k := made(t, call(t, h, "POST", "/keys", `{"tenant":"acme","role":"run","name":"CI","expires_at":"`+expires+`"}`, admin...), 201)
	id, key := k["id"].(string), k["key"].(string)
	if k["tenant"] != "acme" || k["role"] != "run" || k["name"] != "CI" || k["revoked_at"] != nil || !strings.HasPrefix(key, k["prefix"].(string)) {
		t.Errorf("key = %v", k)
	}
	shown := made(t, call(t, h, "GET", "/keys/"+id, "", admin...), 200)
	if _, has := shown["key"]; has || shown["prefix"] != k["prefix"] {
		t.Errorf("key = %v", shown)
	}
	list := made(t, call(t, h, "GET", "/keys", "", append(admin, "Weft-Tenant", "acme")...), 200)
	if len(list["keys"].([]any)) != 1 {
		t.Errorf("keys = %v", list)
	}
	for _, bad := range []string{`{}`, `{"role":"owner"}`, `{"role":"read","expires_at":"tomorrow"}`, `{"role":"read","expires_at":"2020-01-01T00:00:00Z"}`, `{"role":"read","name":"a\nb"}`, `{"role":"read","scope":"x"}`} {
		wantError(t, call(t, h, "POST", "/keys", bad, admin...), 400, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "POST", "/keys", `{"role":"read","tenant":"nobody"}`, admin...), 404, host.CodeNotFound)

	wantError(t, call(t, h, "POST", "/keys/"+id+"/rotate", `{"grace":-1}`, admin...), 400, host.CodeInvalidArgument)
	rotated := made(t, call(t, h, "POST", "/keys/"+id+"/rotate", `{"grace":60}`, admin...), 200)
	if rotated["id"] != id || rotated["key"] == key || rotated["previous_prefix"] != k["prefix"] {
		t.Errorf("rotated = %v", rotated)
	}
	for _, good := range []string{key, rotated["key"].(string)} {
		if w := call(t, h, "GET", "/workflows", "", as(good)...); w.Code != 200 {
			t.Errorf("within the grace: %d", w.Code)
		}
	}
	again := made(t, call(t, h, "POST", "/keys/"+id+"/rotate", "", admin...), 200)
	wantError(t, call(t, h, "GET", "/workflows", "", as(rotated["key"].(string))...), 401, host.CodeUnauthenticated)
	if w := call(t, h, "DELETE", "/keys/"+id, "", admin...); w.Code != 204 {
		t.Errorf("revoked: %d %s", w.Code, w.Body)
	}
	wantError(t, call(t, h, "GET", "/workflows", "", as(again["key"].(string))...), 401, host.CodeUnauthenticated)
	wantError(t, call(t, h, "DELETE", "/keys/"+id, "", admin...), 404, host.CodeNotFound)
	if shown := made(t, call(t, h, "GET", "/keys/"+id, "", admin...), 200); shown["revoked_at"] == nil {
		t.Errorf("key = %v", shown)
	}
	auditIs(t, h, "key.revoke", "key.revoke", "key.rotate", "key.rotate", "key.create", "key.create", "tenant.create", "tenant.create")
}

// auditIs wants the newest acts of the audit log, read in pages of two.
func auditIs(t *testing.T, h http.Handler, want ...string) {
	t.Helper()
	var got []string
	cursor := ""
	for len(got) < len(want) {
		page := made(t, call(t, h, "GET", "/audit?limit=2&cursor="+cursor, "", as(adminKey)...), 200)
		for _, e := range page["entries"].([]any) {
			got = append(got, e.(map[string]any)["act"].(string))
		}
		if page["next_cursor"] == nil {
			break
		}
		cursor = page["next_cursor"].(string)
	}
	if len(got) < len(want) || strings.Join(got[:len(want)], " ") != strings.Join(want, " ") {
		t.Errorf("audit = %q, want %q", got, want)
	}
	wantError(t, call(t, h, "GET", "/audit?cursor="+cursor, "", append(as(adminKey), "Weft-Tenant", "default")...), 400, host.CodeInvalidArgument)
	wantError(t, call(t, h, "GET", "/audit?limit=0", "", as(adminKey)...), 400, host.CodeInvalidArgument)
}

// TestDeploysAreAudited: changes of plugins are in the log, with their outcomes.
func TestDeploysAreAudited(t *testing.T) {
	_, a, h := keyed(t, adminKey)
	call(t, h, "DELETE", "/plugins/nope?dry_run=true", "", as(adminKey)...) // an unknown parameter does not hide the act
	call(t, h, "POST", "/workflows/plain/migrate", "", as(adminKey)...)
	list, _, err := a.Audit(t.Context(), &host.Grant{Server: true}, 0, 10)
	if err != nil || len(list) != 1 || list[0].Act != "plugin.delete" || list[0].Target != "nope" || list[0].Outcome != "not_found" || list[0].Tenant != "default" {
		t.Errorf("audit = %+v, %v", list, err)
	}
}

func TestKeylessServer(t *testing.T) {
	_, _, h := keyed(t, "")
	if w := call(t, h, "GET", "/workflows", ""); w.Code != 200 {
		t.Errorf("no key: %d", w.Code)
	}
	if w := call(t, h, "GET", "/workflows", "", as("any")...); w.Code != 200 {
		t.Errorf("some key: %d", w.Code)
	}
	wantError(t, call(t, h, "GET", "/workflows", "", "Host", "evil.example"), 403, host.CodePermissionDenied)
	wantError(t, call(t, h, "GET", "/workflows", "", "Weft-Tenant", "acme"), 404, host.CodeNotFound)
	wantError(t, call(t, h, "POST", "/keys", `{"role":"read"}`), 409, host.CodeFailedPrecondition)
	wantError(t, call(t, h, "POST", "/tenants", `{"name":"acme"}`), 409, host.CodeFailedPrecondition)
	if w := call(t, h, "GET", "/tenants/default/usage", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"runs":{"running":0,`) {
		t.Errorf("usage = %d %s", w.Code, w.Body)
	}
}

// TestRevokedRequestEnds: a waiting request ends when its key is revoked.
func TestRevokedRequestEnds(t *testing.T) {
	f, a, h := keyed(t, adminKey)
	id, key := newKey(t, h, "default", host.RoleRun)
	call(t, h, "POST", "/workflows/slow/run-nowait", `{"handler_id":"s"}`, as(key)...)
	waits := make(chan struct{})
	f.onNext = func() { close(waits); f.onNext = nil }
	over := make(chan any)
	go func() {
		defer func() { over <- recover() }() // the stream is cut: its run continues
		call(t, h, "GET", "/events/s", "", as(key)...)
	}()
	<-waits
	if err := a.RevokeKey(t.Context(), &host.Grant{Server: true}, id); err != nil {
		t.Fatal(err)
	}
	if p := <-over; p != http.ErrAbortHandler { //nolint:errorlint // a panic's value
		t.Errorf("the stream ended with %v, want it cut", p)
	}
}

// BenchmarkRequest measures the cost of checking a key.
func BenchmarkRequest(b *testing.B) {
	for _, admin := range []string{"", adminKey} {
		name, headers := "keyless", []string(nil)
		_, _, h := keyed(b, admin)
		if admin != "" {
			_, key := newKey(b, h, "default", host.RoleRead)
			name, headers = "keyed", as(key)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := call(b, h, "GET", "/workflows", "", headers...); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
