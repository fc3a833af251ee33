package hosttest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

const admin = "the server's own admin key"

// foreignCall says how to call a route with the ids of another tenant.
type foreignCall struct {
	// kinds are the kinds of the other tenant's things whose ids replace the path's
	// parameter, and ID in query and body. neighbour.ids has the ids by kind. Without
	// kinds the route is called unchanged.
	kinds []string
	query string
	body  string
}

var (
	runKinds      = []string{"handler", "waiting handler", "run", "session", "named session"}
	sessionKinds  = append(runKinds, "state session")
	pluginKinds   = []string{"plugin"}
	workflowKinds = []string{"workflow", "composed workflow"}
	keyKinds      = []string{"key"}
	tenantKinds   = []string{"tenant"}
	resourceKinds = []string{"resource"}
)

// probes has an entry for every route that requires a key: its method and path as the
// server lists them.
var probes = map[string]foreignCall{
	"GET /audit":                          {},
	"GET /cluster":                        {},
	"POST /cluster/:name/drain":           {},
	"DELETE /cluster/:name/drain":         {},
	"GET /metrics":                        {},
	"GET /whoami":                         {},
	"GET /events/:id":                     {kinds: runKinds},
	"POST /events/:id":                    {kinds: runKinds, body: `{"event":{"type":"Name","value":{}}}`},
	"GET /handlers":                       {kinds: append(runKinds, "version"), query: "?session=ID&workflow_name=ID"},
	"GET /handlers/:id":                   {kinds: runKinds},
	"POST /handlers/:id/cancel":           {kinds: runKinds, query: "?purge=true"},
	"POST /handlers/:id/fork":             {kinds: runKinds, body: `{"at":1}`},
	"GET /handlers/:id/journal":           {kinds: runKinds},
	"POST /handlers/:id/pause":            {kinds: runKinds},
	"POST /handlers/:id/resume":           {kinds: runKinds},
	"POST /handlers/:id/retry":            {kinds: runKinds},
	"GET /handlers/:id/snapshot":          {kinds: runKinds},
	"GET /keys":                           {},
	"POST /keys":                          {kinds: tenantKinds, body: `{"tenant":"ID","role":"read"}`},
	"GET /keys/:id":                       {kinds: keyKinds},
	"DELETE /keys/:id":                    {kinds: keyKinds},
	"POST /keys/:id/rotate":               {kinds: keyKinds},
	"GET /plugins":                        {},
	"GET /plugins/:name":                  {kinds: pluginKinds},
	"PUT /plugins/:name":                  {kinds: pluginKinds, body: "no module"},
	"DELETE /plugins/:name":               {kinds: pluginKinds},
	"GET /plugins/:name/versions":         {kinds: pluginKinds},
	"GET /plugins/:name/module":           {kinds: pluginKinds},
	"GET /resources":                      {},
	"GET /resources/:name":                {kinds: resourceKinds},
	"GET /resources/:name/keys":           {kinds: resourceKinds},
	"PUT /resources/:name":                {kinds: resourceKinds, body: `{"kind":"ID"}`},
	"DELETE /resources/:name":             {kinds: resourceKinds},
	"GET /results/:id":                    {kinds: runKinds},
	"POST /runs/:id/fork":                 {kinds: runKinds, body: `{"at":1,"patch":{},"answer":{"type":"Name","value":{}}}`},
	"GET /runs":                           {kinds: append(runKinds, "version"), query: "?session=ID&workflow_name=ID&handler=ID&parent=ID&forked_from=ID&id=ID"},
	"GET /runs/:id":                       {kinds: runKinds},
	"GET /runs/counts":                    {},
	"GET /runs/:id/journal":               {kinds: runKinds, query: "?order=desc"},
	"GET /runs/:id/journal/:seq":          {kinds: runKinds},
	"GET /runs/:id/state":                 {kinds: runKinds, query: "?at=1"},
	"GET /sessions":                       {},
	"GET /sessions/:id":                   {kinds: sessionKinds},
	"PUT /sessions/:id":                   {kinds: sessionKinds, body: `{"state":1}`}, // with a body, the session would exist for later probes
	"DELETE /sessions/:id":                {kinds: sessionKinds},
	"POST /sessions/:id/release":          {kinds: sessionKinds},
	"GET /sessions/:id/state":             {kinds: sessionKinds, query: "?path=count"},
	"PATCH /sessions/:id/state":           {kinds: sessionKinds, body: `{"count":7}`},
	"GET /tenants":                        {},
	"POST /tenants":                       {kinds: tenantKinds, body: `{"name":"ID"}`},
	"GET /tenants/:name":                  {kinds: tenantKinds},
	"DELETE /tenants/:name":               {kinds: tenantKinds},
	"GET /tenants/:name/usage":            {kinds: tenantKinds},
	"GET /workflows":                      {},
	"GET /workflows/:name":                {kinds: workflowKinds},
	"PUT /workflows/:name":                {kinds: append(workflowKinds, "plugin"), body: `{"plugins":["ID"]}`},
	"DELETE /workflows/:name":             {kinds: workflowKinds},
	"GET /workflows/:name/schema":         {kinds: workflowKinds},
	"GET /workflows/:name/events":         {kinds: workflowKinds},
	"GET /workflows/:name/representation": {kinds: workflowKinds},
	"GET /workflows/:name/graph":          {kinds: workflowKinds},
	"POST /workflows/:name/migrate":       {kinds: workflowKinds},
	"POST /workflows/:name/run":           {kinds: workflowKinds},
	"POST /workflows/:name/run-nowait":    {kinds: workflowKinds},
}

