// Counter-race shows the purpose of an edit: many steps add to one number, safely in an
// edit, or unsafely by reading and writing it in two calls.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says how often to add 1, and how.
type StartEvent struct {
	weft.Start
	N    int    `min:"0" doc:"how many increments"`
	Mode string `enum:"edit,get-set" doc:"edit never loses one; get-set may"`
}

// IncrementEvent asks for one increment.
type IncrementEvent struct{}

// IncrementedEvent says that one increment was made.
type IncrementedEvent struct{}

// State is what the workers share.
type State struct {
	Count int
	Mode  string
}

// Tally is the run's result.
type Tally struct{ Count int }

func start(ctx *weft.Context[State], ev StartEvent) ([]IncrementEvent, error) {
	_, err := ctx.Batch().Set("count", 0).Set("mode", ev.Mode).Do() // both at once
	return make([]IncrementEvent, ev.N), err
}

func increment(ctx *weft.Context[State], _ IncrementEvent) (IncrementedEvent, error) {
	s, err := ctx.State()
	if err != nil {
		return IncrementedEvent{}, err
	}
	if s.Mode == "get-set" {
		// Wrong on purpose: this write overwrites every write since the read above.
		return IncrementedEvent{}, ctx.Set("count", s.Count+1)
	}
	return IncrementedEvent{}, ctx.Edit(func(s *State) error {
		s.Count++
		return nil
	})
}

func finish(ctx *weft.Context[State], _ []IncrementedEvent) (weft.Stop, error) {
	s, err := ctx.State()
	return weft.Result(Tally{s.Count}), err
}

func init() {
	weft.Define("counter-race",
		weft.Step("start", start),
		weft.Step("increment", increment, weft.Workers(8)),
		weft.Step("finish", finish))
}

func main() {}
