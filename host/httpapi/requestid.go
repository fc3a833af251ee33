package httpapi

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// headerRequestID names a request, in the log and in its answer.
const headerRequestID = "X-Request-Id"

// maxRequestID bounds an id that a client gives, in bytes.
const maxRequestID = 64

// Where a request keeps its id, and the run that it turned out to be about.
const (
	requestIDKey = "weft.request"
	runKey       = "weft.run"
)

// requestID gives the id that a client has given its request, if it is one that can
// stand in a log as it is, else a new one.
func requestID(r *http.Request) string {
	if given := r.Header.Values(headerRequestID); len(given) == 1 && plainID(given[0]) {
		return given[0]
	}
	return rand.Text()
}

func plainID(id string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return id != "" && len(id) <= maxRequestID && strings.Trim(id, plain) == ""
}

// nameRequest gives the request its id, and the answer the same.
func nameRequest(c echo.Context) {
	id := requestID(c.Request())
	c.Set(requestIDKey, id)
	c.Response().Header().Set(headerRequestID, id)
}

// about notes for the log which run a request is about.
func about(c echo.Context, run *host.Run) {
	c.Set(runKey, subject{run.RunID, run.HandlerID, run.Workflow})
}

// subject is the run that a request is about.
type subject struct{ run, handler, workflow string }

// subjectOf gives what is known of it.
func subjectOf(c echo.Context) subject {
	s, ok := c.Get(runKey).(subject)
	if !ok {
		s.handler = handlerIn(c)
	}
	if s.workflow == "" && strings.HasPrefix(c.Path(), "/workflows/:name") {
		s.workflow = param(c, "name")
	}
	return s
}

// log writes a line about a request: which one it is, whose, and what of, before
// what is to be said.
func (s *Server) log(c echo.Context, level slog.Level, message string, args ...any) {
	r := c.Request()
	if !s.cfg.Log.Enabled(r.Context(), level) {
		return
	}
	line := []any{"method", r.Method, "path", r.URL.Path}
	if id, ok := c.Get(requestIDKey).(string); ok {
		line = append(line, "request", id)
	}
	if grant, ok := c.Get(grantKey).(*host.Grant); ok {
		line = append(line, "tenant", grant.Tenant)
	}
	of := subjectOf(c)
	if strings.HasPrefix(c.Path(), "/sessions/:id") {
		line = append(line, "session", param(c, "id"))
	}
	for _, a := range []struct{ key, value string }{{"workflow", of.workflow}, {"handler", of.handler}, {"run", of.run}} {
		if a.value != "" {
			line = append(line, a.key, a.value)
		}
	}
	s.cfg.Log.Log(r.Context(), level, message, append(line, args...)...)
}

// handlerIn gives the handler's or run's id in the path, "" if the route has none.
func handlerIn(c echo.Context) string {
	for _, under := range []string{"/handlers/:id", "/events/:id", "/results/:id"} {
		if strings.HasPrefix(c.Path(), under) {
			return param(c, "id")
		}
	}
	return ""
}
