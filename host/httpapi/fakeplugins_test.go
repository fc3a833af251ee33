package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/diagram"
)

// fakePlugins is the host.Plugins of a fakeHost.
type fakePlugins struct{ f *fakeHost }

func (p fakePlugins) Put(ctx context.Context, _, name string, wasm []byte) (host.PluginInfo, bool, error) {
	if p.f.onPut != nil {
		p.f.onPut(ctx)
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.f.pluginErr != nil {
		return host.PluginInfo{}, false, p.f.pluginErr
	}
	sum := sha256.Sum256(wasm)
	digest := hex.EncodeToString(sum[:])
	versions := p.f.plugins[name]
	if n := len(versions); n > 0 && versions[n-1].SHA256 == digest {
		return versions[n-1], false, nil
	}
	info := host.PluginInfo{
		Name: name, Workflow: name, Version: len(versions) + 1, SHA256: digest, RewrittenSHA256: "re" + digest, Size: len(wasm),
		Manifest: p.f.raw(map[string]any{"abi": 1, "workflow": name}), Imports: []string{"state_get"},
		Created: time.Unix(0, p.f.tick()),
	}
	var own map[string]any // a module of JSON is its manifest
	if json.Unmarshal(wasm, &own) == nil {
		info.Manifest = p.f.raw(own)
	}
	if behalf.IsDryRun(ctx) {
		return info, true, nil
	}
	p.f.plugins[name] = append(versions, info)
	return info, true, nil
}

func (p fakePlugins) Plugin(ctx context.Context, tenant, name string) (host.PluginInfo, error) {
	versions, err := p.Versions(ctx, tenant, name)
	if err != nil {
		return host.PluginInfo{}, err
	}
	return versions[len(versions)-1], nil
}

func (p fakePlugins) List(context.Context, string) ([]host.PluginInfo, error) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	var list []host.PluginInfo
	for _, name := range slices.Sorted(maps.Keys(p.f.plugins)) {
		versions := p.f.plugins[name]
		list = append(list, versions[len(versions)-1])
	}
	return list, nil
}

func (p fakePlugins) Versions(_ context.Context, _, name string) ([]host.PluginInfo, error) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if len(p.f.plugins[name]) == 0 {
		return nil, host.Errorf(host.CodeNotFound, "no plugin %q", name)
	}
	return slices.Clone(p.f.plugins[name]), nil
}

func (p fakePlugins) Module(ctx context.Context, tenant, name, digest string) ([]byte, int, error) {
	versions, err := p.Versions(ctx, tenant, name)
	if err != nil {
		return nil, 0, err
	}
	for _, v := range slices.Backward(versions) {
		if digest == "" || v.SHA256 == digest {
			return []byte("module " + v.SHA256), v.Version, nil
		}
	}
	return nil, 0, host.Errorf(host.CodeNotFound, "no version %s", digest)
}

func (p fakePlugins) Delete(_ context.Context, _, name string) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if len(p.f.plugins[name]) == 0 {
		return host.Errorf(host.CodeNotFound, "no plugin %q", name)
	}
	delete(p.f.plugins, name)
	return nil
}

func (p fakePlugins) DeleteVersion(_ context.Context, _, name string, version int) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	versions := p.f.plugins[name]
	i := slices.IndexFunc(versions, func(v host.PluginInfo) bool { return v.Version == version })
	switch {
	case i < 0:
		return host.Errorf(host.CodeNotFound, "Plugin %s has no version %d", name, version)
	case i == len(versions)-1:
		return host.Errorf(host.CodeConflict, "version %d is the newest", version)
	}
	p.f.plugins[name] = slices.Delete(versions, i, i+1)
	return nil
}

func (p fakePlugins) Workflows(context.Context, string) ([]string, error) {
	return slices.Sorted(maps.Keys(p.f.workflows)), nil
}

