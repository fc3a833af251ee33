package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/diagram"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/position"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a host that returns what a test sets, and records the requests.
type fake struct {
	mu   sync.Mutex
	run  host.Run
	runs []host.Run
	more bool
	err  error
	// deleted is the last deleted version of the plugin.
	deleted string
	events  []host.StreamEvent
	info    host.PluginInfo
	flow    host.WorkflowInfo

	start     host.StartRequest
	startBody string
	query     host.RunQuery
	rows      host.RowQuery
	journal   host.TimelineQuery
	forked    host.ForkRequest
	sent      abi.Event
	step      string
	purge     bool
	composed  host.Composition
	put       []byte
	opened    []int64 // the positions of the streams
	sessions  fakeSessions
	// hold keeps streams open after their last event until the client leaves.
	hold bool
}

func (f *fake) Start(_ context.Context, req host.StartRequest) (host.Run, error) {
	f.start = req
	text, err := abi.ToJSON(req.Event.Body)
	if err != nil {
		return host.Run{}, err
	}
	f.startBody = string(text)
	return f.run, f.err
}

func (f *fake) Get(context.Context, string, string) (host.Run, error) { return f.run, f.err }

func (f *fake) List(_ context.Context, q host.RunQuery) ([]host.Run, bool, error) {
	f.query = q
	return f.runs, f.more, f.err
}

func (f *fake) Rows(_ context.Context, q host.RowQuery) (rows []host.RunRow, more bool, err error) {
	f.rows = q
	for i := range f.runs {
		rows = append(rows, host.RunRow{Run: f.runs[i], Phase: f.runs[i].Phase()})
	}
	return rows, f.more, f.err
}

func (f *fake) RunCounts(context.Context, string) ([]host.RunCount, error) {
	return []host.RunCount{{Workflow: "flow", Phase: host.PhaseWaiting, Runs: 3, Children: 1}}, f.err
}

func (f *fake) SendOnce(_ context.Context, _, _ string, e abi.Event, step string, _ host.Once) (host.Delivery, error) {
	f.sent, f.step = e, step
	return host.Delivery{How: host.DeliveredSteps, To: []string{"s", "t"}}, f.err
}

func (f *fake) Timeline(_ context.Context, q host.TimelineQuery) (host.Timeline, error) {
	f.journal = q
	after, limit := q.After, q.Limit
	if after == 0 {
		return host.Timeline{Entries: []host.TimelineEntry{{
			Seq: 3, At: 1e9 + 1, RunID: "r", Kind: "edit", Forkable: true, Step: "s", Invocation: 1, Attempt: 2, Call: uint64(limit),
			Edits: []host.TimelineEdit{{Path: "x", Old: abi.Null, New: abi.Raw{1}}},
		}}, Next: 3}, f.err
	}
	return host.Timeline{Entries: []host.TimelineEntry{{Seq: after + 1, At: 2e9, RunID: "r", Kind: "finish", Status: host.StatusCompleted, Duration: 5e8}}}, f.err
}

func (f *fake) StateAt(_ context.Context, _, id string, at uint64, path string) (host.StateValue, error) {
	value, err := abi.Marshal(fmt.Sprintf("%s %d %s", id, at, path))
	if err != nil {
		return host.StateValue{}, err
	}
	return host.StateValue{Value: value, Tag: "t"}, f.err
}

func (f *fake) Fork(_ context.Context, req host.ForkRequest) (host.Fork, error) {
	f.forked = req
	return host.Fork{
		Run:  host.Run{HandlerID: "f", RunID: "r", Status: host.StatusRunning, Steps: req.At},
		Anew: []host.Renewed{{Kind: host.RenewedChild, Step: "s", Workflow: "w", HandlerID: "new", Was: "old"}},
	}, f.err
}

func (f *fake) Export(context.Context, string, string) (host.RunSnapshot, error) {
	return host.RunSnapshot{Version: 1, Workflow: "w", Session: []byte{1}}, f.err
}

func (f *fake) Pause(context.Context, string, string) (host.Run, error) {
	return host.Run{HandlerID: "h", Status: host.StatusRunning, Paused: true}, f.err
}

func (f *fake) Resume(context.Context, string, string) (host.Run, error) {
	return host.Run{HandlerID: "h", Status: host.StatusRunning, WaitingFor: []host.Waiting{{Step: "s", Type: "T", WaiterID: "w", Since: 1e9, Requirements: `{"role":"boss"}`}, {Reason: host.WaitsForTurn, Since: 2e9}}}, f.err
}

func (f *fake) Cancel(_ context.Context, _, _ string, purge bool) (bool, error) {
	f.purge = purge
	return purge, f.err
}

