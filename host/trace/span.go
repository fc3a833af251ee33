package trace

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/traced"
)

// Names of attributes defined by OpenTelemetry; our own begin with weft.
const (
	attrErrorType = "error.type"
	attrMethod    = "http.request.method"
	attrRoute     = "http.route"
	attrStatus    = "http.response.status_code"
)

// span describes a span to make.
type span struct {
	name     string
	kind     api.SpanKind
	trace    api.TraceID // without a parent
	id       api.SpanID
	parent   api.SpanContext
	links    []api.Link
	from, to int64 // Unix nanoseconds
	attrs    []attribute.KeyValue
	failed   string // an error code; "": no failure
}

// put makes a span and ends it.
func (t *Tracer) put(s span) {
	s.to = max(s.from, s.to)
	if s.failed != "" {
		s.attrs = append(s.attrs, attribute.String(attrErrorType, s.failed))
	}
	_, made := t.spans.Start(s.context(), s.name, api.WithSpanKind(s.kind), api.WithLinks(s.links...),
		api.WithAttributes(s.attrs...), api.WithTimestamp(time.Unix(0, s.from)))
	if s.failed != "" {
		made.SetStatus(codes.Error, s.failed)
	}
	made.End(api.WithTimestamp(time.Unix(0, s.to)))
}

func (s *span) context() context.Context {
	ctx := withName(context.Background(), named{s.trace, s.id})
	if s.parent.IsValid() {
		ctx = api.ContextWithRemoteSpanContext(ctx, s.parent)
	}
	return ctx
}

// asked returns the context that a span will have. The sampler decides by the trace, so
// it decides the same when the span is made.
func (t *Tracer) asked(s span) api.SpanContext {
	_, made := t.spans.Start(s.context(), s.name, api.WithSpanKind(s.kind)) //nolint:spancheck // never ended, and so never sent
	return made.SpanContext()                                               //nolint:spancheck // the same
}

// parentOf returns the context that started a run. It is invalid if unknown.
func parentOf(run *traced.Run) api.SpanContext {
	if run.Trace == nil {
		return api.SpanContext{}
	}
	return read(run.Trace.Parent, run.Trace.State)
}

// of returns the run's span without its times.
func (t *Tracer) of(run *traced.Run) span {
	return span{name: "run " + run.Workflow, kind: api.SpanKindInternal, trace: runTrace(run), id: runSpan(run), parent: parentOf(run)}
}

// under returns the context of a span in the run, with the run's sampling decision.
func (t *Tracer) under(run *traced.Run, id api.SpanID) api.SpanContext {
	return t.asked(t.of(run)).WithSpanID(id)
}

// Span returns the traceparent of a run's own span.
func (t *Tracer) Span(run *traced.Run) string {
	if w := write(t.asked(t.of(run))); w != nil {
		return w.Parent
	}
	return ""
}

// Child returns the trace for a run that an attempt starts.
func (t *Tracer) Child(at *traced.Attempt) *host.Trace {
	return write(t.under(&at.Run, attemptSpan(at, at.Attempt)))
}

// Outgoing returns the trace to send to a called service, or nil to send none.
func (t *Tracer) Outgoing(c *traced.Call) *host.Trace {
	if t.quiet {
		return nil
	}
	return write(t.under(&c.Attempt.Run, callSpan(c)))
}

// attributes returns the attributes of every span of a run.
func attributes(run *traced.Run, more ...attribute.KeyValue) []attribute.KeyValue {
	return append([]attribute.KeyValue{
		attribute.String("weft.tenant", run.Tenant), attribute.String("weft.workflow", run.Workflow),
		attribute.String("weft.handler", run.HandlerID), attribute.String("weft.run", run.RunID),
	}, more...)
}

// Ran makes the span of a run that has ended.
func (t *Tracer) Ran(run *host.Run) {
	r := traced.Of(run)
	s := t.of(&r)
	s.from, s.to, s.failed = run.Started, run.Completed, run.ErrorCode
	s.attrs = attributes(&r, attribute.String("weft.session", run.SessionID), attribute.String("weft.status", string(run.Status)),
		attribute.Int64("weft.steps", int64(run.Steps)), attribute.Int64("weft.fuel", int64(run.Fuel)))
	if run.Trace != nil {
		s.links = links(read(run.Trace.Link, ""))
	}
	t.put(s)
}

