package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/metrics"
	"github.com/weftrun/weft/host/trace"
)

// tracingWithin is how long a stopping server may take to send the remaining spans.
const tracingWithin = 3 * time.Second

// tracingOptions are the flags for traces.
type tracingOptions struct {
	endpoint  string
	propagate bool
}

func (o *tracingOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.endpoint, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector that takes traces by OTLP over HTTP, such as http://127.0.0.1:4318 (or OTEL_EXPORTER_OTLP_ENDPOINT)")
	f.BoolVar(&o.propagate, "trace-propagate", true, "send the trace's id (traceparent) to services that resources of the kind http call")
}

// openTracing creates the tracer, nil if traces are disabled, and its metrics.
func openTracing(ctx context.Context, o tracingOptions, series *metrics.Metrics, log *slog.Logger) (*trace.Tracer, error) {
	if !trace.Wanted(o.endpoint) {
		return nil, nil
	}
	t, err := trace.New(ctx, trace.Config{Endpoint: o.endpoint, Quiet: !o.propagate, Version: cli.Version, Log: log})
	if err != nil {
		return nil, cli.Usage("%s", err)
	}
	count := func(of func(trace.Counts) uint64) func() float64 {
		return func() float64 { return float64(of(t.Counts())) }
	}
	series.Source([]metrics.Reading{
		{Name: "trace_spans_sent_total", Help: "Spans that the collector accepted.", Counter: true, Read: count(func(c trace.Counts) uint64 { return c.Sent })},
		{Name: "trace_spans_dropped_total", Help: "Spans dropped because the queue to the collector was full.", Counter: true, Read: count(func(c trace.Counts) uint64 { return c.Dropped })},
		{Name: "trace_spans_failed_total", Help: "Spans that the collector did not accept.", Counter: true, Read: count(func(c trace.Counts) uint64 { return c.Failed })},
		{Name: "trace_spans_waiting", Help: "Spans in the queue to the collector.", Read: count(func(c trace.Counts) uint64 { return uint64(c.Waiting) })},
	})
	return t, nil
}

// closeTracing sends the remaining spans, if there is a tracer. A failure of the
// collector is not a failure of the server.
func closeTracing(ctx context.Context, t *trace.Tracer, log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracingWithin)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the exporter of spans does not close", "error", err)
	}
}

// requestTracer returns nil, and not an interface that holds a nil pointer, if there is
// no tracer.
func requestTracer(t *trace.Tracer) httpapi.Tracer {
	if t == nil {
		return nil
	}
	return t
}
