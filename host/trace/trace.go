// Package trace makes the spans of distributed traces and sends them to an OpenTelemetry
// collector, by OTLP over HTTP.
//
// The package must not depend on how a run is executed or a request answered. It is
// called when something has ended, with types of package host. It never receives an
// event, state, payload, header or error message: a span has ids, names, counts, times
// and codes.
//
// # Which spans there are
//
//	request  METHOD ROUTE         of the API, one that starts, steers or asks
//	  run      run WORKFLOW       from its start to its end, over restarts
//	    post     post TYPE        an event from outside; linked with its request
//	    step     step NAME        an attempt of a step, its waits and replays included
//	      call     call RESOURCE  what an attempt asks of a service
//	      run      run WORKFLOW   a child
//
// A span is made when the run, attempt or call has ended, from recorded times, so a run
// that waits for a week holds no memory here. The id of a span follows from its subject:
// the id of a run's span is a hash of tenant and run id, and the id of an attempt's span
// is a hash of both and the attempt's number. A child span made before a crash therefore
// has the parent that is made after the crash, and the journal holds only the request's
// traceparent. For the same reason, an attempt that ends twice, because a crash lost its
// first end before that was durable, makes the same span twice.
//
// # What it costs others
//
// Nothing waits for the collector. Spans go to a queue of bounded length. Spans that find
// the queue full, or that the collector refuses, are counted and dropped.
package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Config says where spans go. For empty fields, OpenTelemetry's environment variables
// apply (OTEL_EXPORTER_OTLP_*, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER).
type Config struct {
	// Endpoint is the collector's base URL, to which /v1/traces is appended. "": from the
	// environment.
	Endpoint string
	// Quiet disables the traceparent header in calls of external services.
	Quiet bool
	// Version is the server's version. "": omitted.
	Version string
	// Queue bounds the spans that wait for the collector. Default 8,192.
	Queue int
	// Every is how long a span waits for other spans to be sent with it. Default 1 s.
	Every time.Duration
	// Log receives the collector's failures, at most one a minute. nil: nothing is
	// logged.
	Log *slog.Logger
}

// Tracer makes spans. Its methods may be called from any goroutine and do not block,
// except Close.
type Tracer struct {
	quiet    bool
	spans    api.Tracer
	provider *sdk.TracerProvider
	queue    *queue
}

// Wanted reports whether the configuration or the environment names a collector.
func Wanted(endpoint string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return endpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// New makes a tracer. The collector need not be reachable yet. The caller must close the
// tracer.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	var opts []otlptracehttp.Option
	if cfg.Endpoint != "" {
		at, err := url.Parse(cfg.Endpoint)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, fmt.Errorf("the collector's endpoint %q is not a URL with http or https", cfg.Endpoint)
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(at.JoinPath("v1/traces").String()))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q: spans are sent by http/protobuf", name, p)
		}
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of spans: %w", err)
	}
	return newTracer(ctx, cfg, exporter)
}

func newTracer(ctx context.Context, cfg Config, exporter sdk.SpanExporter) (*Tracer, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "weft")),
		resource.WithAttributes(optional("service.version", cfg.Version)...),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("describe this server to the collector: %w", err)
	}
	// Messages of the library about its settings go to the log.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Log.Warn("tracing", "error", err) }))
	q := newQueue(exporter, cfg)
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithIDGenerator(ids{}), sdk.WithResource(about))
	return &Tracer{quiet: cfg.Quiet, provider: p, queue: q, spans: p.Tracer("github.com/weftrun/weft", api.WithInstrumentationVersion(cfg.Version))}, nil
}

func optional(key, value string) []attribute.KeyValue {
	if value == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String(key, value)}
}

// Close sends the remaining spans until ctx ends. Spans made afterwards are dropped.
// Close may be called twice.
func (t *Tracer) Close(ctx context.Context) error {
	err := t.queue.Shutdown(ctx)
	return errors.Join(err, t.provider.Shutdown(context.WithoutCancel(ctx))) // it would not begin if ctx has ended
}

// Counts counts spans by their fate.
type Counts struct {
	Sent    uint64 // the collector accepted them
	Dropped uint64 // the queue was full
	Failed  uint64 // the collector did not accept them
	Waiting int    // in the queue
}

// Counts returns the counts so far.
func (t *Tracer) Counts() Counts { return t.queue.counts() }
