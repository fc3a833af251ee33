package scheduler_test

import (
	"context"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler"
)

var _ host.Admission = (*scheduler.Scheduler)(nil)

// familyManifest is a workflow whose step may run children, sleep and wait for events.
const familyManifest = `{"abi": 1, "workflow": "solo", "timeout": 0, "events": {"Answer": {"kind": "human_response"}},
  "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]}]}`

// While starts are refused, everything goes on that was accepted before: children begin
// in sessions of their own, timers fire, and events arrive. A repeat of an accepted start
// is answered, and a start that is refused leaves nothing.
func TestOnlyStartsAreRefused(t *testing.T) {
	full, children := false, 0
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"solo": familyManifest})}
	b.memory = func() (live, limit int64) {
		if full {
			return 90, 100
		}
		return 10, 100
	}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.SessionID == "parent" { // it sleeps, begins a child elsewhere, and waits for an event
			if _, err := g.do(abi.ImportSleep, []any{int64(1e9)}); err != nil {
				return abi.StepOutput{}, err
			}
			req := map[string]any{"workflow": "solo", "event": []any{"StartEvent", map[string]any{}}, "session": map[string]any{"id": "child"}}
			if _, err := g.do(abi.ImportRunWorkflow, req); err != nil {
				return abi.StepOutput{}, err
			}
			children++
			if _, err := g.do(abi.ImportWait, map[string]any{"type": "Answer"}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return stopEvent(), nil
	}
	live(t, b, func(t *testing.T) {
		start := host.StartRequest{Tenant: "t", Workflow: "solo", HandlerID: "parent", SessionID: "parent", Once: host.Once{Route: "r", Key: "k", Hash: "h"}}
		if _, err := b.sched.Start(t.Context(), start); err != nil {
			t.Fatal(err)
		}
		full = true
		pass(2e8) // the memory is looked at again
		again, err := b.sched.Start(t.Context(), start)
		if err != nil || again.HandlerID != "parent" {
			t.Errorf("a repeat: %+v, %v", again, err)
		}
		release, err := b.sched.AskStart(t.Context(), host.StartAsk{Tenant: "t", Workflow: "solo", Once: host.Once{Route: "r", Key: "k"}})
		if err != nil {
			t.Errorf("a repeat is asked for: %v", err)
		} else {
			release()
		}
		_, err = b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", HandlerID: "late", Once: host.Once{Route: "r", Key: "other"}})
		if host.CodeOf(err) != host.CodeOverloaded {
			t.Errorf("a start: %v", err)
		}
		if _, err := b.sched.History().Get(t.Context(), "t", "late"); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("a refused start: %v", err)
		}
		pass(2e9) // the parent wakes, and its child runs
		if err := b.sched.Send(t.Context(), "t", "parent", abi.Event{Type: "Answer"}, ""); err != nil {
			t.Errorf("an event: %v", err)
		}
		pass(1e9)
		if run, err := b.sched.History().Get(t.Context(), "t", "parent"); err != nil || run.Status != host.StatusCompleted || children == 0 {
			t.Errorf("%d children; %+v, %v", children, run, err)
		}
	})
	if c := b.sched.Counters(); c.RefusedHeap != 1 {
		t.Errorf("%+v", c)
	}
}
