package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/diagram"
	"github.com/weftrun/weft/host/position"
	"github.com/weftrun/weft/host/turns"
)

// errorOf returns the *host.Error that an error must be.
func errorOf(t *testing.T, err error) *host.Error {
	t.Helper()
	var e *host.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v (%T), want a *host.Error", err, err)
	}
	return e
}

func raw(t *testing.T, text string) abi.Raw {
	t.Helper()
	r, err := abi.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "ftp://x", "http://", "://", "http://x/?a=b", "http://a b"} {
		if _, err := client.New(bad, client.Options{}); host.CodeOf(err) != host.CodeInvalidArgument {
			t.Errorf("New(%q) = %v", bad, err)
		}
	}
	for _, good := range []string{"localhost:8080", "http://127.0.0.1:1/", "https://x/base"} {
		if _, err := client.New(good, client.Options{}); err != nil {
			t.Errorf("New(%q) = %v", good, err)
		}
	}
}

func TestStart(t *testing.T) {
	stamp := time.Date(2026, 11, 21, 2, 47, 31, 384221000, time.UTC).UnixNano()
	f := &fake{
		run: host.Run{
			HandlerID: "h", RunID: "r", SessionID: "s", Workflow: "w", Status: host.StatusCompleted,
			Started: stamp, Updated: stamp, Completed: stamp + 1000, Paused: true, Steps: 3,
			Result:  &host.StreamEvent{Type: "StopEvent", Base: true, RunID: "r", Terminal: true, Body: raw(t, `{"result":[1,2.0]}`)},
			Blocked: &host.Blocked{Code: "c", Message: "m"},
		},
		flow: host.WorkflowInfo{StartType: "StartEvent", Events: []host.EventInfo{{Type: "StartEvent"}}},
	}
	c := serve(t, f, nil)
	rec, err := c.Start(t.Context(), client.StartRequest{
		Workflow: "w", Event: json.RawMessage(`{"a":1.0}`), HandlerID: "h", SessionID: "s", OnBusy: host.OnBusyReject, Wait: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rec.Run, f.run) {
		t.Errorf("run = %+v, want %+v", rec.Run, f.run)
	}
	if !strings.HasPrefix(string(rec.JSON), `{"handler_id":"h","workflow_name":"w"`) {
		t.Errorf("JSON = %s", rec.JSON)
	}
	if f.start.Workflow != "w" || f.start.HandlerID != "h" || f.start.SessionID != "s" || f.start.OnBusy != host.OnBusyReject || !f.start.Wait || f.startBody != `{"a":1.0}` {
		t.Errorf("request = %+v %s", f.start, f.startBody)
	}
	if _, err := c.Start(t.Context(), client.StartRequest{Workflow: "w"}); err != nil || f.start.Wait || f.start.HandlerID != "" || f.startBody != "{}" {
		t.Errorf("request = %+v %s, %v", f.start, f.startBody, err)
	}
	if _, err := c.Start(t.Context(), client.StartRequest{Workflow: "w", Event: json.RawMessage(`{`)}); host.CodeOf(err) != host.CodeInvalidArgument {
		t.Errorf("broken event: %v", err)
	}
}

func TestFailedRunIsARecord(t *testing.T) {
	f := &fake{run: host.Run{HandlerID: "h", RunID: "r", Status: host.StatusFailed, Error: "boom", Started: 1000, Updated: 2000, Completed: 3000}}
	c := serve(t, f, nil)
	rec, err := c.Get(t.Context(), "h")
	if err != nil || rec.Status != host.StatusFailed || rec.Error != "boom" || rec.Completed == 0 {
		t.Errorf("record = %+v, %v", rec, err)
	}
	f.run.Status, f.run.Completed = host.StatusRunning, 0
	if rec, err := c.Get(t.Context(), "h"); err != nil || rec.Status != host.StatusRunning || rec.Completed != 0 {
		t.Errorf("record = %+v, %v", rec, err)
	}
	f.err = host.Errorf(host.CodeInternal, "no disk")
	if _, err := c.Get(t.Context(), "h"); errorOf(t, err).Code != host.CodeInternal || err.Error() != "no disk" {
		t.Errorf("error = %v", err)
	}
}

func TestList(t *testing.T) {
	f := &fake{runs: []host.Run{{HandlerID: "a", Started: 7}, {HandlerID: "b", Started: 5}}, more: true}
	c := serve(t, f, nil)
	q := client.ListQuery{Statuses: []string{"running", "failed"}, Workflows: []string{"w"}, Version: "0123abcd", Session: "s", Since: time.Unix(3, 5), Blocked: true, Limit: 2}
	p, err := c.List(t.Context(), q)
	if err != nil || len(p.Records) != 2 || p.Records[1].HandlerID != "b" || p.Next == "" {
		t.Fatalf("page = %+v, %v", p, err)
	}
	want := host.RunQuery{Tenant: host.DefaultTenant, Statuses: []string{"failed", "running"}, Workflows: []string{"w"}, Version: "0123abcd", Session: "s", Since: 3_000_000_005, Blocked: true, Limit: 2}
	if !reflect.DeepEqual(f.query, want) {
		t.Errorf("query = %+v, want %+v", f.query, want)
	}
	f.more = false
	q.Cursor = p.Next
	if p, err = c.List(t.Context(), q); err != nil || p.Next != "" || f.query.AfterHandler != "b" || f.query.AfterStarted != 5 {
		t.Errorf("second page = %+v, %v, asked %+v", p, err, f.query)
	}
	if _, err := c.List(t.Context(), client.ListQuery{}); err != nil || f.query.Limit != 1000 {
		t.Errorf("query = %+v, %v", f.query, err)
	}
	if _, err := c.List(t.Context(), client.ListQuery{Limit: 5000}); errorOf(t, err).Code != host.CodeInvalidArgument {
		t.Errorf("error = %v", err)
	}
}

func TestPauseAndResume(t *testing.T) {
	c := serve(t, &fake{}, nil)
	if rec, err := c.Pause(t.Context(), "h"); err != nil || !rec.Paused {
		t.Errorf("Pause = %+v, %v", rec, err)
	}
	want := []host.Waiting{{Step: "s", Type: "T", WaiterID: "w", Since: 1e9, Requirements: `{"role":"boss"}`}, {Reason: host.WaitsForTurn, Since: 2e9}}
	if rec, err := c.Resume(t.Context(), "h"); err != nil || rec.Paused || !slices.Equal(rec.WaitingFor, want) {
		t.Errorf("Resume = %+v, %v", rec, err)
	}
}

func TestSendAndCancel(t *testing.T) {
	f := &fake{run: host.Run{Status: host.StatusRunning, Workflow: "w"}}
	c := serve(t, f, nil)
	d, err := c.Send(t.Context(), "h/x", "Answer", json.RawMessage(`{"text":"a"}`), "step")
	if err != nil || d.How != host.DeliveredSteps || !slices.Equal(d.To, []string{"s", "t"}) {
		t.Fatal(err)
	}
	if got, err := abi.ToJSON(f.sent.Body); err != nil || f.sent.Type != "Answer" || string(got) != `{"text":"a"}` || f.step != "step" {
		t.Errorf("sent = %s %s to %q, %v", f.sent.Type, got, f.step, err)
	}
	if _, err := c.Send(t.Context(), "h", "Answer", nil, ""); err != nil || f.step != "" {
		t.Errorf("step = %q, %v", f.step, err)
	}
	for _, purge := range []bool{false, true} {
		if deleted, err := c.Cancel(t.Context(), "h", purge); err != nil || deleted != purge || f.purge != purge {
			t.Errorf("Cancel(%v) = %v, %v", purge, deleted, err)
		}
	}
	f.run.Status = host.StatusCompleted
	if _, err := c.Send(t.Context(), "h", "Answer", nil, ""); errorOf(t, err).Code != host.CodeConflict {
		t.Errorf("error = %v", err)
	}
}

func TestPlugins(t *testing.T) {
	f := &fake{info: host.PluginInfo{
		Workflow: "w", Version: 2, SHA256: "s", RewrittenSHA256: "r", Size: 9,
		Manifest: raw(t, `{"abi":1}`), Imports: []string{"now"}, Created: time.Unix(9, 0).UTC(), Runs: 1,
	}}
	c := serve(t, f, nil)
	info, created, err := c.PutPlugin(t.Context(), "p", []byte("wasm"))
	if err != nil || !created || !reflect.DeepEqual(info, f.info) || string(f.put) != "wasm" {
		t.Errorf("put = %+v, %v, %v", info, created, err)
	}
	if _, created, err = c.PutPlugin(t.Context(), "p", nil); err != nil || created {
		t.Errorf("again = %v, %v", created, err)
	}
	if info, err = c.Plugin(t.Context(), "p"); err != nil || !reflect.DeepEqual(info, f.info) {
		t.Errorf("plugin = %+v, %v", info, err)
	}
	if list, err := c.Plugins(t.Context()); err != nil || len(list) != 1 || list[0].SHA256 != "s" || list[0].Manifest != nil {
		t.Errorf("plugins = %+v, %v", list, err)
	}
	f.info.HeldBy = []host.VersionRuns{{Workflow: "w", Version: "d", Runs: 2}, {Workflow: "w", Runs: 1}}
	if list, err := c.Versions(t.Context(), "p"); err == nil && len(list) > 0 && !reflect.DeepEqual(list[0].HeldBy, f.info.HeldBy) {
		t.Errorf("held by %+v", list[0].HeldBy)
	}
	if list, err := c.Versions(t.Context(), "p"); err != nil || len(list) != 2 {
		t.Errorf("versions = %+v, %v", list, err)
	}
	if err := c.DeletePlugin(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	if err := c.DeletePluginVersion(t.Context(), "p", 3); err != nil || f.deleted != "p 3" {
		t.Errorf("deleted %q, %v", f.deleted, err)
	}
	if wasm, err := c.Module(t.Context(), "p", strings.Repeat("0f", 32)); err != nil || string(wasm) != "module of p"+strings.Repeat("0f", 32) {
		t.Errorf("module = %q, %v", wasm, err)
	}
	refusal := &host.Error{Code: host.CodeInvalidPlugin, Message: "1 problem", Problems: []host.Problem{{Code: "c", Message: "m", Step: "s", Event: "e"}}}
	f.err = refusal
	_, _, err = c.PutPlugin(t.Context(), "p", []byte("x"))
	if e := errorOf(t, err); e.Code != host.CodeInvalidPlugin || !reflect.DeepEqual(e.Problems, refusal.Problems) || e.Message != "1 problem" {
		t.Errorf("error = %+v", e)
	}
	if err := c.DeletePlugin(t.Context(), "p"); errorOf(t, err).Code != host.CodeInvalidPlugin {
		t.Errorf("error = %v", err)
	}
}

func TestWorkflow(t *testing.T) {
	schema := raw(t, `{"title":"Hello","type":"object"}`)
	stop := raw(t, `{"title":"StopEvent"}`)
	f := &fake{flow: host.WorkflowInfo{
		Description: "d", Plugins: []string{"p"}, StartType: "Hello", StartSchema: schema, StopTypes: []string{"StopEvent"}, StopSchema: stop,
		Events: []host.EventInfo{
			{Type: "Hello", Types: []string{"StartEvent"}, Kind: abi.KindStart, Schema: schema},
			{Type: "StopEvent", Kind: abi.KindStop, Base: true, Schema: stop},
		},
		Graph: diagram.Graph{
			Nodes: []diagram.GraphNode{
				{ID: "s", Label: "s", Kind: "step", Description: "x"},
				{ID: "Hello", Label: "Hello", Kind: "event", EventType: "Hello", EventTypes: []string{"Hello", "StartEvent"}, Schema: schema, ProducedBy: []string{}},
			},
			Edges: []diagram.GraphEdge{{Source: "Hello", Target: "s"}},
		},
		Timeout: host.WorkflowTimeout{Span: 90 * time.Second, Set: true},
	}}
	c := serve(t, f, nil)
	got, err := c.Workflow(t.Context(), "w")
	if err != nil || !reflect.DeepEqual(got, f.flow) {
		t.Errorf("workflow =\n%+v, want\n%+v, %v", got, f.flow, err)
	}
	if start, _, err := c.Schema(t.Context(), "w"); err != nil || string(start) != `{"type":"object","title":"Hello"}` {
		t.Errorf("schema = %s, %v", start, err)
	}
	of := strings.Repeat("0f", 32)
	want, _ := plugins{f}.Diagram(t.Context(), "", "w", of)
	if d, err := c.Diagram(t.Context(), "w", of); err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("diagram = %+v, want %+v, %v", d, want, err)
	}
	if _, err := c.Diagram(t.Context(), "w", "0f"); errorOf(t, err).Code != host.CodeInvalidArgument {
		t.Errorf("the diagram of a part of a digest: %v", err)
	}
	summaries, _ := plugins{f}.Summaries(t.Context(), "")
	if list, err := c.WorkflowSummaries(t.Context()); err != nil || !reflect.DeepEqual(list, summaries) {
		t.Errorf("summaries = %+v, %v", list, err)
	}
	if names, err := c.Workflows(t.Context()); err != nil || len(names) != 2 {
		t.Errorf("workflows = %v, %v", names, err)
	}
}

func TestCompose(t *testing.T) {
	timeout := 90 * time.Second
	none := time.Duration(0)
	for _, given := range []host.Composition{
		{Plugins: []string{"a", "b"}, Settings: host.WorkflowSettings{
			Timeout: &timeout, Description: "d", Config: map[string]abi.Raw{"s": raw(t, `{"n":1.5}`), "t": raw(t, `{}`)},
		}},
		{Plugins: []string{"a"}, Settings: host.WorkflowSettings{Timeout: &none}},
	} {
		f := &fake{}
		c := serve(t, f, nil)
		want := host.WorkflowInfo{Name: "w", Plugins: given.Plugins, Settings: given.Settings, Digest: "d", Composed: true, Timeout: host.WorkflowTimeout{Span: host.DefaultRunTimeout}}
		for _, changed := range []bool{true, false} {
			info, got, err := c.Compose(t.Context(), "w", given)
			if err != nil || got != changed || !reflect.DeepEqual(info, want) || !reflect.DeepEqual(f.composed, given) {
				t.Errorf("compose = %+v, %v, %v", info, got, err)
			}
		}
		f.flow = want
		if info, err := c.About(t.Context(), "w"); err != nil || !reflect.DeepEqual(info, want) {
			t.Errorf("about = %+v, %v", info, err)
		}
		if err := c.Decompose(t.Context(), "w"); err != nil {
			t.Error(err)
		}
		f.err = host.Errorf(host.CodeConflict, "held")
		if err := c.Decompose(t.Context(), "w"); errorOf(t, err).Code != host.CodeConflict {
			t.Errorf("error = %v", err)
		}
		if _, _, err := c.Compose(t.Context(), "w", given); errorOf(t, err).Code != host.CodeConflict {
			t.Errorf("error = %v", err)
		}
	}
	f := &fake{}
	if _, changed, err := serve(t, f, nil).Compose(t.Context(), "w", host.Composition{}); err != nil || changed || f.composed.Plugins != nil {
		t.Errorf("nothing: %v, %v, %+v", changed, err, f.composed)
	}
}

func TestHealth(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	if err := errors.Join(c.Health(t.Context()), c.Ready(t.Context())); err != nil {
		t.Error(err)
	}
	f.err = host.Errorf(host.CodeUnavailable, "draining")
	if err := c.Ready(t.Context()); errorOf(t, err).Code != host.CodeUnavailable || err.Error() != "draining" {
		t.Errorf("error = %v", err)
	}
}

func TestForeignErrors(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		header     string
		code       host.Code
		message    string
	}{
		{"a proxy's page", "<h1>Bad Gateway</h1>", 502, "", host.CodeInternal, "The server answered 502 Bad Gateway: <h1>Bad Gateway</h1>"},
		{"nothing", "", 404, "", host.CodeNotFound, "The server answered 404 Not Found"},
		{"no code", `{"detail":"Nope"}`, 409, "", host.CodeConflict, "Nope"},
		{"a structure", `{"detail":[{"a":1}]}`, 422, "", host.CodeSchemaViolation, `[{"a":1}]`},
		{"try later", `{"detail":"busy","code":"limit_exceeded"}`, 429, "7", host.CodeLimitExceeded, "busy"},
		{"not a record", `{}`, 500, "", host.CodeInternal, "The server answered 500 Internal Server Error: {}"},
		{"not JSON", `hello`, 200, "", host.CodeInvalidMessage, ""},
		{"half a record", `{"handler_id":1}`, 200, "", host.CodeInvalidMessage, ""},
		{"a result of no value", `{"handler_id":"h","result":{"type":"X"}}`, 200, "", host.CodeInvalidMessage, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.header != "" {
					w.Header().Set("Retry-After", tt.header)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}), client.Options{})
			_, err := c.Get(t.Context(), "h")
			e := errorOf(t, err)
			if e.Code != tt.code || tt.message != "" && e.Message != tt.message {
				t.Errorf("error = %s %q", e.Code, e.Message)
			}
			if want := tt.header == "7"; want != (e.RetryAfter == 7*time.Second) {
				t.Errorf("RetryAfter = %v", e.RetryAfter)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := errorOf(t, c.Health(t.Context()))
	if e.Code != host.CodeUnavailable || !strings.Contains(e.Message, addr) || !strings.Contains(e.Message, "weft serve") {
		t.Errorf("error = %s %q", e.Code, e.Message)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if _, err := c.Events(t.Context(), "h", position.FromNow, false); errorOf(t, err).Code != host.CodeUnavailable {
		t.Errorf("error = %v", err)
	}
}

func TestJournal(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	page, err := c.Journal(t.Context(), "h", client.JournalOptions{Limit: 7})
	if err != nil || page.NextCursor == "" || len(page.Entries) != 1 {
		t.Fatalf("Journal = %+v, %v", page, err)
	}
	e := page.Entries[0]
	if e.Seq != 3 || e.At != 1e9+1 || e.Kind != "edit" || !e.Forkable || e.Step != "s" || e.Attempt != 2 || e.Call != 7 || len(e.Edits) != 1 || e.Edits[0].New.String() != "1" {
		t.Errorf("entry = %+v", e)
	}
	page, err = c.Journal(t.Context(), "h", client.JournalOptions{Cursor: string(page.NextCursor)})
	if err != nil || page.NextCursor != "" || page.Entries[0].Seq != 4 || page.Entries[0].Duration != 5e8 || page.Entries[0].Status != host.StatusCompleted {
		t.Errorf("second page = %+v, %v", page, err)
	}
	if _, err := c.Journal(t.Context(), "h", client.JournalOptions{After: 2, Before: 9, Newest: true, Kinds: []string{"edit", "post"}, Steps: []string{"s"}, Cut: 64}); err != nil {
		t.Error(err)
	}
	want := host.TimelineQuery{Tenant: host.DefaultTenant, ID: "h", After: 2, Before: 9, Limit: 1000, Newest: true, Kinds: []string{"edit", "post"}, Steps: []string{"s"}, Cut: 64}
	if !reflect.DeepEqual(f.journal, want) {
		t.Errorf("asks for %+v", f.journal)
	}
	if _, err := c.Journal(t.Context(), "h", client.JournalOptions{Cursor: "garbage"}); errorOf(t, err).Code != host.CodeInvalidArgument {
		t.Errorf("error = %v", err)
	}
}

func TestFork(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	rec, anew, err := c.Fork(t.Context(), "h", client.ForkOptions{At: 7, Patch: json.RawMessage(`{"n":1}`), AnswerType: "A", Answer: json.RawMessage(`{"x":2}`), Step: "s", Paused: true, DryRun: true})
	if err != nil || rec.HandlerID != "f" || rec.Steps != 7 || len(anew) != 1 || anew[0] != (host.Renewed{Kind: host.RenewedChild, Step: "s", Workflow: "w", HandlerID: "new", Was: "old"}) {
		t.Errorf("Fork = %+v, %+v, %v", rec, anew, err)
	}
	want := host.ForkRequest{Tenant: host.DefaultTenant, ID: "h", At: 7, Patch: abi.Raw{0xa1, 0x61, 'n', 1}, Step: "s", Paused: true, DryRun: true,
		Answer: &abi.Event{Type: "A", Body: abi.Raw{0xa1, 0x61, 'x', 2}}}
	if !reflect.DeepEqual(f.forked, want) {
		t.Errorf("asks for %+v", f.forked)
	}
	if _, _, err := c.Fork(t.Context(), "h", client.ForkOptions{At: 1, Edits: json.RawMessage(`[["set","n",1]]`)}); err != nil || len(f.forked.Edits) != 1 || f.forked.Answer != nil {
		t.Errorf("edits: %+v, %v", f.forked, err)
	}
	near := host.Nearest{Before: 3, After: 9}
	f.err = &host.Error{Code: host.CodeConflict, Message: "no", Nearest: &near}
	if _, _, err := c.Fork(t.Context(), "h", client.ForkOptions{At: 5}); errorOf(t, err).Nearest == nil || *errorOf(t, err).Nearest != near {
		t.Errorf("error = %v", err)
	}
	f.err = nil
	if _, _, err := c.Fork(t.Context(), "h", client.ForkOptions{}); errorOf(t, err).Code != host.CodeInvalidArgument {
		t.Errorf("error = %v", err)
	}
}

func TestStateAt(t *testing.T) {
	c := serve(t, &fake{}, nil)
	v, err := c.StateAt(t.Context(), "h/1", 7, "a.b")
	if err != nil || string(v.JSON) != `"h/1 7 a.b"` || v.Tag != `"t"` {
		t.Errorf("StateAt = %s %s, %v", v.JSON, v.Tag, err)
	}
	if _, err := c.StateAt(t.Context(), "h", 0, ""); errorOf(t, err).Code != host.CodeInvalidArgument {
		t.Errorf("error = %v", err)
	}
}

func TestSnapshot(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	text, err := c.Snapshot(t.Context(), "h")
	if err != nil || !json.Valid(text) {
		t.Fatalf("Snapshot = %s, %v", text, err)
	}
	if _, err := c.Start(t.Context(), client.StartRequest{Workflow: "w", Snapshot: text}); err != nil {
		t.Fatal(err)
	}
	if got := f.start.Snapshot; got == nil || got.Workflow != "w" || len(got.Session) != 1 {
		t.Errorf("it starts from %+v", got)
	}
}

// The stages of an upload come in order: the client's own stages, then those in the
// server's interim answers. Unknown stages are ignored, and nothing follows the end.
func TestUploadsTellTheirStages(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Weft-Progress") != "true" {
			t.Errorf("the client does not ask: %v", r.Header)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		for _, stage := range []string{"waiting; ahead=12", "waiting; ahead=-1", "waiting; ahead=x", "painting", "compiling"} {
			w.Header().Set("X-Weft-Progress", stage)
			w.WriteHeader(http.StatusProcessing)
		}
		w.Header().Del("X-Weft-Progress")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"name": "p", "version": 1}`)
	}))
	defer s.Close()
	c, err := client.New(s.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var told []turns.Stage
	_, created, _, err := c.PutPluginWith(t.Context(), "p", []byte("wasm"), client.PutPluginOptions{Progress: func(s turns.Stage) { told = append(told, s) }})
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	if len(told) > 1 && told[1].Name == client.StageSent { // the report may come too late to be passed on
		told = slices.Delete(told, 1, 2)
	}
	want := []turns.Stage{{Name: client.StageSending}, {Name: turns.StageWaiting, Ahead: 12}, {Name: turns.StageCompiling}}
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
