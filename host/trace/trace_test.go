package trace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/traced"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var run = traced.Run{Tenant: "acme", HandlerID: "h", RunID: "r", Workflow: "w",
	Trace: &host.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "vendor=1"}}

// made returns what a tracer makes of what it is told, after it is closed.
func made(t *testing.T, cfg Config, tell func(*Tracer)) tracetest.SpanStubs {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	all := &keeper{InMemoryExporter: kept}
	tr, err := newTracer(t.Context(), cfg, all)
	if err != nil {
		t.Fatal(err)
	}
	tell(tr)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all.last
}

// keeper keeps spans beyond its shutdown.
type keeper struct {
	*tracetest.InMemoryExporter
	last tracetest.SpanStubs
}

func (k *keeper) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	k.last = append(k.last, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

// Two servers, one after the other, name spans alike.
func TestNamesFollowFromTheRun(t *testing.T) {
	at := traced.Attempt{Run: run, Step: "s", Invocation: 3, Attempt: 2, Started: 10, Ended: 20}
	tell := func(tr *Tracer) {
		tr.Attempted(&at)
		tr.Called(&traced.Call{Attempt: at, Resource: "web", Key: "k", Started: 12, Ended: 15, Code: "unavailable"})
		tr.Ran(&host.Run{Tenant: "acme", HandlerID: "h", RunID: "r", Workflow: "w", Trace: run.Trace, Started: 5, Completed: 30, Status: host.StatusCompleted})
	}
	one, two := made(t, Config{}, tell), made(t, Config{}, tell)
	if len(one) != 3 || len(two) != 3 {
		t.Fatalf("%d and %d spans", len(one), len(two))
	}
	for i := range one {
		if !one[i].SpanContext.Equal(two[i].SpanContext) || !one[i].Parent.Equal(two[i].Parent) {
			t.Errorf("%s is named %v and %v", one[i].Name, one[i].SpanContext, two[i].SpanContext)
		}
	}
	step, call, ran := one[0], one[1], one[2]
	if call.Parent.SpanID() != step.SpanContext.SpanID() || step.Parent.SpanID() != ran.SpanContext.SpanID() || ran.Parent.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("no tree: %v, %v, %v", call.Parent, step.Parent, ran.Parent)
	}
	if ran.EndTime.UnixNano() != 30 || ran.StartTime.UnixNano() != 5 {
		t.Errorf("the run's times are %v, %v", ran.StartTime, ran.EndTime)
	}
	other := run
	other.Tenant = "ac"
	other.RunID = "mer" // no text may be read as another's
	if runSpan(&other) == runSpan(&run) || runTrace(&other) == runTrace(&run) {
		t.Error("two runs have one name")
	}
}

func TestARunWithoutATraceHasItsOwn(t *testing.T) {
	alone := run
	alone.Trace = nil
	spans := made(t, Config{}, func(tr *Tracer) {
		tr.Ran(&host.Run{Tenant: "acme", RunID: "r", Workflow: "w", Started: 5, Completed: 30})
		tr.Attempted(&traced.Attempt{Run: alone, Invocation: 1, Attempt: 1})
	})
	if spans[0].Parent.IsValid() || spans[1].Parent.TraceID() != spans[0].SpanContext.TraceID() {
		t.Errorf("%v, %v", spans[0].Parent, spans[1].Parent)
	}
}

func TestQuietTellsServicesNothing(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		made(t, Config{Quiet: quiet}, func(tr *Tracer) {
			if out := tr.Outgoing(&traced.Call{Attempt: traced.Attempt{Run: run}}); (out == nil) != quiet {
				t.Errorf("quiet %v tells %v", quiet, out)
			}
		})
	}
}

func TestASampler(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	spans := made(t, Config{}, func(tr *Tracer) {
		tr.Ran(&host.Run{Tenant: "acme", RunID: "r"})
		if own, _ := tr.Incoming("", ""); own == nil || !strings.HasSuffix(own.Parent, "-00") {
			t.Errorf("a request that is not sampled says %v", own)
		}
	})
	if len(spans) != 0 {
		t.Errorf("spans %v", spans)
	}
}

// stuck is a collector that hangs until it is given up.
type stuck struct{ began chan struct{} }

func (s stuck) ExportSpans(ctx context.Context, _ []sdk.ReadOnlySpan) error {
	s.began <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (stuck) Shutdown(context.Context) error { return nil }

func TestASlowCollectorStallsNobody(t *testing.T) {
	s := stuck{make(chan struct{}, 100)}
	tr, err := newTracer(t.Context(), Config{Queue: 4, Every: time.Millisecond}, s)
	if err != nil {
		t.Fatal(err)
	}
	r := host.Run{Tenant: "acme", RunID: "r"}
	tr.Ran(&r)
	<-s.began // the one that sends is stuck now
	for range 10 {
		tr.Ran(&r)
	}
	if c := tr.Counts(); c != (Counts{Dropped: 6, Waiting: 4}) {
		t.Errorf("counts %+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Close(ctx); err != nil {
		t.Error(err)
	}
	if c := tr.Counts(); c != (Counts{Dropped: 6, Failed: 5}) {
		t.Errorf("counts after the end %+v", c)
	}
	tr.Ran(&r) // is of no use, and does no harm
}

func TestEndpoints(t *testing.T) {
	for _, bad := range []string{"127.0.0.1:4318", "ftp://x", "http://", "http://a b"} {
		if _, err := New(t.Context(), Config{Endpoint: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := New(t.Context(), Config{Endpoint: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("grpc: %v", err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	if !Wanted("") {
		t.Error("the environment's endpoint is not seen")
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if Wanted("http://127.0.0.1:1") {
		t.Error("OTEL_SDK_DISABLED is not seen")
	}
}

var errRefused = errors.New("refused")

// refusing is a collector that takes nothing.
type refusing struct{ stuck }

func (refusing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return errRefused }

func TestWhatTheCollectorRefusesIsCounted(t *testing.T) {
	tr, err := newTracer(t.Context(), Config{}, refusing{})
	if err != nil {
		t.Fatal(err)
	}
	tr.Ran(&host.Run{Tenant: "acme", RunID: "r"})
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if c := tr.Counts(); c != (Counts{Failed: 1}) {
		t.Errorf("counts %+v", c)
	}
}

// FuzzIncoming reads what clients send for a trace: it is refused, or written again
// in a form that reads alike.
func FuzzIncoming(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1,other=2")
	f.Add("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "")
	f.Add("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-more", "a=\x00")
	f.Add("00-00000000000000000000000000000000-0000000000000000-00", ",,,=")
	f.Add("", "x=y")
	f.Fuzz(func(t *testing.T, parent, state string) {
		sc := read(parent, state)
		w := write(sc)
		if (w != nil) != sc.IsValid() {
			t.Fatalf("%v is written as %v", sc, w)
		}
		if w == nil {
			return
		}
		if len(w.Parent) != 55 || len(w.State) > 2*maxHeader || strings.ContainsFunc(w.Parent+w.State, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q, %q cannot be a header", w.Parent, w.State)
		}
		if again := read(w.Parent, w.State); again.SpanID() != sc.SpanID() || again.TraceID() != sc.TraceID() || again.IsSampled() != sc.IsSampled() {
			t.Fatalf("%v reads as %v", w, again)
		}
	})
}
