package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/limit"
)

// resourceRoutes joins the paths of resources to handlers.
func (s *Server) resourceRoutes(read func(path string, h echo.HandlerFunc)) {
	read("/resources", s.listResources)
	read("/resources/:name", s.getResource)
	read("/resources/:name/keys", s.listResourceKeys)
	s.echo.PUT("/resources/:name", s.putResource)
	s.echo.DELETE("/resources/:name", s.deleteResource)
}

// resources returns the service that manages resources. Without a service these routes do
// not exist.
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

// putResource defines a resource. The body must be JSON, because errors have lines and
// columns.
func (s *Server) putResource(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	body, err := readBody(c, limit.MaxResourceDefinition)
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
	return answerGone(c, a.DeleteResource(c.Request().Context(), tenantOf(c), param(c, "name")))
}

// keysBytes is the size in bytes of keys and values after which a page of keys ends.
const keysBytes = 4 << 20

// listResourceKeys answers a page of the data that a resource keeps.
func (s *Server) listResourceKeys(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	q, err := parseKeyQuery(c.QueryParams())
	if err != nil {
		return err
	}
	page, err := a.ResourceKeys(c.Request().Context(), tenantOf(c), param(c, "name"), q)
	if err != nil {
		return err
	}
	out := apiwire.ResourceKeys{Keys: apiwire.FillAll[apiwire.ResourceKey](page.Items), TotalKeys: page.Totals.Keys, TotalBytes: page.Totals.Bytes}
	if page.More && len(page.Items) > 0 {
		last := page.Items[len(page.Items)-1].Key
		out.NextCursor = apiwire.OrNull(base64.RawURLEncoding.EncodeToString([]byte(last)))
	}
	return answer(c, http.StatusOK, &out)
}

// parseKeyQuery reads which keys are wanted. A cursor is the key after which the page
// begins.
func parseKeyQuery(v url.Values) (kv.Query, error) {
	q := kv.Query{Prefix: v.Get("prefix"), Bytes: keysBytes, Values: isTrue(v, "values", false)}
	if !utf8.ValidString(q.Prefix) {
		return q, invalid("Invalid prefix: it is not UTF-8")
	}
	var err error
	if q.Limit, err = limitOf(v, apiwire.MaxPage, apiwire.DefaultKeys); err != nil {
		return q, err
	}
	if text := v.Get("cursor"); text != "" {
		b, err := base64.RawURLEncoding.DecodeString(text)
		q.After = string(b)
		if err != nil || q.After == "" || !utf8.Valid(b) {
			return q, invalid("Invalid cursor: '%s'", clip(text))
		}
		if !strings.HasPrefix(q.After, q.Prefix) {
			return q, invalid("The cursor belongs to a listing with another prefix")
		}
	}
	return q, nil
}