// neighbour is a tenant that has something of every kind.
type neighbour struct {
	key hosttest.Key // of its admin
	ids map[string]string
}

// populateTenant makes things of a tenant whose names all contain the mark. Unless it is
// the default tenant, the tenant is made first.
func populateTenant(t *testing.T, h *hosttest.Host, tenant, mark string) neighbour {
	t.Helper()
	n := neighbour{ids: map[string]string{
		"tenant": tenant, "plugin": mark + "-plugin", "composed workflow": mark + "-workflow", "workflow": "counter",
		"handler": mark + "-handler", "session": mark + "-handler", "waiting handler": mark + "-waiting", "named session": mark + "-session",
		"state session": mark + "-state", "resource": mark + "-resource",
	}}
	if tenant != host.DefaultTenant {
		h.NewTenant(t, admin, tenant)
	}
	n.key = h.NewKey(t, admin, n.ids["tenant"], host.RoleAdmin)
	n.ids["key"] = n.key.ID
	h.LoadAs(t, n.key.Key, "counter-tinygo", n.ids["plugin"])
	h.LoadAs(t, n.key.Key, "human-tinygo", mark+"-human")
	h.Want(t, http.StatusCreated, nil, n.key.Key, "PUT", "/workflows/"+n.ids["composed workflow"], `{"plugins":["`+n.ids["plugin"]+`"]}`)
	h.Want(t, http.StatusCreated, nil, n.key.Key, "PUT", "/sessions/"+n.ids["state session"], `{"state":{"of":"`+mark+`"}}`)
	h.Want(t, http.StatusCreated, nil, n.key.Key, "PUT", "/resources/"+n.ids["resource"],
		`{"kind":"http","settings":{"base_url":"https://`+mark+`.example/"},"grants":[{"workflow":"counter"}]}`)
	var r hosttest.Record
	h.Want(t, http.StatusOK, &r, n.key.Key, "POST", "/workflows/counter/run", `{"handler_id":"`+n.ids["handler"]+`"}`)
	n.ids["run"] = r.RunID
	h.Want(t, http.StatusOK, nil, n.key.Key, "POST", "/workflows/human/run-nowait",
		`{"handler_id":"`+n.ids["waiting handler"]+`","session":"`+n.ids["named session"]+`"}`)
	// In the end the run waits for a person, and does not change from then on.
	for end := time.Now().Add(suite.Hang); ; {
		if a := h.Ask(t, n.key.Key, "GET", "/handlers/"+n.ids["waiting handler"], ""); strings.Contains(a.Body, `"waiting_for"`) {
			return n
		}
		if time.Now().After(end) {
			t.Fatal("the run does not come to wait")
		}
	}
}

// view returns everything that the tenant sees of itself, which must not change.
func (n *neighbour) view(t *testing.T, h *hosttest.Host) string {
	t.Helper()
	var b strings.Builder
	for _, path := range []string{"/handlers", "/sessions", "/sessions/" + n.ids["state session"] + "/state", "/plugins", "/workflows", "/resources", "/keys", "/audit", "/tenants/" + n.ids["tenant"] + "/usage",
		"/handlers/" + n.ids["waiting handler"], "/plugins/" + n.ids["plugin"], "/workflows/" + n.ids["composed workflow"]} {
		a := h.Ask(t, n.key.Key, "GET", path, "")
		if a.Status != http.StatusOK && a.Status != http.StatusAccepted {
			t.Fatalf("%s = %d %s", path, a.Status, a.Body)
		}
		b.WriteString(lastUse.ReplaceAllString(a.Body, "") + "\n")
	}
	return b.String()
}

