package httpapi

import (
	"net/http"
	"testing"
)

// TestEveryRouteIsDescribed holds the tables of the description to the routes.
func TestEveryRouteIsDescribed(t *testing.T) {
	there := map[string]bool{}
	for _, r := range New(Config{Metrics: http.NotFoundHandler()}).Routes() {
		route := routeOf(r.Method, r.Path)
		there[route] = true
		if _, ok := operations[route]; !ok {
			t.Errorf("route %q is not described: add it to a table of host/httpapi/openapi_runs.go or openapi_admin.go,\n"+
				"with its parameters, its body and its answers", route)
		}
		for _, p := range pathParams(r.Path) {
			if p.text == "" {
				t.Errorf("route %q: nothing says what %q is (pathTexts)", route, p.name)
			}
		}
	}
	for route := range operations {
		if !there[route] {
			t.Errorf("%q is described, and is not a route: take it out", route)
		}
	}
}
