package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// methods are those that some route has, and those that are answered for all.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// observed tells of a request that is answered, or will be by err.
func (s *Server) observed(c echo.Context, err error, took time.Duration) {
	route, method, status := s.outcome(c, err)
	s.cfg.Observe(route, method, status, took)
	var he *host.Error
	if s.cfg.Refused != nil && errors.As(err, &he) && he.Breach != nil {
		s.cfg.Refused(tenantOf(c), he.Breach.Limit)
	}
}

// outcome gives the pattern of a request's route, its method and the status that it
// is answered with. What a client has made up is not told: it would make a series of
// its own.
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
