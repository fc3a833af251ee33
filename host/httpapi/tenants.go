package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// accessRoutes joins the paths of tenants and keys to handlers. read registers GET
// routes.
func (s *Server) accessRoutes(read func(path string, h echo.HandlerFunc)) {
	e := s.echo
	read("/tenants", s.listTenants)
	e.POST("/tenants", s.createTenant)
	read("/tenants/:name", s.getTenant)
	e.DELETE("/tenants/:name", s.deleteTenant)
	read("/tenants/:name/usage", s.tenantUsage)
	read("/keys", s.listKeys)
	e.POST("/keys", s.createKey)
	read("/keys/:id", s.getKey)
	e.DELETE("/keys/:id", s.revokeKey)
	e.POST("/keys/:id/rotate", s.rotateKey)
	read("/audit", s.listAudit)
}

// access returns the service that manages tenants and keys. Without a service these
// routes do not exist.
func (s *Server) access() (host.Access, error) {
	if s.cfg.Access == nil {
		return nil, echo.ErrNotFound
	}
	return s.cfg.Access, nil
}

// managed answers with the result of a function that uses the host's access.
func managed[T any](s *Server, c echo.Context, status int, do func(ctx context.Context, a host.Access, by *host.Grant) (T, error)) error {
	a, err := s.access()
	if err != nil {
		return err
	}
	v, err := do(c.Request().Context(), a, grantOf(c))
	return answerOr(c, status, &v, err)
}

// createTenant makes a tenant.
func (s *Server) createTenant(c echo.Context) error {
	var body apiwire.NewTenant
	if err := s.readInto(c, &body); err != nil {
		return err
	}
	return managed(s, c, http.StatusCreated, func(ctx context.Context, a host.Access, by *host.Grant) (out apiwire.Tenant, err error) {
		t, err := a.CreateTenant(ctx, by, body.Name)
		apiwire.Fill(&out, &t)
		return out, err
	})
}

// listTenants answers the tenants that the key may see.
func (s *Server) listTenants(c echo.Context) error {
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (apiwire.Tenants, error) {
		list, err := a.Tenants(ctx, by)
		return apiwire.Tenants{Tenants: apiwire.FillAll[apiwire.Tenant](list)}, err
	})
}

// getTenant answers a tenant.
func (s *Server) getTenant(c echo.Context) error {
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (out apiwire.Tenant, err error) {
		t, err := a.Tenant(ctx, by, param(c, "name"))
		apiwire.Fill(&out, &t)
		return out, orNotFound(err, textTenantNotFound)
	})
}

// deleteTenant removes a tenant with all its data.
func (s *Server) deleteTenant(c echo.Context) error {
	a, err := s.access()
	if err != nil {
		return err
	}
	return answerGone(c, orNotFound(a.DeleteTenant(c.Request().Context(), grantOf(c), param(c, "name")), textTenantNotFound))
}

// tenantUsage answers what a tenant stores and has used.
func (s *Server) tenantUsage(c echo.Context) error {
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (out apiwire.Usage, err error) {
		name := param(c, "name")
		u, err := a.Usage(ctx, by, name)
		out.Show(name, &u)
		return out, orNotFound(err, textTenantNotFound)
	})
}
