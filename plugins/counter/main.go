// Counter counts how often it has been run in a session: typed state, and an
// edit that cannot lose an update.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent starts a run. It needs no fields.
type StartEvent struct{ weft.Start }

// State belongs to the session: it outlives the run.
type State struct {
	Count int `default:"0" doc:"runs so far"`
}

func increment(ctx *weft.Context[State], _ StartEvent) (weft.Stop, error) {
	var count int
	err := ctx.Edit(func(s *State) error { // read, change and write without interference
		s.Count++
		count = s.Count
		return nil
	})
	return weft.Result(count), err
}

func init() {
	weft.Define("counter", weft.Step("increment", increment))
}

func main() {}