func links(to ...api.SpanContext) (out []api.Link) {
	for _, sc := range to {
		if sc.IsValid() {
			out = append(out, api.Link{SpanContext: sc})
		}
	}
	return out
}

// Attempted makes the span of an attempt that has ended.
func (t *Tracer) Attempted(at *traced.Attempt) {
	run := t.asked(t.of(&at.Run))
	s := span{
		name: "step " + at.Step, kind: api.SpanKindInternal, id: attemptSpan(at, at.Attempt), parent: run,
		from: at.Started, to: at.Ended, failed: at.Code,
		attrs: attributes(&at.Run, attribute.String("weft.step", at.Step), attribute.Int64("weft.invocation", int64(at.Invocation)),
			attribute.Int64("weft.attempt", int64(at.Attempt)), attribute.Bool("weft.replayed", at.Replayed), attribute.Int64("weft.fuel", int64(at.Fuel))),
	}
	if at.Abandoned {
		s.attrs = append(s.attrs, attribute.Bool("weft.abandoned", true))
	}
	if at.Attempt > 1 {
		s.links = links(run.WithSpanID(attemptSpan(at, at.Attempt-1)))
	}
	t.put(s)
}

// Called makes the span of a call that was made.
func (t *Tracer) Called(c *traced.Call) {
	at := &c.Attempt
	t.put(span{
		name: "call " + c.Resource, kind: api.SpanKindClient, id: callSpan(c), parent: t.under(&at.Run, attemptSpan(at, at.Attempt)),
		from: c.Started, to: c.Ended, failed: c.Code,
		attrs: attributes(&at.Run, attribute.String("weft.step", at.Step), attribute.String("weft.resource", c.Resource),
			attribute.String("weft.resource.method", clip(c.Method)), attribute.String("weft.resource.mode", string(c.Mode))),
	})
}

// Posted makes the span of an event posted to a run, linked with the request that brought
// the event.
func (t *Tracer) Posted(p *traced.Post) {
	s := span{
		name: "post " + p.Type, kind: api.SpanKindConsumer, id: randomSpan(), parent: t.asked(t.of(&p.Run)),
		from: p.At, to: p.At, attrs: attributes(&p.Run, attribute.String("weft.event", p.Type)),
	}
	if p.From != nil {
		s.links = links(read(p.From.Parent, p.From.State))
	}
	t.put(s)
}

// Incoming returns the traces of a request, by its headers: own is the request's own
// span; given is the client's, or nil if the headers are missing or invalid.
func (t *Tracer) Incoming(parent, state string) (own, given *host.Trace) {
	from := read(parent, state)
	s := span{name: "request", kind: api.SpanKindServer, trace: randomTrace(), id: randomSpan(), parent: from}
	return write(t.asked(s)), write(from)
}

// Requested makes the span of a request that was answered.
func (t *Tracer) Requested(r *traced.Request) {
	own := read(r.Own.Parent, r.Own.State)
	s := span{
		name: strings.TrimSpace(r.Method + " " + r.Route), kind: api.SpanKindServer, trace: own.TraceID(), id: own.SpanID(), from: r.Started, to: r.Ended,
		attrs: []attribute.KeyValue{attribute.String(attrMethod, r.Method), attribute.Int(attrStatus, r.Status), attribute.String("weft.request", r.Request)},
	}
	if r.Given != nil {
		s.parent = read(r.Given.Parent, r.Given.State)
	}
	for _, a := range []struct{ key, value string }{{attrRoute, r.Route}, {"weft.tenant", r.Tenant}, {"weft.run", r.Run}} {
		s.attrs = append(s.attrs, optional(a.key, a.value)...)
	}
	if r.Status >= 500 {
		s.failed = "http_" + strconv.Itoa(r.Status)
	}
	t.put(s)
}

// clip bounds a text from a guest.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 64)], "?")
}
