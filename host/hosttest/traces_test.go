package hosttest_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// collected is an OpenTelemetry collector that keeps all spans.
type collected struct {
	*httptest.Server
	mu    sync.Mutex // guards the fields below
	spans []*otlp.Span
	who   string        // the server's identity in the last request
	more  chan struct{} // has an element if there are new spans
}

func newCollector(t *testing.T) *collected {
	c := &collected{more: make(chan struct{}, 1)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	for _, from := range req.ResourceSpans {
		c.who = from.Resource.String()
		for _, scope := range from.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// wait waits for a wanted span.
func (c *collected) wait(t *testing.T, what string, wanted func(*otlp.Span) bool) *otlp.Span {
	t.Helper()
	limit := time.After(suite.Hang)
	for {
		c.mu.Lock()
		for _, s := range c.spans {
			if wanted(s) {
				c.mu.Unlock()
				return s
			}
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-limit:
			t.Fatalf("no span %s among %s", what, c.all())
		}
	}
}

// all returns everything collected as text.
func (c *collected) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.who, c.spans)
}

// of finds a span of a run by its name.
func (c *collected) of(t *testing.T, run, name string) *otlp.Span {
	t.Helper()
	return c.wait(t, name+" of "+run, func(s *otlp.Span) bool { return s.Name == name && attr(s, "weft.run") == run })
}

func attr(s *otlp.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key != key {
			continue
		}
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_IntValue:
			return fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			return fmt.Sprint(v.BoolValue)
		}
	}
	return ""
}

// under wants a span to be below another span in the same trace.
func under(t *testing.T, child, parent *otlp.Span) {
	t.Helper()
	if string(child.TraceId) != string(parent.TraceId) || string(child.ParentSpanId) != string(parent.SpanId) {
		t.Errorf("%s (%x under %x) is not under %s (%x)", child.Name, child.TraceId, child.ParentSpanId, parent.Name, parent.SpanId)
	}
	if child.EndTimeUnixNano < child.StartTimeUnixNano {
		t.Errorf("%s ends before it begins", child.Name)
	}
}

const (
	givenTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	givenSpan  = "00f067aa0ba902b7"
	given      = "00-" + givenTrace + "-" + givenSpan + "-01"
)

// outside answers like service, and records the trace headers. The first request hangs.
type outside struct {
	*httptest.Server
	mu      sync.Mutex // guards the fields below
	headers []http.Header
	came    chan struct{}
}

