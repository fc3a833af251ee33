package trace

import (
	"context"
	"net/textproto"

	"go.opentelemetry.io/otel/propagation"
	api "go.opentelemetry.io/otel/trace"

	"github.com/weftrun/weft/host"
)

// maxHeader bounds a traceparent and a tracestate, in bytes. A longer header is ignored.
const maxHeader = 512

// texts are the two headers of W3C Trace Context.
type texts struct{ parent, state string }

const (
	fieldParent = "Traceparent"
	fieldState  = "Tracestate"
)

// Get implements propagation.TextMapCarrier.
func (t *texts) Get(key string) string {
	switch textproto.CanonicalMIMEHeaderKey(key) {
	case fieldParent:
		return t.parent
	case fieldState:
		return t.state
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (t *texts) Set(key, value string) {
	switch textproto.CanonicalMIMEHeaderKey(key) {
	case fieldParent:
		t.parent = value
	case fieldState:
		t.state = value
	}
}

// Keys implements propagation.TextMapCarrier.
func (t *texts) Keys() []string { return []string{fieldParent, fieldState} }

// read returns the span that the texts name, or an invalid one.
func read(parent, state string) api.SpanContext {
	if parent == "" || len(parent) > maxHeader {
		return api.SpanContext{}
	}
	if len(state) > maxHeader {
		state = ""
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), &texts{parent, state})
	return api.SpanContextFromContext(ctx)
}

// write returns the texts that name a span, or nil for an invalid span.
func write(sc api.SpanContext) *host.Trace {
	if !sc.IsValid() {
		return nil
	}
	var t texts
	propagation.TraceContext{}.Inject(api.ContextWithSpanContext(context.Background(), sc), &t)
	return &host.Trace{Parent: t.parent, State: t.state}
}
