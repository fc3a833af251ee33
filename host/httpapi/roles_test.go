package httpapi

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
)

// TestEveryRouteHasARole compares the tables of routes with the routes.
func TestEveryRouteHasARole(t *testing.T) {
	there := map[string]bool{}
	for _, r := range New(Config{Metrics: http.NotFoundHandler()}).Routes() {
		route := routeOf(r.Method, r.Path)
		there[route] = true
		if open := slices.Contains(openRoutes, r.Path); open != (r.Least == "") {
			t.Errorf("route %q has no entry in the table 'roles' (host/httpapi/access.go), so nobody may use it.\n"+
				"Add it with the least role that it needs: RoleRead if it only looks, RoleRun if it starts or changes runs or their state,\n"+
				"RoleDeploy if it changes plugins or workflows, RoleAdmin for tenants and keys, roleServer if it shows what all tenants have.\n"+
				"Then say in host/hosttest/isolation_test.go how to call it with ids of another tenant.", route)
		}
		if audited := acts[route] != ""; audited != (r.Method != "GET" && (r.Least == host.RoleDeploy || strings.HasPrefix(r.Path, "/resources"))) {
			t.Errorf("route %q: what takes role deploy, or defines resources, and nothing else, has an entry in the table 'acts' (host/httpapi/access.go)", route)
		}
	}
	for route, role := range roles {
		if !there[route] || !role.Known() && role != roleServer {
			t.Errorf("the table 'roles' has %q for %q, which is not a route or no role: take it out", role, route)
		}
	}
	for route := range acts {
		if !there[route] {
			t.Errorf("the table 'acts' has %q, which is not a route: take it out", route)
		}
	}
}

// TestHandlersAskForTheTenant: handlers use only the tenant of the request's key.
func TestHandlersAskForTheTenant(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "access.go" && !strings.HasSuffix(name, "_test.go") && bytes.Contains(text, []byte("DefaultTenant")) {
			t.Errorf("%s names host.DefaultTenant: a handler acts in tenantOf(c), which authentication has found", name)
		}
	}
}
