package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// resourceRoutes joins the paths of resources to handlers.
func (s *Server) resourceRoutes(read func(path string, h echo.HandlerFunc)) {
	read("/resources", s.listResources)
	read("/resources/:name", s.getResource)
	read("/resources/:name/keys", s.listResourceKeys)
	s.echo.PUT("/resources/:name", s.putResource)
	s.echo.DELETE("/resources/:name", s.deleteResource)
}

// resources gives what manages resources; without it these routes do not exist.
func (s *Server) resources() (host.ResourceAdmin, error) {
	if s.cfg.Resources == nil {
		return nil, echo.ErrNotFound
	}
	return s.cfg.Resources, nil
}

func (s *Server) listResources(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	list, err := a.Resources(c.Request().Context(), tenantOf(c))
	out := apiwire.Resources{Resources: make([]apiwire.Resource, len(list))}
	for i := range list {
		out.Resources[i].Show(&list[i])
	}
	return answerOr(c, http.StatusOK, &out, err)
}

func (s *Server) getResource(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	info, err := a.Resource(c.Request().Context(), tenantOf(c), param(c, "name"))
	var out apiwire.Resource
	out.Show(&info)
	return answerOr(c, http.StatusOK, &out, err)
}

// putResource defines a resource. Its body is JSON only: errors have lines and columns.
func (s *Server) putResource(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	body, err := readBody(c, host.MaxResourceDefinition)
	if err != nil {
		return err
	}
	by := grantOf(c)
	info, created, err := a.PutResource(c.Request().Context(), host.ResourceChange{
		Tenant: by.Tenant, Name: param(c, "name"), Text: body, Operator: by.Server || s.keyless(),
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	var out apiwire.Resource
	out.Show(&info)
	return answer(c, status, &out)
}

func (s *Server) deleteResource(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	if err := a.DeleteResource(c.Request().Context(), tenantOf(c), param(c, "name")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