func (p fakePlugins) Summaries(context.Context, string) ([]host.WorkflowSummary, error) {
	var list []host.WorkflowSummary
	for _, name := range slices.Sorted(maps.Keys(p.f.workflows)) {
		list = append(list, host.WorkflowSummary{Name: name, Plugins: []string{name}, Version: 3, Runs: 2})
	}
	return list, nil
}

func (p fakePlugins) Workflow(_ context.Context, _, name string) (host.WorkflowInfo, error) {
	if w := p.f.workflows[name]; w != nil {
		return w.info, nil
	}
	return host.WorkflowInfo{}, host.Errorf(host.CodeNotFound, "no workflow %q", name)
}

// Diagram has one step, of the version that is asked for.
func (p fakePlugins) Diagram(_ context.Context, _, name, digest string) (diagram.Diagram, error) {
	if p.f.workflows[name] == nil {
		return diagram.Diagram{}, host.Errorf(host.CodeNotFound, "no workflow %q", name)
	}
	return diagram.Diagram{
		Workflow: name, Digest: digest,
		Nodes: []diagram.Node{{ID: "one", Kind: diagram.NodeStep, Label: "one", Step: "one", Plugin: name, Declared: p.f.raw(map[string]any{"workers": 2})}},
		Edges: []diagram.Edge{{Source: "one", Target: "one", Kind: diagram.EdgeCatches}},
	}, nil
}

// Compose records its arguments; the workflow is that of the first plugin.
func (p fakePlugins) Compose(_ context.Context, _, name string, c host.Composition) (host.WorkflowInfo, bool, error) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.f.pluginErr != nil {
		return host.WorkflowInfo{}, false, p.f.pluginErr
	}
	base := name
	if len(c.Plugins) > 0 {
		base = c.Plugins[0]
	}
	w := *p.f.workflows[base]
	old := p.f.workflows[name]
	w.info.Name, w.info.Plugins, w.info.Settings, w.info.Composed, w.info.Digest = name, c.Plugins, c.Settings, true, "d"
	p.f.workflows[name] = &w
	return w.info, old == nil || !reflect.DeepEqual(old.info, w.info), nil
}

func (p fakePlugins) Decompose(_ context.Context, _, name string) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if w := p.f.workflows[name]; w == nil || !w.info.Composed {
		return host.Errorf(host.CodeNotFound, "nothing composed %q", name)
	}
	delete(p.f.workflows, name)
	return nil
}

// Schemas of the recorded workflows' events.
var fakeSchemas = map[string]string{
	"Hello":    `{"properties":{"name":{"title":"Name","type":"string"},"times":{"default":1,"description":"how often","minimum":0,"title":"Times","type":"integer"}},"required":["name"],"title":"Hello","type":"object"}`,
	"Greeting": `{"properties":{"text":{"title":"Text","type":"string"},"count":{"default":0,"title":"Count","type":"integer"}},"required":["text"],"title":"Greeting","type":"object"}`,
	"Mid":      `{"properties":{"text":{"title":"Text","type":"string"}},"required":["text"],"type":"object"}`,
	"Progress": `{"properties":{"pct":{"title":"Pct","type":"integer"}},"required":["pct"],"type":"object"}`,
	"Ask":      `{"properties":{"prompt":{"title":"Prompt","type":"string"}},"required":["prompt"],"type":"object"}`,
	"Answer":   `{"properties":{"text":{"title":"Text","type":"string"}},"required":["text"],"type":"object"}`,
}

var fakeAncestors = map[string][]string{
	"Hello": {"StartEvent"}, "Greeting": {"StopEvent"}, "Ask": {"InputRequiredEvent"}, "Answer": {"HumanResponseEvent"},
}

