// Metadata keeps notes about a run in the state while its steps work: when it started,
// which steps ran, how much they handled.
package main

import (
	"strings"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent holds the query.
type StartEvent struct {
	weft.Start
	Query string
}

// MetadataEvent continues with the query once the notes exist.
type MetadataEvent struct{ Query string }

// ProcessedEvent holds the result of the query.
type ProcessedEvent struct{ Result string }

// Metadata are the notes. Times are seconds since the epoch.
type Metadata struct {
	StartTime     float64
	StepsExecuted []string
	TokenCount    int
	EndTime       float64
	TotalTime     float64
}

// State holds the notes under the key metadata.
type State struct{ Metadata Metadata }

// Output is the run's result.
type Output struct {
	Output   string
	Metadata Metadata
}

func initialize(ctx *weft.Context[State], ev StartEvent) (MetadataEvent, error) {
	err := ctx.Set("metadata", Metadata{StartTime: seconds(ctx.Now())})
	return MetadataEvent{ev.Query}, err
}

func process(ctx *weft.Context[State], ev MetadataEvent) (ProcessedEvent, error) {
	err := ctx.Edit(func(s *State) error {
		s.Metadata.StepsExecuted = append(s.Metadata.StepsExecuted, "process")
		s.Metadata.TokenCount = len(strings.Fields(ev.Query))
		return nil
	})
	return ProcessedEvent{"Processed: " + ev.Query}, err
}

func finalize(ctx *weft.Context[State], ev ProcessedEvent) (weft.Stop, error) {
	out := Output{Output: ev.Result}
	end := seconds(ctx.Now())
	err := ctx.Edit(func(s *State) error {
		s.Metadata.StepsExecuted = append(s.Metadata.StepsExecuted, "finalize")
		s.Metadata.EndTime = end
		s.Metadata.TotalTime = end - s.Metadata.StartTime
		out.Metadata = s.Metadata
		return nil
	})
	return weft.Result(out), err
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func init() {
	weft.Define("metadata",
		weft.Step("initialize", initialize),
		weft.Step("process", process),
		weft.Step("finalize", finalize))
}

func main() {}
