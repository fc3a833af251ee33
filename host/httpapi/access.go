package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/openapi"
)

// roleServer is required by routes that show the data of all tenants. The server's own
// key has it, and every request to a server without keys. A tenant's key never has it.
const roleServer host.Role = "server"

// roles is the least role that each route requires. Requests to a route without an entry
// are refused; TestEveryRouteHasARole finds such a route.
var roles = map[string]host.Role{
	"GET /plugins":                        host.RoleRead,
	"PUT /plugins/:name":                  host.RoleDeploy,
	"GET /plugins/:name":                  host.RoleRead,
	"DELETE /plugins/:name":               host.RoleDeploy,
	"GET /plugins/:name/versions":         host.RoleRead,
	"GET /plugins/:name/module":           host.RoleDeploy,
	"GET /workflows":                      host.RoleRead,
	"GET /workflows/:name":                host.RoleRead,
	"PUT /workflows/:name":                host.RoleDeploy,
	"DELETE /workflows/:name":             host.RoleDeploy,
	"GET /workflows/:name/schema":         host.RoleRead,
	"GET /workflows/:name/events":         host.RoleRead,
	"POST /workflows/:name/run":           host.RoleRun,
	"GET /runs":                           host.RoleRead,
	"GET /runs/:id":                       host.RoleRead,
	"GET /runs/counts":                    host.RoleRead,
	"GET /handlers":                       host.RoleRead,
	"GET /handlers/:id":                   host.RoleRead,
	"GET /handlers/:id/journal":           host.RoleRead,
	"GET /handlers/:id/snapshot":          host.RoleRead,
	"POST /handlers/:id/cancel":           host.RoleRun,
	"POST /handlers/:id/pause":            host.RoleRun,
	"POST /handlers/:id/resume":           host.RoleRun,
	"POST /handlers/:id/retry":            host.RoleRun,
	"POST /handlers/:id/fork":             host.RoleRun,
	"POST /runs/:id/fork":                 host.RoleRun,
	"GET /runs/:id/journal":               host.RoleRead,
	"GET /runs/:id/journal/:seq":          host.RoleRead,
	"GET /runs/:id/state":                 host.RoleRead,
	"GET /sessions":                       host.RoleRead,
	"GET /sessions/:id":                   host.RoleRead,
	"PUT /sessions/:id":                   host.RoleRun,
	"DELETE /sessions/:id":                host.RoleRun,
	"POST /sessions/:id/release":          host.RoleRun,
	"GET /sessions/:id/state":             host.RoleRead,
	"PATCH /sessions/:id/state":           host.RoleRun,
	"GET /results/:id":                    host.RoleRead,
	"GET /events/:id":                     host.RoleRead,
	"POST /events/:id":                    host.RoleRun,
	"GET /tenants":                        host.RoleAdmin,
	"POST /tenants":                       host.RoleAdmin,
	"GET /tenants/:name":                  host.RoleAdmin,
	"DELETE /tenants/:name":               host.RoleAdmin,
	"GET /tenants/:name/usage":            host.RoleAdmin,
	"GET /keys":                           host.RoleAdmin,
	"POST /keys":                          host.RoleAdmin,
	"GET /keys/:id":                       host.RoleAdmin,
	"DELETE /keys/:id":                    host.RoleAdmin,
	"POST /keys/:id/rotate":               host.RoleAdmin,
	"GET /resources":                      host.RoleAdmin,
	"GET /resources/:name":                host.RoleAdmin,
	"GET /resources/:name/keys":           host.RoleAdmin,
	"PUT /resources/:name":                host.RoleAdmin,
	"DELETE /resources/:name":             host.RoleAdmin,
	"GET /whoami":                         host.RoleRead,
	"GET /metrics":                        roleServer,
	"GET /cluster":                        roleServer,
	"POST /cluster/:name/drain":           roleServer,
	"DELETE /cluster/:name/drain":         roleServer,
	"GET /audit":                          host.RoleAdmin,
	"POST /workflows/:name/migrate":       host.RoleDeploy,
	"POST /workflows/:name/run-nowait":    host.RoleRun,
	"GET /workflows/:name/representation": host.RoleRead,
	"GET /workflows/:name/graph":          host.RoleRead,
}

// acts are the names of routes in the audit log: the routes that require the role deploy,
// and those that change resources. The access service records acts on tenants and keys.
var acts = map[string]string{
	"PUT /plugins/:name":            actPut,
	"DELETE /plugins/:name":         "plugin.delete",
	"PUT /workflows/:name":          "workflow.put",
	"DELETE /workflows/:name":       "workflow.delete",
	"POST /workflows/:name/migrate": actMigrate,
	"PUT /resources/:name":          "resource.put",
	"DELETE /resources/:name":       "resource.delete",
}

// openRoutes need no key: they reveal nothing worth protecting (the description of the
// API is the same for all tenants, and is public with the source), and probes call them
// under any host name.
var openRoutes = []string{"/health", "/ready", "/", openapi.PathDescription, openapi.PathDocs}

