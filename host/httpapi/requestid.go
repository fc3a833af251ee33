package httpapi

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// headerRequestID has the id of a request. The log and the answer have the same id.
const headerRequestID = "X-Request-Id"

// maxRequestID limits an id from a client, in bytes.
const maxRequestID = 64

// Keys of the request's context: its id, and the run that it concerns.
const (
	requestIDKey = "weft.request"
	runKey       = "weft.run"
)

// requestID returns the id that the client gave its request, if the id can be logged as
// it is; otherwise a new id.
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

// nameRequest stores the id of the request, and sends it in the answer.
func nameRequest(c echo.Context) {
	id := requestID(c.Request())
	c.Set(requestIDKey, id)
	c.Response().Header().Set(headerRequestID, id)
}

// about records for the log which run a request concerns.
func about(c echo.Context, run *host.Run) {
	c.Set(runKey, subject{run.RunID, run.HandlerID, run.Workflow})
}

// subject is the run that a request concerns.
type subject struct{ run, handler, workflow string }

// subjectOf returns the run that the request concerns, as far as it is known.
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

// log writes a line about a request. The line begins with the request's id, its tenant
// and the run that it concerns.
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

// handlerIn returns the id of the handler or run in the path, "" if the route has none.
func handlerIn(c echo.Context) string {
	for _, under := range []string{"/handlers/:id", "/runs/:id", "/events/:id", "/results/:id"} {
		if strings.HasPrefix(c.Path(), under) {
			return param(c, "id")
		}
	}
	return ""
}
