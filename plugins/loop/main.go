// Loop repeats a step: the step returns an event that it takes itself.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says how often to repeat.
type StartEvent struct {
	weft.Start
	N int `min:"0" doc:"how many iterations"`
}

// LoopEvent starts the next iteration.
type LoopEvent struct{ I int }

// FirstEvent leaves the loop.
type FirstEvent struct{ I int }

// State keeps the number of iterations, which only the start event contains.
type State struct{ N int }

// Summary is the run's result.
type Summary struct{ Iterations int }

func stepOne(ctx *weft.Context[State], ev weft.Event) (weft.Event, error) {
	i, n := 0, 0
	switch ev := ev.(type) {
	case StartEvent:
		n = ev.N
		if err := ctx.Set("n", n); err != nil {
			return nil, err
		}
	case LoopEvent:
		i = ev.I
		if err := ctx.Get("n", &n); err != nil {
			return nil, err
		}
	}
	if i < n {
		return LoopEvent{i + 1}, nil
	}
	return FirstEvent{i}, nil
}

func stepTwo(_ *weft.Context[State], ev FirstEvent) (weft.Stop, error) {
	return weft.Result(Summary{ev.I}), nil
}

func init() {
	weft.Define("loop",
		weft.Step("step_one", stepOne,
			weft.Accepts(StartEvent{}, LoopEvent{}),
			weft.Emits(LoopEvent{}, FirstEvent{})),
		weft.Step("step_two", stepTwo))
}

func main() {}
