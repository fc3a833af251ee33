// History remembers every query of a session, in a list that is appended to
// without being read.
package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent holds the query.
type StartEvent struct {
	weft.Start
	Query string
}

// Interaction is one earlier query.
type Interaction struct {
	Query     string
	Timestamp float64 `doc:"seconds since the epoch"`
}

// State belongs to the session.
type State struct{ History []Interaction }

// Response is the run's result.
type Response struct {
	Response          string
	TotalInteractions int
}

func answer(ctx *weft.Context[State], ev StartEvent) (weft.Stop, error) {
	// One call, whatever the list's length; no other edit can come in between.
	total, err := ctx.Append("history", Interaction{Query: ev.Query, Timestamp: seconds(ctx.Now())})
	return weft.Result(Response{Response: "Processed: " + ev.Query, TotalInteractions: total}), err
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func init() {
	weft.Define("history", weft.Step("answer", answer))
}

func main() {}
