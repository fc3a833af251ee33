// Flaky fails a few times before it succeeds: retries, and a failure that is final.
package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says how often the step fails.
type StartEvent struct {
	weft.Start
	FailTimes   int `min:"0" doc:"how many attempts fail"`
	MaxAttempts int `default:"3" min:"1" doc:"the attempt whose failure is final"`
}

// Outcome is the result.
type Outcome struct {
	Attempts int `weft:"attempts"`
}

type context = weft.Context[weft.Untyped] // this workflow has no state

func attempt(ctx *context, ev StartEvent) (weft.Stop, error) {
	n := int(ctx.RunInfo().Attempt)
	if n > ev.FailTimes {
		return weft.Result(Outcome{n}), nil
	}
	err := weft.Errorf("flaky", "flaky: attempt %d of %d fails", n, ev.MaxAttempts)
	if n >= ev.MaxAttempts {
		err = err.Final() // whatever the policy says
	}
	return weft.Stop{}, err
}

func init() {
	weft.Define("flaky",
		weft.Step("attempt", attempt,
			weft.Retry(weft.Fixed(10*time.Millisecond), weft.Attempts(100))))
}

func main() {}
