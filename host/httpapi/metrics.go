package httpapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// methods are those that some route has, and those that are answered for all.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// metrics answers the series of the whole server, all tenants': they are for whoever
// runs it.
func (s *Server) metrics(c echo.Context) error {
	switch by := grantOf(c); {
	case s.cfg.Metrics == nil:
		return &host.Error{Code: host.CodeNotFound, Message: textNotFound}
	case s.cfg.Access != nil && by.KeyID != "" && !by.Server:
		return host.Errorf(host.CodePermissionDenied, "The metrics are the whole server's: this needs its own admin key")
	}
	s.cfg.Metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

// observed tells of a request that is answered, or will be by err. What a client has
// made up is not told: it would make a series of its own.
func (s *Server) observed(c echo.Context, err error, took time.Duration) {
	status := c.Response().Status
	if err != nil && !c.Response().Committed {
		status = s.explain(err, c).Code.HTTPStatus()
	}
	route, method := c.Path(), c.Request().Method
	if !s.patterns[route] {
		route = ""
	}
	if !slices.Contains(methods, method) {
		method = "other"
	}
	s.cfg.Observe(route, method, status, took)
}