func isOpen(r *http.Request) bool {
	return slices.Contains(openRoutes, r.URL.Path)
}

// routeOf returns a route's key in roles.
func routeOf(method, path string) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return method + " " + path
}

// leastRoles returns the least role of each route of the router. A route that has no
// entry in roles has none, so that requests to it are refused.
func leastRoles(e *echo.Echo) map[string]host.Role {
	least := map[string]host.Role{}
	for _, r := range e.Routes() {
		route := routeOf(r.Method, r.Path)
		least[route] = roles[route]
	}
	return least
}

// Route is a route of the API.
type Route = openapi.Route

// Routes lists the routes of the server by path and method, without HEAD, which every GET
// route except streams has.
func (s *Server) Routes() []Route {
	var list []Route
	for _, r := range s.echo.Routes() {
		if r.Method != http.MethodHead {
			list = append(list, Route{Method: r.Method, Path: r.Path, Least: s.least[routeOf(r.Method, r.Path)]})
		}
	}
	slices.SortFunc(list, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return list
}

// grantKey is where a request's grant is kept.
const grantKey = "weft.grant"

// grantOf returns what the request may do. The grant is set before any handler runs.
func grantOf(c echo.Context) *host.Grant { return c.Get(grantKey).(*host.Grant) }

// tenantOf returns the tenant in which the request acts.
func tenantOf(c echo.Context) string { return grantOf(c).Tenant }

// authenticate determines the rights of a request before a handler sees it, and refuses
// the request if they do not suffice. Without a key, a request cannot find out whether a
// path exists.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isOpen(c.Request()) {
			return next(c)
		}
		leave, err := s.admitted(c)
		if leave != nil {
			defer leave()
		}
		if err != nil {
			return err
		}
		err = next(c)
		if act := acts[routeOf(c.Request().Method, c.Path())]; act != "" && s.cfg.Access != nil {
			s.note(c, grantOf(c), act, err)
		}
		return err
	}
}

// admitted stores the request's grant in its context, or refuses the request. If leave is
// not nil, the caller calls it at the request's end, even if the request is refused.
func (s *Server) admitted(c echo.Context) (leave func(), err error) {
	entered, err := s.enter(c.Request())
	if err != nil {
		return nil, err
	}
	grant := &entered
	c.Set(grantKey, grant)
	if err := s.admit(grant.Tenant); err != nil {
		return grant.Leave, err
	}
	// The router answers requests to paths that are not routes.
	if least, isRoute := s.least[routeOf(c.Request().Method, c.Path())]; isRoute && !s.may(grant, least) {
		return grant.Leave, denied(grant, least)
	}
	if grant.Done == nil {
		return grant.Leave, nil
	}
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	stop := context.AfterFunc(grant.Done, func() { cancel(context.Cause(grant.Done)) })
	c.SetRequest(c.Request().WithContext(ctx))
	return func() {
		stop()
		cancel(nil)
		if grant.Leave != nil {
			grant.Leave()
		}
	}, nil
}

// may reports whether a grant is enough for a route.
func (s *Server) may(grant *host.Grant, least host.Role) bool {
	if least == roleServer {
		return grant.Server || s.keyless()
	}
	return grant.Role.May(least)
}

func denied(grant *host.Grant, least host.Role) error {
	if least == roleServer {
		return host.Errorf(host.CodePermissionDenied, "This needs the server's own admin key")
	}
	return host.Errorf(host.CodePermissionDenied, "This needs a key with the role '%s', and yours has '%s'", least, grant.Role)
}

// keyless reports whether requests need no key.
func (s *Server) keyless() bool { return s.cfg.Access == nil || s.cfg.Access.Keyless() }

// enter returns what a request may do.
func (s *Server) enter(r *http.Request) (host.Grant, error) {
	names := r.Header.Values(apiwire.HeaderTenant)
	if len(names) > 1 {
		return host.Grant{}, invalid("The header %s must be given once", apiwire.HeaderTenant)
	}
	name := strings.Join(names, "")
	if s.cfg.Access == nil {
		if name != "" && name != host.DefaultTenant {
			return host.Grant{}, errTenantNotFound
		}
		return host.Grant{Tenant: host.DefaultTenant, Role: host.RoleAdmin}, nil
	}
	return s.enterSlowly(r, bearer(r), name)
}

var errTenantNotFound = &host.Error{Code: host.CodeNotFound, Message: textTenantNotFound}

// bearer returns the key of a request; "" if the request has none, or several.
func bearer(r *http.Request) string {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// Acts that have a dry run, which changes nothing.
const (
	actMigrate = "workflow.migrate"
	actPut     = "plugin.put"
)

// note records an act of a handler in the audit log, except a dry run.
func (s *Server) note(c echo.Context, by *host.Grant, act string, outcome error) {
	if dry, _ := flagOf(c.QueryParams(), "dry_run", act == actMigrate); dry && (act == actMigrate || act == actPut) {
		return
	}
	s.cfg.Access.Note(c.Request().Context(), by, act, param(c, "name"), outcome)
}
