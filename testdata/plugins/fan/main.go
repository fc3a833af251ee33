// Fan is a workflow for tests of wide fan-outs: n events, as many edits of one
// number, and a step that takes all the answers.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says how wide, and how much work each event is.
type StartEvent struct {
	weft.Start
	N     int `min:"0"`
	Spins int `default:"0" min:"0" doc:"rounds of arithmetic per event"`
}

// WorkEvent is one piece of work.
type WorkEvent struct {
	I     int
	Spins int `weft:"spins,omitempty"`
}

// DoneEvent says that one is done.
type DoneEvent struct{ I int }

// State counts the pieces done, over all runs of the session.
type State struct{ Done int }

// Summary is the run's result.
type Summary struct{ Count, Sum int }

func start(_ *weft.Context[State], ev StartEvent) ([]WorkEvent, error) {
	list := make([]WorkEvent, ev.N)
	for i := range list {
		list[i] = WorkEvent{I: i, Spins: ev.Spins}
	}
	return list, nil
}

func work(ctx *weft.Context[State], ev WorkEvent) (DoneEvent, error) {
	err := weft.EditAt(ctx, "done", func(done *int) error {
		*done++
		return nil
	})
	spin(ev.Spins)
	return DoneEvent{ev.I}, err
}

var sink uint64 // keeps the compiler from dropping the loop

func spin(rounds int) {
	x := sink | 1
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
}

func finish(_ *weft.Context[State], all []DoneEvent) (weft.Stop, error) {
	s := Summary{Count: len(all)}
	for _, ev := range all {
		s.Sum += ev.I
	}
	return weft.Result(s), nil
}

func init() {
	weft.Define("fan",
		weft.Step("start", start),
		weft.Step("work", work, weft.Workers(8)),
		weft.Step("finish", finish))
}

func main() {}
