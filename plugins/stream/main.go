// Stream reports progress while a step works: events for clients that follow the run,
// which no step takes.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says how much there is to do.
type StartEvent struct {
	weft.Start
	N int `min:"0" doc:"how many events to stream"`
}

// ProgressEvent reports the step's progress.
type ProgressEvent struct{ I int }

func work(ctx *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	for i := range ev.N {
		if err := ctx.Stream(ProgressEvent{i}); err != nil {
			return weft.Stop{}, err
		}
	}
	return weft.Result("done"), nil
}

func init() {
	weft.Define("stream", weft.Step("work", work, weft.Streams(ProgressEvent{})))
}

func main() {}
