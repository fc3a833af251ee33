// Accumulator fans out over a list and collects the results: a step that returns a list,
// workers that share one state, and a step that takes the list.
package main

import (
	"slices"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent lists what to process.
type StartEvent struct {
	weft.Start
	Items []string
}

// ItemEvent is one item on its way to a worker.
type ItemEvent struct {
	Item  string
	Index int
}

// ProcessedItemEvent says that an item's result is in the state.
type ProcessedItemEvent struct{ Index int }

// Result is the result of one item.
type Result struct {
	Index     int
	Original  string
	Processed string
}

// State collects the results, in the order in which the workers end.
type State struct{ Results []Result }

func start(ctx *weft.Context[State], ev StartEvent) ([]ItemEvent, error) {
	items := make([]ItemEvent, len(ev.Items))
	for i, item := range ev.Items {
		items[i] = ItemEvent{Item: item, Index: i}
	}
	return items, ctx.Set("results", []Result{}) // the session may have results of an earlier run
}

func process(ctx *weft.Context[State], ev ItemEvent) (ProcessedItemEvent, error) {
	// Appending costs the same however long the list is.
	_, err := ctx.Append("results", Result{
		Index:     ev.Index,
		Original:  ev.Item,
		Processed: "Processed: " + ev.Item,
	})
	return ProcessedItemEvent{ev.Index}, err
}

// finalize takes all events that the list led to, so it runs once, after the last worker.
func finalize(ctx *weft.Context[State], _ []ProcessedItemEvent) (weft.Stop, error) {
	s, err := ctx.State()
	slices.SortFunc(s.Results, func(a, b Result) int { return a.Index - b.Index })
	return weft.Result(s.Results), err
}

func init() {
	weft.Define("accumulator",
		weft.Step("start", start),
		weft.Step("process_item", process, weft.Workers(4)),
		weft.Step("finalize", finalize))
}

func main() {}