// fakeInfo describes a workflow with these event types.
func fakeInfo(tb testing.TB, name, start, stop string, types ...string) host.WorkflowInfo {
	info := host.WorkflowInfo{Name: name, Plugins: []string{name}, StartType: start, StopTypes: []string{stop}}
	slices.Sort(types)
	for _, typ := range types {
		_, base := abi.BaseKinds[typ]
		text, ok := fakeSchemas[typ]
		if !ok {
			text = `{"properties":{},"title":"` + typ + `","type":"object"}`
		}
		schema, err := abi.FromJSON([]byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		info.Events = append(info.Events, host.EventInfo{Type: typ, Types: fakeAncestors[typ], Base: base, Schema: schema})
		switch typ {
		case start:
			info.StartSchema = schema
		case stop:
			info.StopSchema = schema
		}
	}
	return info
}

// draw adds nodes and edges: "a>b" leads from a to b.
func draw(info *host.WorkflowInfo, steps, edges []string, produced map[string][]string) {
	for _, s := range steps {
		info.Graph.Nodes = append(info.Graph.Nodes, diagram.GraphNode{ID: s, Label: s, Kind: "step"})
	}
	for _, e := range info.Events {
		by, drawn := produced[e.Type]
		if !drawn {
			continue
		}
		info.Graph.Nodes = append(info.Graph.Nodes, diagram.GraphNode{
			ID: e.Type, Label: e.Type, Kind: "event", EventType: e.Type, EventTypes: e.Types, Schema: e.Schema, ProducedBy: by,
		})
	}
	for i := 0; i < len(edges); i += 2 {
		info.Graph.Edges = append(info.Graph.Edges, diagram.GraphEdge{Source: edges[i], Target: edges[i+1]})
	}
}

// fakeWorkflows are the workflows of the recorded exchanges.
func fakeWorkflows(tb testing.TB) map[string]*fakeWorkflow {
	hello := &fakeWorkflow{info: fakeInfo(tb, "hello", "Hello", "Greeting", "Hello", "Mid", "Greeting"), start: startHello, steps: []string{"first", "second"}}
	draw(&hello.info, []string{"first", "second"},
		[]string{"first", "Mid", "Hello", "first", "second", "Greeting", "Mid", "second"},
		map[string][]string{"Hello": {}, "Mid": {"first"}, "Greeting": {"second"}})
	human := &fakeWorkflow{
		info:  fakeInfo(tb, "human", "StartEvent", "StopEvent", "StartEvent", "StopEvent", "Ask", "Answer", "Progress"),
		start: startHuman, send: sendHuman, steps: []string{"ask", "answered"}, takes: map[string]bool{"Answer": true},
	}
	draw(&human.info, []string{"ask", "answered"},
		[]string{"answered", "StopEvent", "Answer", "answered", "external_step", "Answer", "ask", "Ask", "Ask", "external_step", "StartEvent", "ask"},
		map[string][]string{"StartEvent": {}, "StopEvent": {"answered"}, "Ask": {"ask"}, "Answer": {}})
	human.info.Graph.Nodes = append(human.info.Graph.Nodes, diagram.GraphNode{ID: "external_step", Label: "external_step", Kind: "external"})
	plain := func(name string, start func(*fakeHost, *fakeHandler, *host.Run, map[string]any)) *fakeWorkflow {
		return &fakeWorkflow{info: fakeInfo(tb, name, "StartEvent", "StopEvent", "StartEvent", "StopEvent", "Progress"), start: start, steps: []string{"wait"}}
	}
	return map[string]*fakeWorkflow{
		"hello": hello, "human": human,
		"plain":   plain("plain", startPlain),
		"fail":    plain("fail", startFail),
		"slow":    plain("slow", startSlow),
		"timeout": plain("timeout", startTimeout),
		"waiter": {
			info:  fakeInfo(tb, "waiter", "StartEvent", "StopEvent", "StartEvent", "StopEvent", "Answer", "Ask"),
			start: startWaiter, send: sendWaiter, steps: []string{"ask"}, takes: map[string]bool{"Answer": true},
		},
	}
}

func startHello(f *fakeHost, h *fakeHandler, r *host.Run, body map[string]any) {
	text := body["name"].(string)
	times, ok := body["times"].(int64)
	if !ok {
		times = 1
	}
	for range times {
		text = "hello " + text
	}
	f.step(h, r, "first", "running", "Hello", nil)
	f.progress(h, r, 50)
	f.step(h, r, "first", "not_running", "Hello", "Mid")
	f.step(h, r, "second", "running", "Mid", nil)
	f.progress(h, r, 100)
	f.step(h, r, "second", "not_running", "Mid", "Greeting")
	h.state++
	f.end(h, r, host.StatusCompleted, host.StreamEvent{Type: "Greeting", Types: []string{"StopEvent"}}, map[string]any{"text": text, "count": h.state})
}

func startPlain(f *fakeHost, h *fakeHandler, r *host.Run, body map[string]any) {
	f.stop(h, r, map[string]any{"echo": body})
}

func startFail(f *fakeHost, h *fakeHandler, r *host.Run, _ map[string]any) {
	f.step(h, r, "boom", "running", "StartEvent", nil)
	f.step(h, r, "boom", "not_running", "StartEvent", nil)
	r.Error, r.ErrorCode = "boom: it failed", "boom"
	r.ErrorStep, r.ErrorAttempt = "boom", 1
	f.end(h, r, host.StatusFailed, host.StreamEvent{Type: "WorkflowFailedEvent", Base: true, Types: []string{"StopEvent"}}, map[string]any{
		"step_name": "boom", "attempts": 1, "elapsed_seconds": 0.07,
		"exception": map[string]any{"exception_type": "boom", "exception_message": "boom: it failed"},
	})
}

func startSlow(f *fakeHost, h *fakeHandler, r *host.Run, _ map[string]any) {
	f.step(h, r, "wait", "running", "StartEvent", nil)
	f.progress(h, r, 1)
}

func startTimeout(f *fakeHost, h *fakeHandler, r *host.Run, _ map[string]any) {
	f.step(h, r, "wait", "running", "StartEvent", nil)
	r.Error, r.ErrorCode = "Workflow timed out after 1.0s", host.RunTimeout
	f.end(h, r, host.StatusFailed, host.StreamEvent{Type: "WorkflowTimedOutEvent", Base: true, Types: []string{"StopEvent"}}, map[string]any{
		"timeout": 1.0, "active_steps": []string{"wait"},
	})
}

func startHuman(f *fakeHost, h *fakeHandler, r *host.Run, _ map[string]any) {
	f.step(h, r, "ask", "running", "StartEvent", nil)
	f.step(h, r, "ask", "not_running", "StartEvent", "Ask")
	f.emit(h, r, host.StreamEvent{Type: "Ask", Types: []string{"InputRequiredEvent"}}, map[string]any{"prompt": "your name?"})
	f.idle(h, r)
}

func sendHuman(f *fakeHost, h *fakeHandler, r *host.Run, _ string, body map[string]any) {
	f.step(h, r, "answered", "running", "Answer", nil)
	f.step(h, r, "answered", "not_running", "Answer", "StopEvent")
	f.stop(h, r, "hi "+body["text"].(string))
}

func startWaiter(f *fakeHost, h *fakeHandler, r *host.Run, _ map[string]any) {
	f.step(h, r, "ask", "running", "StartEvent", nil)
	f.step(h, r, "ask", "not_running", "StartEvent", nil)
	f.emit(h, r, host.StreamEvent{Type: "Ask", Types: []string{"InputRequiredEvent"}}, map[string]any{"prompt": "your name?"})
	f.idle(h, r)
}

func sendWaiter(f *fakeHost, h *fakeHandler, r *host.Run, _ string, body map[string]any) {
	f.step(h, r, "ask", "running", "StartEvent", nil)
	f.step(h, r, "ask", "not_running", "StartEvent", "StopEvent")
	f.stop(h, r, "hi "+body["text"].(string))
}
