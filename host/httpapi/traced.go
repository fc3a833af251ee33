package httpapi

import (
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/traced"
)

// The headers of W3C Trace Context.
const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// Tracer makes the spans of requests. Its methods are called from any goroutine and
// do not block.
type Tracer interface {
	// Incoming returns the trace context of a request from its headers, which may contain
	// anything. own is the request's own span. given is the span that the client named;
	// nil if it named none.
	Incoming(parent, state string) (own, given *host.Trace)
	// Requested is called for each request that was answered.
	Requested(r *traced.Request)
}

// tracedRequest is a request that will have a span.
type tracedRequest struct {
	own, given *host.Trace
	start      time.Time
}

// arrive stores the origin of a request in its context, for the logs and spans of the
// packages that handle it. Probes and requests for metrics have no spans; ok is false for
// them.
func (s *Server) arrive(c echo.Context, start time.Time) (t tracedRequest, ok bool) {
	r := c.Request()
	id, _ := c.Get(requestIDKey).(string)
	origin := traced.Origin{Request: id}
	if s.cfg.Tracer != nil && !isOpen(r) && r.URL.Path != "/metrics" {
		t, ok = tracedRequest{start: start}, true
		parent := r.Header.Values(headerTraceParent)
		if len(parent) != 1 { // several headers count as none
			parent = []string{""}
		}
		t.own, t.given = s.cfg.Tracer.Incoming(parent[0], strings.Join(r.Header.Values(headerTraceState), ","))
		origin.Trace = t.own
	}
	c.SetRequest(r.WithContext(traced.WithOrigin(r.Context(), origin)))
	return t, ok && t.own != nil
}

// answered makes the span of a request that was answered, or will be answered with err.
func (s *Server) answered(c echo.Context, t tracedRequest, err error) {
	span := traced.Request{Own: t.own, Given: t.given, Started: t.start.UnixNano(), Ended: time.Now().UnixNano()}
	span.Route, span.Method, span.Status = s.outcome(c, err)
	span.Request, _ = c.Get(requestIDKey).(string)
	span.Run = subjectOf(c).run
	if grant, ok := c.Get(grantKey).(*host.Grant); ok {
		span.Tenant = grant.Tenant
	}
	s.cfg.Tracer.Requested(&span)
}
