package weft

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// The golden vectors of the ABI, shared with the host.
const vectorDir = "../../../testdata/abi"

func vector(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(vectorDir, name+".cbor"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(t *testing.T, name string, got []byte) {
	t.Helper()
	if want := vector(t, name); !bytes.Equal(got, want) {
		t.Errorf("%s:\ngot  %x\nwant %x", name, got, want)
	}
}

// Every vector is plain data, which comes back byte for byte.
func TestVectorsAsData(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectorDir, "*.cbor"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s (%v)", vectorDir, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cbor")
		d := cbor.NewDecoder(vector(t, name))
		v := d.Value()
		d.End()
		if d.Err() != nil {
			t.Errorf("%s: %v", name, d.Err())
			continue
		}
		b, err := codec.Append(nil, v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, name, b)
	}
}

type itemEvent struct {
	_     struct{} `weft:"ItemEvent"`
	Item  string
	Index int
}

type progressEvent struct {
	_ struct{} `weft:"ProgressEvent"`
	I int
}

type (
	typeA struct {
		_ struct{} `weft:"A"`
	}
	typeB struct {
		_ struct{} `weft:"B"`
	}
	typeC struct {
		_ struct{} `weft:"C"`
	}
)

// recorder keeps the last request and answers with a fixed response.
type recorder struct {
	name     string
	request  []byte
	response []byte
	output   []byte
	input    []byte
}

func (r *recorder) Call(name string, request []byte) (uint32, []byte) {
	r.name, r.request = name, bytes.Clone(request)
	return boundary.OK, r.response
}

func (r *recorder) Input() []byte { return r.input }

func (r *recorder) Output(output []byte) { r.output = bytes.Clone(output) }

// withHost puts a host in place for the test.
func withHost(t *testing.T, host boundary.Host) {
	t.Helper()
	outer := boundary.Native
	boundary.Native = host
	t.Cleanup(func() { boundary.Native = outer })
}

// Each request of the SDK is the vector of that name.
func TestVectorsOfRequests(t *testing.T) {
	host := &recorder{}
	withHost(t, host)
	milk := itemEvent{Item: "milk"}
	s := &step{name: "test"}
	if err := Emits(milk).applyStep(s); err != nil {
		t.Fatal(err)
	}
	if err := Streams(progressEvent{}).applyStep(s); err != nil {
		t.Fatal(err)
	}
	ctx := &Context[Untyped]{&invocation{step: s}}
	var v any
	var item itemEvent
	collecting := func(call func()) func() {
		return func() {
			d := cbor.NewDecoder(vector(t, "collect_events-minimal"))
			d.Array()
			ctx.trigger = d.Raw()
			call()
		}
	}
	for name, call := range map[string]func(){
		"state_get-root":             func() { _ = ctx.Get("", &v) },
		"state_get-path":             func() { _ = ctx.Get("questions.0.answer", &v) },
		"state_get-default":          func() { _ = ctx.GetOr("count", &v, 0) },
		"state_get-default-null":     func() { _ = ctx.GetOr("count", &v, nil) },
		"state_edit-one":             func() { _ = ctx.Set("", map[string]any{}) },
		"state_edit-increment-float": func() { _, _ = ctx.IncrementFloat("total", 0.5) },
		"state_edit-list-indices":    func() { _, _ = ctx.Batch().Set("results.-1", nil).Delete("results.0").Do() },
		"state_edit-all-ops":         func() { _, _ = allOps(ctx.Batch()).Do() },
		"state_begin-root":           func() { beginOnly(ctx, host, "") },
		"state_begin-path":           func() { beginOnly(ctx, host, "players.3") },
		"state_commit-map":           func() { commitOnly(ctx, host, "a0", func(v *any) { *v = map[string]any{"count": 2} }) },
		"state_commit-null":          func() { commitOnly(ctx, host, "01", func(v *any) { *v = nil }) },
		"state_abort-empty":          func() { ctx.abort() },
		"send_event-all":             func() { _ = ctx.Send(milk) },
		"send_event-step":            func() { _ = ctx.SendTo("process_item", milk) },
		"write_event_to_stream-one":  func() { _ = ctx.Stream(progressEvent{}) },
		"collect_events-minimal":     collecting(func() { _, _ = ctx.Collect(&item, &item) }),
		"collect_events-buffer":      collecting(func() { _, _ = ctx.CollectIn("abc", &typeC{}, &typeA{}, &typeB{}) }),
		"now-empty":                  func() { host.response = []byte{1}; _ = ctx.Now() },
		"random-max":                 func() { _, _ = ctx.Random(4096) },
		"random-zero":                func() { _, _ = ctx.Random(0) },
		"log-debug":                  func() { ctx.Debug("entering") },
		"log-info":                   func() { ctx.Info("") },
		"log-warn-attrs":             func() { ctx.Warn("slow", "step", "count", "seconds", 1.5) },
		"state_get-segments-64":      func() { _ = ctx.Get(pathOf(t, "state_get-segments-64"), &v) },
		"state_get-path-4096":        func() { _ = ctx.Get(pathOf(t, "state_get-path-4096"), &v) },
	} {
		host.name, host.request, host.response = "", nil, []byte{cbor.Null}
		call()
		if want, _, _ := strings.Cut(name, "-"); host.name != want {
			t.Errorf("%s: the SDK calls %q", name, host.name)
		}
		same(t, name, host.request)
	}
}

