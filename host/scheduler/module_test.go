package scheduler

import (
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
)

// A module serves all of its steps. In a composed workflow each step has its own module,
// and a run takes the strictest limits of the plugins and of the workflow's own name.
func TestServing(t *testing.T) {
	table, err := limit.Parse([]byte(`{"plugins": {"p": {"host_calls": 70}, "q": {"log_lines": 5}, "w": {"suspensions": 3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	one := Module{Digest: "d", ImageHash: "i", Plugin: "p"}
	if got, err := one.serving("any"); err != nil || got.Digest != "d" || got.ImageHash != "i" || got.Config != nil {
		t.Errorf("serving = %+v, %v", got, err)
	}
	if l := one.limits(table, "t"); l.HostCalls != 70 || l.LogLines != limit.Default().LogLines {
		t.Errorf("limits = %+v", l)
	}
	raw, err := abi.FromJSON([]byte(`{"abi": 1, "workflow": "w", "events": {}, "steps": [{"name": "a", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`))
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
	several := Module{Digest: "c", Graph: graph, Plugins: []string{"p", "q"}, Step: func(name string) (StepModule, bool) {
		return StepModule{Digest: "of " + name, ImageHash: "image", Config: abi.EmptyMap}, name == "a"
	}}
	if got, err := several.serving("a"); err != nil || got.Digest != "of a" || got.ImageHash != "image" || got.Config == nil {
		t.Errorf("serving = %+v, %v", got, err)
	}
	if _, err := several.serving("b"); host.CodeOf(err) != host.CodeInternal {
		t.Errorf("a step that nobody serves: %v", err)
	}
	if l := several.limits(table, "t"); l.HostCalls != 70 || l.LogLines != 5 || l.Suspensions != 3 {
		t.Errorf("limits = %+v", l)
	}
}
