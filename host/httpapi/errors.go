package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/openapi"
)

// errShutdown answers requests that were waiting when the server shut down.
var errShutdown = &host.Error{
	Code:    host.CodeUnavailable,
	Message: "The server is shutting down; runs that have started continue when it is back",
}

// fail answers an error. It is echo's error handler.
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		level := slog.LevelError
		if errors.Is(err, errCut) {
			level = slog.LevelDebug
		}
		s.log(c, level, "answer cut short", "error", err)
		// Only a broken connection tells the client that the answer is incomplete.
		panic(http.ErrAbortHandler)
	}
	known := s.explain(err, c)
	status := known.HTTPStatus()
	if known.Code == host.CodeInternal {
		s.log(c, slog.LevelError, "request failed", "error", err, "cause", known.Cause)
	}
	h := c.Response().Header()
	setRetryAfter(h, known)
	if known.Code == host.CodeUnauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	body := apiwire.ErrorOf(known)
	if err := answer(c, status, &body); err != nil {
		s.log(c, slog.LevelDebug, "error not delivered", "error", err)
	}
}

// explain turns any error into one that a client may see.
func (s *Server) explain(err error, c echo.Context) *host.Error {
	var known *host.Error
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &routing):
		return routingError(routing, c)
	case errors.Is(err, context.Canceled) && errors.As(context.Cause(s.ctx), &known):
		return known
	case errors.Is(err, context.Canceled) && errors.As(context.Cause(c.Request().Context()), &known):
		return known // the key or the tenant was deleted
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &host.Error{Code: host.CodeUnavailable, Message: "The request was given up", Cause: err}
	default:
		return &host.Error{Code: host.CodeInternal, Message: host.MessageOf(err), Cause: err}
	}
}

// noRoute says that the path does not exist. The text begins with the words of
// LlamaIndex's workflow server, which clients know; the path follows.
func noRoute(r *http.Request) string {
	return textNotFound + ": " + r.Method + " " + clip(r.URL.Path) + " is not a path of the API; " + openapi.PathDocs + " lists them"
}

// routingError translates the errors of the router.
func routingError(err *echo.HTTPError, c echo.Context) *host.Error {
	switch err.Code {
	case http.StatusNotFound:
		return &host.Error{Code: host.CodeNotFound, Message: noRoute(c.Request())}
	case http.StatusMethodNotAllowed:
		// The router always lists OPTIONS, but no route has it.
		h := c.Response().Header()
		h.Set("Allow", strings.TrimPrefix(h.Get("Allow"), "OPTIONS, "))
		message := textMethodNotAllowed
		if r := c.Request(); r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/plugins/") && strings.Count(r.URL.Path, "/") == 2 {
			message += ": a plugin is uploaded by PUT: curl --upload-file FILE.wasm, or curl -X PUT --data-binary @FILE.wasm (-d leaves bytes out)"
		}
		return &host.Error{Code: host.CodeMethodNotAllowed, Message: message}
	default:
		return &host.Error{Code: host.CodeInternal, Message: "internal error", Cause: err}
	}
}

// observe is the outermost layer: it gives requests their ids, logs them, and turns a
// panic into a 500 and a line in the log.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		nameRequest(c)
		boundAnswer(c)
		start := time.Now()
		span, traced := s.arrive(c, start)
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // a panic's value, which net/http compares the same way
					panic(p)
				}
				s.log(c, slog.LevelError, "panic in a handler", "panic", p, "stack", string(debug.Stack()))
				err = &host.Error{Code: host.CodeInternal, Message: "internal error"}
			}
			if s.cfg.Observe != nil {
				s.observed(c, err, time.Since(start))
			}
			if traced {
				s.answered(c, span, err)
			}
			s.log(c, slog.LevelDebug, "request", "status", c.Response().Status, "took", time.Since(start), "error", err)
		}()
		return next(c)
	}
}
