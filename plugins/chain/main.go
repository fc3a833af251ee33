// Chain passes a payload back and forth between two steps. The steps do as little work as
// possible, so the workflow measures the cost of a step.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says how many hops to make, and what to carry.
type StartEvent struct {
	weft.Start
	N       int    `min:"0" doc:"how many hops"`
	Payload string `weft:"payload,omitempty" doc:"what every hop carries"`
}

// HopEvent goes from ping to pong, BackEvent from pong to ping. I counts the hops made,
// including this one.
type (
	HopEvent struct {
		I       int
		Payload string `weft:"payload,omitempty"`
	}
	BackEvent HopEvent
)

// State keeps the number of hops, which only the start event contains.
type State struct{ N int }

// Summary is the run's result.
type Summary struct{ Hops int }

type context = weft.Context[State]

func ping(ctx *context, ev weft.Event) (weft.Event, error) {
	if start, ok := ev.(StartEvent); ok {
		if err := ctx.Set("n", start.N); err != nil {
			return nil, err
		}
		return hop(ctx, HopEvent{0, start.Payload})
	}
	return hop(ctx, HopEvent(ev.(BackEvent)))
}

func pong(ctx *context, ev HopEvent) (weft.Event, error) {
	next, err := hop(ctx, ev)
	if next, ok := next.(HopEvent); ok {
		return BackEvent(next), err
	}
	return next, err
}

// hop returns the next hop, or the end.
func hop(ctx *context, ev HopEvent) (weft.Event, error) {
	var n int
	if err := ctx.Get("n", &n); err != nil {
		return nil, err
	}
	if ev.I == n {
		return weft.Result(Summary{Hops: n}), nil
	}
	ev.I++
	return ev, nil
}

func init() {
	weft.Define("chain",
		weft.Step("ping", ping,
			weft.Accepts(StartEvent{}, BackEvent{}), weft.Emits(HopEvent{}, weft.Stop{})),
		weft.Step("pong", pong, weft.Emits(BackEvent{}, weft.Stop{})))
}

func main() {}
