// Concurrent sends three events that different steps handle concurrently, and collects
// their answers in a fixed order.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent holds the query that all steps work on.
type StartEvent struct {
	weft.Start
	Query string
}

// StepAEvent, StepBEvent and StepCEvent each start one of the three steps.
type (
	StepAEvent struct{ Query string }
	StepBEvent struct{ Query string }
	StepCEvent struct{ Query string }
)

// StepACompleteEvent, StepBCompleteEvent and StepCCompleteEvent hold the results of the
// three steps.
type (
	StepACompleteEvent struct{ Result string }
	StepBCompleteEvent struct{ Result string }
	StepCCompleteEvent struct{ Result string }
)

type context = weft.Context[weft.Untyped] // this workflow has no state

// start sends its events instead of returning one.
func start(ctx *context, ev StartEvent) (weft.Nothing, error) {
	for _, next := range []weft.Event{StepAEvent{ev.Query}, StepBEvent{ev.Query}, StepCEvent{ev.Query}} {
		if err := ctx.Send(next); err != nil {
			return weft.Nothing{}, err
		}
	}
	return weft.Nothing{}, nil
}

func stepA(_ *context, ev StepAEvent) (StepACompleteEvent, error) {
	return StepACompleteEvent{"A:" + ev.Query}, nil
}

func stepB(_ *context, ev StepBEvent) (StepBCompleteEvent, error) {
	return StepBCompleteEvent{"B:" + ev.Query}, nil
}

func stepC(_ *context, ev StepCEvent) (StepCCompleteEvent, error) {
	return StepCCompleteEvent{"C:" + ev.Query}, nil
}

// stepThree runs once for each answer and returns nothing until it has all answers.
func stepThree(ctx *context, _ weft.Event) (*weft.Stop, error) {
	var a StepACompleteEvent
	var b StepBCompleteEvent
	var c StepCCompleteEvent
	complete, err := ctx.Collect(&c, &a, &b)
	if err != nil || !complete {
		return nil, err
	}
	stop := weft.Result([]string{c.Result, a.Result, b.Result})
	return &stop, nil
}

func init() {
	weft.Define("concurrent",
		weft.Step("start", start, weft.Emits(StepAEvent{}, StepBEvent{}, StepCEvent{})),
		weft.Step("step_a", stepA),
		weft.Step("step_b", stepB),
		weft.Step("step_c", stepC),
		weft.Step("step_three", stepThree,
			weft.Accepts(StepACompleteEvent{}, StepBCompleteEvent{}, StepCCompleteEvent{})))
}

func main() {}
