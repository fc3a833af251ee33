// Branch takes one of two paths: a step that may return events of several types, each
// leading to other steps.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent names the branch to take.
type StartEvent struct {
	weft.Start
	Branch string `enum:"A,B"`
}

// The events of the branches, two steps each.
type (
	BranchA1Event struct{ Payload string }
	BranchA2Event struct{ Payload string }
	BranchB1Event struct{ Payload string }
	BranchB2Event struct{ Payload string }
)

type context = weft.Context[weft.Untyped] // this workflow has no state

func start(_ *context, ev StartEvent) (weft.Event, error) {
	if ev.Branch == "A" {
		return BranchA1Event{"Branch A"}, nil
	}
	return BranchB1Event{"Branch B"}, nil
}

func stepA1(_ *context, ev BranchA1Event) (BranchA2Event, error) {
	return BranchA2Event(ev), nil
}

func stepA2(_ *context, ev BranchA2Event) (weft.Stop, error) {
	return weft.Result(ev.Payload + " complete."), nil
}

func stepB1(_ *context, ev BranchB1Event) (BranchB2Event, error) {
	return BranchB2Event(ev), nil
}

func stepB2(_ *context, ev BranchB2Event) (weft.Stop, error) {
	return weft.Result(ev.Payload + " complete."), nil
}

func init() {
	weft.Define("branch",
		weft.Step("start", start, weft.Emits(BranchA1Event{}, BranchB1Event{})),
		weft.Step("step_a1", stepA1),
		weft.Step("step_a2", stepA2),
		weft.Step("step_b1", stepB1),
		weft.Step("step_b2", stepB2))
}

func main() {}