var (
	lastUse  = regexp.MustCompile(`"last_used_at":"[^"]*"`)
	anyTime  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[-+:0-9Z]+`)
	pathName = regexp.MustCompile(`:(name|id)\b`)
)

const unknownID = "nobody-has-this"

// ask calls a route with an id, and returns the answer without the id.
func (p foreignCall) ask(t *testing.T, h *hosttest.Host, key string, route, id string, headers ...string) string {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	path = strings.Replace(pathName.ReplaceAllLiteralString(path, id), ":seq", "1", 1)
	a := h.Ask(t, key, method, path+strings.ReplaceAll(p.query, "ID", id), strings.ReplaceAll(p.body, "ID", id), headers...)
	a.Header.Del("Date")
	a.Header.Del("Content-Length") // the length of texts that repeat the id varies
	a.Header.Del("X-Request-Id")   // differs each time
	text := fmt.Sprintf("%d %v %s", a.Status, a.Header, a.Body)
	return anyTime.ReplaceAllString(strings.ReplaceAll(text, id, "ID"), "TIME")
}

// each calls fn for every route that requires a key, in the order of their paths.
func each(t *testing.T, h *hosttest.Host, fn func(t *testing.T, route string, least host.Role, p foreignCall)) {
	t.Helper()
	for _, r := range h.Routes() {
		if r.Least == "" {
			continue
		}
		route := r.Method + " " + r.Path
		p, ok := probes[route]
		if !ok {
			t.Errorf("route %q has no entry in the table 'probes' (host/hosttest/isolation_test.go).\n"+
				"Add how it is called with the ids of another tenant: the kinds of ids that go into its path, and a query and a body with ID\n"+
				"where an id may stand. What is foreign must get the same answer as what is not there, by the same path through the code.", route)
			continue
		}
		t.Run(strings.ReplaceAll(route, "/", "|"), func(t *testing.T) { fn(t, route, r.Least, p) })
	}
}

// TestIsolation calls every route with the ids of another tenant, with keys of every
// role. The answers about foreign things equal those about missing things, byte for byte,
// and the foreign things do not change.
//
// A handler that would act in a tenant without asking for the request's tenant is tested
// like any other.
func TestIsolation(t *testing.T) {
	for _, tenant := range []string{"their-tenant", host.DefaultTenant} {
		t.Run(tenant, func(t *testing.T) { isolates(t, tenant) })
	}
}

func isolates(t *testing.T, tenant string) {
	h := hosttest.New(t, hosttest.Config{AdminKey: admin})
	theirs := populateTenant(t, h, tenant, "their")
	theirs.ids["version"] = "0123abcd"
	h.NewTenant(t, admin, "ours")
	keys := map[host.Role]string{}
	for _, role := range []host.Role{host.RoleRead, host.RoleRun, host.RoleDeploy, host.RoleAdmin} {
		keys[role] = h.NewKey(t, admin, "ours", role).Key
	}
	before := theirs.view(t, h)
	each(t, h, func(t *testing.T, route string, least host.Role, p foreignCall) {
		kinds := p.kinds
		if kinds == nil {
			kinds = []string{"tenant"} // the id is not used
		}
		for i, kind := range kinds {
			nobody := fmt.Sprint(unknownID, i) // the previous probe may have created it
			id := theirs.ids[kind]
			if id == "" {
				t.Fatalf("there is no id of kind %q", kind)
			}
			for role, key := range keys {
				foreign, unknown := p.ask(t, h, key, route, id), p.ask(t, h, key, route, nobody)
				alike(t, fmt.Sprintf("%s by role %s", kind, role), foreign, unknown)
				if denied := strings.HasPrefix(foreign, "403 "); !role.May(least) && !denied {
					t.Errorf("role %s may, although it takes %s: %s", role, least, foreign)
				}
			}
			foreign, unknown := p.ask(t, h, "", route, id), p.ask(t, h, "", route, nobody)
			alike(t, kind+" without a key", foreign, unknown)
			if !strings.HasPrefix(foreign, "401 ") {
				t.Errorf("without a key: %s", foreign)
			}
			if least.Known() && !strings.Contains(route, "/tenants") && !strings.HasPrefix(route, "POST /keys") {
				// The server's own key sees what the tenant named in the request sees.
				foreign, unknown = p.ask(t, h, admin, route, id, "Weft-Tenant", "ours"), p.ask(t, h, admin, route, nobody, "Weft-Tenant", "ours")
				alike(t, kind+" by the server's key", foreign, unknown)
			}
		}
	})
	if after := theirs.view(t, h); after != before {
		t.Errorf("what they have is\n%s\nand was\n%s", after, before)
	}
	for route := range probes {
		if !served(h, route) {
			t.Errorf("the table 'probes' has %q, which is not a route", route)
		}
	}
}

func served(h *hosttest.Host, route string) bool {
	for _, r := range h.Routes() {
		if r.Method+" "+r.Path == route {
			return true
		}
	}
	return false
}

// alike wants the answer about a foreign thing to equal the answer about a missing thing,
// and to reveal nothing.
func alike(t *testing.T, what, foreign, unknown string) {
	t.Helper()
	if foreign != unknown {
		t.Errorf("%s:\n  foreign:   %s\n  not there: %s", what, foreign, unknown)
	}
	if strings.Contains(foreign, "their") {
		t.Errorf("%s shows what is theirs: %s", what, foreign)
	}
}

// TestSameNamesLiveApart: two tenants that use the same names everywhere never affect
// each other.
func TestSameNamesLiveApart(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{AdminKey: admin})
	var keys []string
	for _, tenant := range []string{"a", "b"} {
		h.NewTenant(t, admin, tenant)
		key := h.NewKey(t, admin, tenant, host.RoleDeploy).Key
		h.LoadAs(t, key, "counter-tinygo", "counter")
		keys = append(keys, key)
	}
	once := []string{"Idempotency-Key", "same"}
	var runs []string
	for _, key := range keys {
		var first, again, other hosttest.Record
		h.Want(t, 200, &first, key, "POST", "/workflows/counter/run", `{"handler_id":"h","session":"s"}`, once...)
		h.Want(t, 200, &again, key, "POST", "/workflows/counter/run", `{"handler_id":"h","session":"s"}`, once...)
		h.Want(t, 200, &other, key, "POST", "/workflows/counter/run", `{"handler_id":"h2","session":"s"}`)
		if first.RunID != again.RunID {
			t.Error("a repeated start began another run")
		}
		if got, want := string(other.Result.Value.Result), string(first.Result.Value.Result); got == want {
			t.Errorf("the session does not go on: %s and %s", want, got)
		}
		runs = append(runs, first.RunID, string(first.Result.Value.Result))
	}
	for i, key := range keys {
		h.Want(t, 200, nil, key, "PATCH", "/sessions/s/state", fmt.Sprintf(`{"count":%d}`, 100*i), once...)
	}
	for i, key := range keys {
		if a := h.Ask(t, key, "GET", "/sessions/s/state?path=count", ""); a.Body != fmt.Sprint(100*i) {
			t.Errorf("tenant %d has the state %s", i, a.Body)
		}
	}
	if runs[0] == runs[2] {
		t.Error("a start of one tenant was answered with the other's run")
	}
	if runs[1] != runs[3] {
		t.Errorf("the state of one tenant's session went on in the other's: %s and %s", runs[1], runs[3])
	}
}

// TestTenantLeavesNothing: everything of a tenant is deleted with it, and its name can be
// used again.
func TestTenantLeavesNothing(t *testing.T) {
	for _, data := range []string{"", t.TempDir()} {
		h := hosttest.New(t, hosttest.Config{AdminKey: admin, Data: data})
		stays := populateTenant(t, h, "stays-tenant", "stays")
		before := stays.view(t, h)
		n := populateTenant(t, h, "goes-tenant", "goes")
		path := "/tenants/" + n.ids["tenant"]
		if a := h.Ask(t, admin, "DELETE", path, ""); a.Status != http.StatusConflict {
			t.Fatalf("with an active run: %d %s", a.Status, a.Body)
		}
		h.Want(t, 200, nil, n.key.Key, "POST", "/handlers/"+n.ids["waiting handler"]+"/cancel", "")
		h.Want(t, http.StatusNoContent, nil, admin, "DELETE", path, "")
		h.Want(t, http.StatusNotFound, nil, admin, "GET", path, "")
		h.Want(t, http.StatusUnauthorized, nil, n.key.Key, "GET", "/workflows", "")

		u, err := h.Store.TenantUsage(t.Context(), n.ids["tenant"])
		if err != nil || u.Handlers+u.Sessions+u.Plugins+len(u.Runs) > 0 || u.JournalBytes+u.StreamBytes > 0 {
			t.Errorf("left: %+v, %v", u, err)
		}
		if after := stays.view(t, h); after != before {
			t.Errorf("the other tenant has\n%s\nand had\n%s", after, before)
		}
		again := populateTenant(t, h, "goes-tenant", "goes")
		if view := again.view(t, h); strings.Contains(view, n.key.ID) || strings.Contains(view, n.ids["run"]) {
			t.Errorf("the new tenant sees the old one: %s", view)
		}
		h.Stop(t)
	}
}
