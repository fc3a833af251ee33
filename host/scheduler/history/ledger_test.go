package history

import (
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
)

// TestLedger: records are kept as long as their attempts are under way, also of
// those that wait for a worker when their run ends; a part that was not written
// makes the position no resting point until the attempt is over.
func TestLedger(t *testing.T) {
	raw, err := abi.FromJSON([]byte(`{"abi": 1, "workflow": "w", "timeout": 0, "events": {"Go": {}, "Answer": {"kind": "human_response"}}, "steps": [
		{"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Go"]]]},
		{"name": "ask", "accepts": ["Go"], "emits": ["StopEvent"], "waits": ["Answer"], "workers": 1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	g, problems := engine.Compile(&m)
	if problems != nil {
		t.Fatal(problems)
	}
	eng := engine.New(host.SessionKey{Tenant: "t", Session: "s"}, func(string) (*engine.Graph, error) { return g, nil })
	l := NewLedger()
	play := func(tick engine.Tick, calls int) {
		t.Helper()
		res, err := eng.Reduce(1, tick)
		if err != nil {
			t.Fatal(err)
		}
		if _, call := tick.(engine.Call); call {
			res.Entry.Open = &engine.AttemptOpen{}
			res.Entry.Calls = make([]engine.CallRecord, calls)
		}
		l.Follow(eng, res.Entry, res.Commands)
	}
	start := engine.StartRun{RunID: "r", HandlerID: "h", Version: "v", Limits: limit.Default()}
	play(start, 0)
	two := abi.StepOutput{List: true, Events: []abi.Event{{Type: "Go"}, {Type: "Go"}}}
	play(engine.Finish{Invocation: 1, Attempt: 1, Output: two}, 0)
	play(engine.Call{Invocation: 2, Attempt: 1, N: 2, Request: engine.WaitForEvent{ID: "w", Type: "Answer"}}, 1)
	if len(l.Records) != 1 || !l.Restful() {
		t.Errorf("a wait that was written with the call before it: %+v", l)
	}
	play(engine.Call{Invocation: 3, Attempt: 1, N: 2, Request: engine.WriteStream{Event: abi.Event{Type: "Go"}}}, 1)
	if len(l.Records) != 2 || l.Restful() {
		t.Errorf("a call that was written without itself: %+v", l)
	}
	play(engine.PostEvent{RunID: "r", Event: abi.Event{Type: "Answer"}}, 0) // the first waits for the worker now
	play(engine.Cancel{RunID: "r"}, 0)
	if len(l.Records) != 0 || !l.Restful() {
		t.Errorf("after the run: %+v", l)
	}
}