func allOps(b *Batch) *Batch {
	return b.Set("a.b", map[string]any{"x": 1}).Delete("a.c").Append("log", "line").Increment("count", -1).
		Merge("", map[string]any{"m": map[string]any{"n": nil}}).Test("a.b.x", 1).Clear()
}

func pathOf(t *testing.T, name string) string {
	t.Helper()
	d := cbor.NewDecoder(vector(t, name))
	d.Array()
	return d.Text()
}

// beginOnly leaves the request that opens an edit in host.
func beginOnly(ctx *Context[Untyped], host *recorder, path string) {
	var request []byte
	_ = EditAt(ctx, path, func(*any) error { request = host.request; return nil })
	host.name, host.request = "state_begin", request
}

// commitOnly leaves the request that ends an edit in host.
func commitOnly(ctx *Context[Untyped], host *recorder, value string, change func(*any)) {
	host.response, _ = hex.DecodeString(value)
	_ = EditAt(ctx, "p", func(v *any) error { change(v); return nil })
}

// Each step input is read in full: what was read makes the vector again.
func TestVectorsOfInputs(t *testing.T) {
	one, err := eventOf(reflect.TypeOf(itemEvent{}))
	if err != nil {
		t.Fatal(err)
	}
	type startEvent struct {
		_     struct{} `weft:"StartEvent"`
		Items []string
	}
	started, err := eventOf(reflect.TypeOf(startEvent{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"step-input-one", "step-input-clock-before-1970", "step-input-config", "step-input-config-empty",
		"step-input-retried", "step-input-list", "step-input-list-empty", "step-input-list-30"} {
		inv := &invocation{input: vector(t, name), step: &step{accepts: []*eventType{one}}}
		inv.in = cbor.NewDecoder(inv.input)
		inv.in.Array()
		stepName := inv.in.Text()
		var again codec.Encoder // the test's own encoding of what was read
		var list []itemEvent
		var item itemEvent
		var start startEvent
		switch {
		case strings.Contains(name, "list"):
			inv.step.input, inv.step.takes = inputList, reflect.TypeOf(list)
			err = inv.readTrigger(unsafe.Pointer(&list))
		case strings.HasSuffix(name, "one"):
			inv.step.accepts[0] = started
			err = inv.readTrigger(unsafe.Pointer(&start))
			inv.step.accepts[0] = one
		default:
			err = inv.readTrigger(unsafe.Pointer(&item))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		info := inv.RunInfo()
		parts := []any{stepName, nil, runInfoAsData(info)}
		switch {
		case list != nil:
			events := []any{}
			for i, ev := range list {
				events = append(events, []any{"ItemEvent", map[string]any{"item": ev.Item, "index": ev.Index}, i + 1})
			}
			parts[1] = events
		case start.Items != nil:
			parts[1] = []any{"StartEvent", map[string]any{"items": start.Items}, 1}
		default:
			parts[1] = []any{"ItemEvent", map[string]any{"item": item.Item, "index": item.Index}, 1}
		}
		if inv.config != nil {
			parts = append(parts, codec.Raw(inv.config))
		}
		again.Value(parts)
		same(t, name, again.B)
	}
}

func runInfoAsData(info RunInfo) []any {
	parts := []any{info.Tenant, info.Workflow, info.RunID, info.SessionID, info.Invocation, info.Attempt, info.Started().UnixNano()}
	if info.LastError != nil {
		var e codec.Encoder
		encodeError(&e, info.LastError)
		parts = append(parts, codec.Raw(e.B))
	}
	return parts
}

// Errors are written as the vectors, and read from them.
func TestVectorsOfErrors(t *testing.T) {
	yes, no := true, false
	for name, want := range map[string]*Error{
		"error-minimal":       {Code: "flaky"},
		"error-full":          {Code: "flaky", Message: "flaky: attempt 1 of 3", Retryable: &yes, Data: map[string]any{"attempt": int64(1)}},
		"error-not-retryable": {Code: "invalid_message", Message: "steps.0.name: is missing", Retryable: &no},
	} {
		var e codec.Encoder
		encodeError(&e, want)
		same(t, name, e.B)
		d := cbor.NewDecoder(e.B)
		if got := decodeError(d); !reflect.DeepEqual(got, want) || d.Err() != nil {
			t.Errorf("%s reads as %+v (%v)", name, got, d.Err())
		}
	}
}

// Outputs are written as the vectors.
func TestVectorsOfOutputs(t *testing.T) {
	give := func(result any, gives any, options ...StepOption) []byte {
		s := &step{name: "s", takes: reflect.TypeOf(itemEvent{}), gives: reflect.TypeOf(gives)}
		if s.build(options); len(s.faults) > 0 {
			t.Fatal(s.faults)
		}
		inv := &invocation{step: s}
		plan, err := codec.Of(s.gives)
		if err != nil {
			t.Fatal(err)
		}
		if err := inv.writeResult(plan.Box(result)); err != nil {
			t.Fatal(err)
		}
		return inv.output
	}
	same(t, "step-output-nothing", give(Nothing{}, Nothing{}))
	same(t, "step-output-nothing", give((*Stop)(nil), (*Stop)(nil)))
	same(t, "step-output-event", give(Result(42), Stop{}))
	stop := Result(42)
	same(t, "step-output-event", give(&stop, &stop))
	same(t, "step-output-list-empty", give([]itemEvent{}, []itemEvent{}))
	same(t, "step-output-list-empty", give([]itemEvent(nil), []itemEvent{}))

	withHost(t, &recorder{})
	for name, err := range map[string]error{
		"step-output-error": &Error{Code: "flaky", Message: "asked to fail"},
	} {
		if got := stepOutput(t, err); !bytes.Equal(got, vector(t, name)) {
			t.Errorf("%s: got %x", name, got)
		}
	}
}

// stepOutput returns the output of a step that fails.
func stepOutput(t *testing.T, failure error) []byte {
	t.Helper()
	outer := defined
	defer func() { defined = outer }()
	defined = nil
	Define("golden", Step("start", func(*Context[Untyped], itemEvent) (Nothing, error) { return Nothing{}, failure }))
	host := &recorder{input: vector(t, "step-input-config-empty")}
	withHost(t, host)
	if status := boundary.Step(len(host.input)); status != 1 {
		t.Errorf("status %d", status)
	}
	return host.output
}
