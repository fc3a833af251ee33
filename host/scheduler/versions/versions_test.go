package versions

import (
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/work"
)

// A module serves all of its steps. In a composed workflow each step has its own module,
// and a run takes the strictest limits of the plugins and of the workflow's own name.
func TestServing(t *testing.T) {
	table, err := limit.Parse([]byte(`{"plugins": {"p": {"host_calls": 70}, "q": {"log_lines": 5}, "w": {"suspensions": 3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	one := Module{Digest: "d", ImageHash: "i", Plugin: "p"}
	if got, err := one.Serving("any"); err != nil || got.Digest != "d" || got.ImageHash != "i" || got.Config != nil {
		t.Errorf("serving = %+v, %v", got, err)
	}
	if l := one.Limits(table, "t"); l.HostCalls != 70 || l.LogLines != limit.Default().LogLines {
		t.Errorf("limits = %+v", l)
	}
	graph := of(t, plain)
	several := Module{Digest: "c", Graph: graph, Plugins: []string{"p", "q"}, Step: func(name string) (Step, bool) {
		return Step{Digest: "of " + name, ImageHash: "image", Config: abi.EmptyMap}, name == "a"
	}}
	if got, err := several.Serving("a"); err != nil || got.Digest != "of a" || got.ImageHash != "image" || got.Config == nil {
		t.Errorf("serving = %+v, %v", got, err)
	}
	if _, err := several.Serving("b"); host.CodeOf(err) != host.CodeInternal {
		t.Errorf("a step that nobody serves: %v", err)
	}
	if l := several.Limits(table, "t"); l.HostCalls != 70 || l.LogLines != 5 || l.Suspensions != 3 {
		t.Errorf("limits = %+v", l)
	}
}

// of compiles a manifest.
func of(t *testing.T, manifest string) *engine.Graph {
	t.Helper()
	raw, err := abi.FromJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	graph, problems := engine.Compile(&m)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return graph
}

const (
	plain = `{"abi": 1, "workflow": "w", "events": {}, "steps": [{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`
	timed = `{"abi": 1, "workflow": "w", "timeout": 5000000000, "events": {}, "steps": [{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`
)

// A manifest's timeout replaces the default timeout and counts all time, not only work.
func TestStartTakesTheTimeout(t *testing.T) {
	for _, c := range []struct {
		manifest string
		timeout  time.Duration
		want     int64
		work     bool
	}{
		{plain, 45 * time.Second, int64(45 * time.Second), true},
		{plain, -1, 0, true},
		{timed, 45 * time.Second, int64(5 * time.Second), false},
	} {
		m := Module{Digest: "d", Graph: of(t, c.manifest)}
		got := m.Start(nil, c.timeout, "t", abi.Event{Type: "StartEvent"})
		if got.Version != "d" || got.Event.Type != "StartEvent" || got.Timeout != c.want || got.Work != c.work {
			t.Errorf("default %v: start = %+v", c.timeout, got)
		}
	}
}

// A start whose client waits is bounded by the run's timeout and by the greatest wait,
// whichever is shorter; other starts by the manifest's timeout alone.
func TestPatience(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		manifest      string
		wait          bool
		timeout, most time.Duration
		want          time.Duration
		bounded       bool
	}{
		{plain, false, 45 * second, 15 * second, 0, false},
		{timed, false, 45 * second, 15 * second, 5 * second, true},
		{plain, true, 45 * second, 15 * second, 15 * second, true},
		{plain, true, 10 * second, 15 * second, 10 * second, true},
		{timed, true, 45 * second, 15 * second, 5 * second, true},
		{plain, true, 45 * second, -1, 45 * second, true},
		{plain, true, -1, -1, -1, false},
		{plain, true, -1, 15 * second, 15 * second, true},
	} {
		m := Module{Graph: of(t, c.manifest)}
		d, bounded := m.Patience(c.wait, c.timeout, c.most)
		if bounded != c.bounded || bounded && d != c.want {
			t.Errorf("%+v: %v, %v", c, d, bounded)
		}
	}
}

// source prepares events by appending to a list of the bodies that it has seen.
type source struct {
	Source
	seen []string
}

func (s *source) PrepareEvent(_ *work.Meter, digest, typ string, body abi.Raw) (abi.Raw, error) {
	s.seen = append(s.seen, digest+" "+typ)
	return body, nil
}

// An event without a type or a body is the workflow's start event, which is empty. An event
// of another type is refused before it is prepared.
func TestStartEvent(t *testing.T) {
	m, s := Module{Digest: "d", Graph: of(t, plain)}, &source{}
	ev, err := m.StartEvent(nil, s, abi.Event{})
	if err != nil || ev.Type != m.Graph.StartType() || string(ev.Body) != string(abi.EmptyMap) {
		t.Errorf("start event = %+v, %v", ev, err)
	}
	if _, err := m.StartEvent(nil, s, abi.Event{Type: "Other"}); host.CodeOf(err) != host.CodeInvalidArgument {
		t.Errorf("an event of another type: %v", err)
	}
	if len(s.seen) != 1 || s.seen[0] != "d "+m.Graph.StartType() {
		t.Errorf("prepared: %q", s.seen)
	}
}

// An attempt keeps the run's and the session's ids that it began with: its replay must see
// the same input.
func TestInvocationKeepsIDs(t *testing.T) {
	m := Module{Digest: "d", ImageHash: "i", Graph: of(t, plain)}
	key := host.SessionKey{Tenant: "t", Session: "new"}
	view := &engine.Invocation{ID: 7, Attempt: 2, Workflow: "w", RunID: "fork", Step: "a", Trigger: []abi.Event{{Type: "StartEvent", Body: abi.EmptyMap}}}
	forked := engine.AttemptOpen{RunID: "before", SessionID: "old", Clock: 3}
	inv, err := m.Invocation(key, view, forked)
	if err != nil || inv.Digest != "d" || inv.ImageHash != "i" || inv.Tenant != "t" || inv.Clock != 3 {
		t.Fatalf("invocation = %+v, %v", inv, err)
	}
	was := *view
	was.RunID = "before"
	same, err := m.Invocation(host.SessionKey{Tenant: "t", Session: "old"}, &was, engine.AttemptOpen{Clock: 3})
	if err != nil || string(same.Input) != string(inv.Input) {
		t.Errorf("the input differs from that of the attempt before the fork: %v", err)
	}
}
