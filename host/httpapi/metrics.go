package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// methods are the methods that some route has, and those that every path answers.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// observed reports a request that was answered, or will be answered with err.
func (s *Server) observed(c echo.Context, err error, took time.Duration) {
	route, method, status := s.outcome(c, err)
	s.cfg.Observe(route, method, status, took)
	var he *host.Error
	if s.cfg.Refused != nil && errors.As(err, &he) && he.Breach != nil {
		s.cfg.Refused(tenantOf(c), he.Breach.Limit)
	}
}

// outcome returns the pattern of a request's route, its method and the status of its
// answer. Paths and methods that a client invented are not returned: each would create a
// metric series of its own.
func (s *Server) outcome(c echo.Context, err error) (route, method string, status int) {
	status = c.Response().Status
	if err != nil && !c.Response().Committed {
		status = s.explain(err, c).HTTPStatus()
	}
	route, method = c.Path(), c.Request().Method
	if !s.patterns[route] {
		route = ""
	}
	if !slices.Contains(methods, method) {
		method = "other"
	}
	return route, method, status
}
