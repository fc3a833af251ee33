package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// accessRoutes joins the paths of tenants and keys to handlers; read is for those
// that can be read.
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

// access gives what manages tenants and keys; without it these routes do not exist.
func (s *Server) access() (host.Access, error) {
	if s.cfg.Access == nil {
		return nil, echo.ErrNotFound
	}
	return s.cfg.Access, nil
}

// managed answers what a function appends that asks the host's access.
func (s *Server) managed(c echo.Context, status int, do func(a host.Access, by *host.Grant, dst []byte) ([]byte, error)) error {
	a, err := s.access()
	if err != nil {
		return err
	}
	return s.answerJSON(c, status, func(dst []byte) ([]byte, error) { return do(a, grantOf(c), dst) })
}

// createTenant makes a tenant.
func (s *Server) createTenant(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	fields, err := body.only("name")
	if err != nil {
		return err
	}
	name, err := fields["name"].optionalText()
	if err != nil {
		return err
	}
	return s.managed(c, http.StatusCreated, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		t, err := a.CreateTenant(c.Request().Context(), by, name)
		return appendTenant(dst, &t), err
	})
}

// listTenants answers the tenants that the key may see.
func (s *Server) listTenants(c echo.Context) error {
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		list, err := a.Tenants(c.Request().Context(), by)
		return appendObjects(dst, "tenants", list, appendTenant), err
	})
}

// getTenant answers one.
func (s *Server) getTenant(c echo.Context) error {
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		t, err := a.Tenant(c.Request().Context(), by, param(c, "name"))
		return appendTenant(dst, &t), orNotFound(err, textTenantNotFound)
	})
}

// deleteTenant removes a tenant with all that it has.
func (s *Server) deleteTenant(c echo.Context) error {
	a, err := s.access()
	if err != nil {
		return err
	}
	if err := a.DeleteTenant(c.Request().Context(), grantOf(c), param(c, "name")); err != nil {
		return orNotFound(err, textTenantNotFound)
	}
	return c.NoContent(http.StatusNoContent)
}

// tenantUsage answers what a tenant has and what it has used.
func (s *Server) tenantUsage(c echo.Context) error {
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		name := param(c, "name")
		u, err := a.Usage(c.Request().Context(), by, name)
		return appendUsage(dst, name, &u), orNotFound(err, textTenantNotFound)
	})
}

// appendObjects appends an object with one list.
func appendObjects[T any](dst []byte, name string, list []T, each func([]byte, *T) []byte) []byte {
	dst = append(appendString(append(dst, '{'), name), ":["...)
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(dst, &list[i])
	}
	return append(dst, "]}"...)
}

func appendTenant(dst []byte, t *host.TenantRecord) []byte {
	dst = appendString(append(dst, `{"name":`...), t.Name)
	dst = appendStamp(append(dst, `,"created_at":`...), t.Created)
	return append(dst, '}')
}