func newOutside(t *testing.T) *outside {
	o := &outside{came: make(chan struct{}, 10)}
	o.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client leaves
		o.mu.Lock()
		o.headers = append(o.headers, r.Header.Clone())
		first := len(o.headers) == 1
		o.mu.Unlock()
		o.came <- struct{}{}
		if first {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(o.Close)
	return o
}

// One tree from the client's own span to the call of a resource, over SIGKILL.
func TestTraceOverARestart(t *testing.T) {
	c, o := newCollector(t), newOutside(t)
	granted := (&service{Server: o.Server}).resources(t, "")
	data, endpoint := t.TempDir(), "--otlp-endpoint="+c.URL
	p := hosttest.Serve(t, data, granted, endpoint)
	put(t, p, "fetch", hosttest.Plugin(t, "fetch-tinygo"))
	a := p.Ask(t, "", http.MethodPost, "/workflows/fetch/run-nowait", `{"start_event":{"path":"first","method":"POST","body":"a cup of tea"}}`,
		"Traceparent", given, "Tracestate", "vendor=1", "X-Request-Id", "my-request")
	r := recordOf(t, a)
	next(t, o.came)
	request := c.wait(t, "of the request", func(s *otlp.Span) bool { return attr(s, "weft.request") == "my-request" })
	p = kill(t, p, data, granted, endpoint)
	next(t, o.came)

	run, step, call := c.of(t, r.RunID, "run fetch"), c.of(t, r.RunID, "step fetch"), c.of(t, r.RunID, "call web")
	if got := hex.EncodeToString(request.TraceId) + hex.EncodeToString(request.ParentSpanId); got != givenTrace+givenSpan {
		t.Errorf("the request is under %s", got)
	}
	if request.Name != "POST /workflows/:name/run-nowait" || request.TraceState != "vendor=1" {
		t.Errorf("the request's span is %s", request)
	}
	under(t, run, request)
	under(t, step, run)
	under(t, call, step)
	if attr(step, "weft.replayed") != "true" {
		t.Errorf("the attempt was replayed, and does not say so: %s", step)
	}
	for _, s := range []*otlp.Span{request, run, step, call} {
		if attr(s, "weft.tenant") != "default" {
			t.Errorf("%s is of tenant %q", s.Name, attr(s, "weft.tenant"))
		}
	}
	first, second := o.headers[0], o.headers[1]
	if want := fmt.Sprintf("00-%s-%x-01", givenTrace, call.SpanId); second.Get("Traceparent") != want || second.Get("Tracestate") != "vendor=1" {
		t.Errorf("the service is told %q, want %q", second.Get("Traceparent"), want)
	}
	if first.Get("Traceparent") == second.Get("Traceparent") || first.Get("Idempotency-Key") != second.Get("Idempotency-Key") {
		t.Errorf("two makings of one call: %v, %v", first, second)
	}
	for _, secret := range []string{"a token that nobody may see", "tea", "first", "asked"} {
		if strings.Contains(c.all(), secret) {
			t.Errorf("%q is in a span", secret)
		}
	}
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func recordOf(t *testing.T, a hosttest.Answer) (r hosttest.Record) {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// linked wants a span to have a link to another span.
func linked(t *testing.T, s, to *otlp.Span) {
	t.Helper()
	if len(s.Links) != 1 || string(s.Links[0].SpanId) != string(to.SpanId) || string(s.Links[0].TraceId) != string(to.TraceId) {
		t.Errorf("%s is not linked with %s: %v", s.Name, to.Name, s.Links)
	}
}

// Children are below the attempt that runs them. Repeated attempts, posted events,
// retries and forks have links to their origins.
func TestTraceOfChildrenAndLinks(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_SERVICE_NAME", "my-weft")
	p := hosttest.Serve(t, t.TempDir())
	for _, name := range []string{"parent", "accumulator", "flaky", "human"} {
		put(t, p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	r := p.Run(t, "parent", start(fields{"items": []string{"a", "b"}}))
	split := c.of(t, r.RunID, "step split")
	under(t, split, c.of(t, r.RunID, "run parent"))
	under(t, c.wait(t, "of a child", func(s *otlp.Span) bool { return s.Name == "run accumulator" }), split)

	r = p.Run(t, "flaky", start(fields{"fail_times": 1}))
	attempt := func(n string) *otlp.Span {
		return c.wait(t, "attempt "+n, func(s *otlp.Span) bool { return attr(s, "weft.run") == r.RunID && attr(s, "weft.attempt") == n })
	}
	linked(t, attempt("2"), attempt("1"))
	if attr(attempt("1"), "error.type") != "flaky" || attempt("1").Status.Code != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("the attempt that failed: %s", attempt("1"))
	}

	failed := p.Run(t, "flaky", start(fields{"fail_times": 9, "max_attempts": 1}))
	again := recordOf(t, p.Ask(t, "", http.MethodPost, "/handlers/"+failed.HandlerID+"/retry", "", "Traceparent", given))
	linked(t, c.of(t, again.RunID, "run flaky"), c.of(t, failed.RunID, "run flaky"))
	if got := hex.EncodeToString(c.of(t, again.RunID, "run flaky").TraceId); got != givenTrace {
		t.Errorf("the retry is in trace %s", got)
	}

	r = p.RunNoWait(t, "human", "{}")
	p.Events(t, r.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "InputRequiredEvent" })
	p.Ask(t, "", http.MethodPost, "/events/"+r.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{"response":"my answer"}}}`, "X-Request-Id", "the-answer")
	post := c.of(t, r.RunID, "post HumanResponseEvent")
	under(t, post, c.of(t, r.RunID, "run human"))
	linked(t, post, c.wait(t, "of the post", func(s *otlp.Span) bool { return attr(s, "weft.request") == "the-answer" }))
	if all := c.all(); strings.Contains(all, "my answer") || !strings.Contains(all, "my-weft") {
		t.Errorf("spans: %s", all)
	}

	// A trace that the client does not sample is not sampled.
	r = recordOf(t, p.Ask(t, "", http.MethodPost, "/workflows/flaky/run", `{"start_event":{"fail_times":0}}`, "Traceparent", strings.TrimSuffix(given, "1")+"0"))
	last := p.Run(t, "flaky", start(fields{"fail_times": 0}))
	c.of(t, last.RunID, "run flaky")
	if strings.Contains(c.all(), r.RunID) {
		t.Errorf("a run that is not sampled has spans")
	}
}

// A collector that is absent or does not answer affects nobody.
func TestTraceWithoutACollector(t *testing.T) {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, url := range []string{hangs.URL, gone.URL} {
		p := hosttest.Serve(t, t.TempDir(), "--otlp-endpoint="+url)
		put(t, p, "flaky", hosttest.Plugin(t, "flaky-tinygo"))
		for range 20 {
			p.Run(t, "flaky", start(fields{"fail_times": 0}))
		}
		a := p.Ask(t, "", http.MethodGet, "/metrics", "")
		if !strings.Contains(a.Body, "weft_trace_spans_dropped_total 0") || !strings.Contains(a.Body, "weft_trace_spans_sent_total 0") {
			t.Errorf("the metrics do not tell of spans")
		}
		if code := p.Interrupt(t); code != 0 {
			t.Errorf("exit code %d: %s", code, p.Log())
		}
	}
}
