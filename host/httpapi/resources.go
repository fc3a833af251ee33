package httpapi

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
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
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		list, err := a.Resources(c.Request().Context(), tenantOf(c))
		return appendObjects(dst, "resources", list, appendResource), err
	})
}

func (s *Server) getResource(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		r, err := a.Resource(c.Request().Context(), tenantOf(c), param(c, "name"))
		return appendResource(dst, &r), err
	})
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
	return s.answerJSON(c, status, func(dst []byte) ([]byte, error) { return appendResource(dst, &info), nil })
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

func appendResource(dst []byte, r *host.ResourceInfo) []byte {
	dst = appendString(append(dst, `{"name":`...), r.Name)
	dst = appendString(append(dst, `,"kind":`...), r.Kind)
	source := "api"
	if r.File {
		source = "file"
	}
	dst = appendString(append(dst, `,"source":`...), source)
	if !r.File {
		dst = append(append(dst, `,"definition":`...), r.Definition...)
		dst = appendStringOrNull(append(dst, `,"key_id":`...), r.KeyID)
		dst = appendStringOrNull(append(dst, `,"problem":`...), r.Problem)
		dst = appendStamp(append(dst, `,"created_at":`...), r.Created)
		dst = appendStamp(append(dst, `,"updated_at":`...), r.Updated)
	}
	dst = append(dst, `,"usage":[`...)
	for i := range r.Uses {
		if i > 0 {
			dst = append(dst, ',')
		}
		u := &r.Uses[i]
		dst = appendString(append(dst, `{"workflow":`...), u.Workflow)
		dst = append(dst, `,"calls":`...)
		dst = strconv.AppendUint(dst, u.Calls, 10)
		dst = append(appendFigures(dst, figure{"failed", u.Failed}, figure{"sent_bytes", u.Sent}, figure{"received_bytes", u.Received},
			figure{"input_tokens", u.InputTokens}, figure{"output_tokens", u.OutputTokens}), '}')
	}
	return append(dst, "]}"...)
}
