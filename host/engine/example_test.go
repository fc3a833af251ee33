package engine_test

import (
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
)

// manifest reads a manifest, for examples.
func manifest(text string) *abi.Manifest {
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		panic(err)
	}
	return &m
}

const hops = `{"abi": 1, "workflow": "hops", "events": {"Hop": {}}, "steps": [
	{"name": "start", "accepts": ["StartEvent"], "emits": ["Hop"]},
	{"name": "hop", "accepts": ["Hop"], "emits": ["StopEvent"]}]}`

// A tick is something that happens to a session. Reducing the tick returns an entry,
// which must be journaled, and commands. The commands are carried out when the entry is
// durable or, if nobody outside can see their effect, at once.
func ExampleSession_Reduce() {
	graph, problems := engine.Compile(manifest(hops))
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	s := engine.New(host.SessionKey{Tenant: "acme", Session: "s"}, func(string) (*engine.Graph, error) { return graph, nil })
	result, err := s.Reduce(1, engine.StartRun{
		RunID: "r", HandlerID: "h", Version: "hops", Limits: limit.Default(),
		Event: abi.Event{Type: abi.TypeStart, Body: abi.EmptyMap},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("entry", result.Entry.Seq, "starts a run")
	for _, c := range result.Commands {
		if start, ok := c.(engine.StartAttempt); ok {
			in, _ := s.Invocation(start.Invocation)
			fmt.Println("invoke", in.Step)
		}
	}
	// Folding the entry restores the session without the request.
	again := engine.New(s.Key(), func(string) (*engine.Graph, error) { return graph, nil })
	if _, err := again.Fold(result.Entry); err != nil {
		fmt.Println(err)
	}
	run, _ := again.Record("r")
	fmt.Println("folded:", run.Status, "at", again.Seq())
	// Output:
	// entry 1 starts a run
	// invoke start
	// folded: running at 1
}

// A manifest that cannot work is refused with all its problems.
func ExampleCompile() {
	_, problems := engine.Compile(manifest(`{"abi": 1, "workflow": "hops", "events": {"Hop": {}, "Lost": {}}, "steps": [
		{"name": "start", "accepts": ["StartEvent"], "emits": ["Hop", "Lost"]}]}`))
	for _, p := range problems {
		fmt.Println(p.Code)
	}
	// Output:
	// no_stop
	// never_accepted
	// never_accepted
	// dead_end
}