type fakeStream struct {
	events []host.StreamEvent
	hold   bool
}

func (f *fake) Events(_ context.Context, _, _ string, after int64) (host.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, after)
	if f.err != nil {
		return nil, f.err
	}
	s := &fakeStream{hold: f.hold}
	for _, e := range f.events {
		if int64(e.Seq) > after && after != position.FromNow {
			s.events = append(s.events, e)
		}
	}
	return s, nil
}

func (s *fakeStream) Next(ctx context.Context, _ time.Duration) ([]host.StreamEvent, error) {
	if len(s.events) == 0 {
		if s.hold {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, io.EOF
	}
	batch := s.events[:1]
	s.events = s.events[1:]
	return batch, nil
}

func (s *fakeStream) Ended() bool { return len(s.events) == 0 && !s.hold }
func (s *fakeStream) Close()      {}

func (f *fake) Healthy() error { return f.err }

// Reduced implements host.Health.
func (f *fake) Reduced() string { return "" }
func (f *fake) Ready() error    { return f.err }

// plugins is the fake's host.Plugins.
type plugins struct{ f *fake }

func (p plugins) Put(_ context.Context, _, name string, wasm []byte) (host.PluginInfo, bool, error) {
	first := p.f.put == nil
	p.f.put = wasm
	p.f.info.Name = name
	return p.f.info, first, p.f.err
}

func (p plugins) Plugin(context.Context, string, string) (host.PluginInfo, error) {
	return p.f.info, p.f.err
}

func (p plugins) List(context.Context, string) ([]host.PluginInfo, error) {
	return []host.PluginInfo{p.f.info}, p.f.err
}

func (p plugins) Versions(context.Context, string, string) ([]host.PluginInfo, error) {
	return []host.PluginInfo{p.f.info, p.f.info}, p.f.err
}
func (p plugins) Module(_ context.Context, _, name, digest string) ([]byte, int, error) {
	return []byte("module of " + name + digest), 3, p.f.err
}

func (p plugins) Delete(context.Context, string, string) error { return p.f.err }

func (p plugins) DeleteVersion(_ context.Context, _, name string, version int) error {
	p.f.deleted = fmt.Sprint(name, " ", version)
	return p.f.err
}

func (p plugins) Workflows(context.Context, string) ([]string, error) {
	return []string{"a", "b"}, p.f.err
}

func (p plugins) Summaries(context.Context, string) ([]host.WorkflowSummary, error) {
	return []host.WorkflowSummary{{Name: "a", Description: "d", Plugins: []string{"p", "q"}, Version: 2, Digest: "0f", Composed: true, Flow: true, Runs: 7}}, p.f.err
}

func (p plugins) Workflow(_ context.Context, _, name string) (host.WorkflowInfo, error) {
	p.f.flow.Name = name
	return p.f.flow, nil
}

func (p plugins) Diagram(_ context.Context, _, name, digest string) (diagram.Diagram, error) {
	return diagram.Diagram{
		Workflow: name, Digest: digest, Flow: true,
		Nodes: []diagram.Node{{ID: "a/b", Kind: diagram.NodeStep, Label: "b", Parent: "a", Form: "loop", EventKind: abi.KindStop, Optional: true}},
		Edges: []diagram.Edge{{Source: "a/b", Target: "a/b", Kind: diagram.EdgeLeads, Label: "x"}},
	}, p.f.err
}

func (p plugins) Compose(_ context.Context, _, name string, c host.Composition) (host.WorkflowInfo, bool, error) {
	changed := !reflect.DeepEqual(p.f.composed, c)
	p.f.composed = c
	return host.WorkflowInfo{Name: name, Plugins: c.Plugins, Settings: c.Settings, Digest: "d", Composed: true}, changed, p.f.err
}

func (p plugins) Decompose(context.Context, string, string) error { return p.f.err }

func (f *fake) FamilyEvents(context.Context, string, string, position.Family) (host.FamilyStream, error) {
	return nil, f.err
}

// serve serves a fake through the real API, within a layer of the test's.
func serve(t *testing.T, f *fake, layer func(http.Handler) http.Handler) *client.Client {
	t.Helper()
	h := httpapi.New(httpapi.Config{Runs: f, Sessions: &f.sessions, Plugins: plugins{f}, Health: f}).Handler()
	if layer != nil {
		h = layer(h)
	}
	return clientOf(t, h, client.Options{})
}

// clientOf serves a handler and returns a client that retries at once.
func clientOf(t *testing.T, h http.Handler, opts client.Options) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	opts.RetryDelay = time.Nanosecond
	c, err := client.New(s.URL+"/", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
