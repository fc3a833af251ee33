// Rescue turns the failure of one step into another step's work.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says whether to fail.
type StartEvent struct {
	weft.Start
	Fail bool
}

type context = weft.Context[weft.Untyped] // this workflow has no state

func work(_ *context, ev StartEvent) (weft.Stop, error) {
	if ev.Fail {
		return weft.Stop{}, weft.Errorf("asked", "asked to fail")
	}
	return weft.Result("ok"), nil
}

// rescue receives which step failed, why, and on which event.
func rescue(_ *context, ev weft.StepFailed) (weft.Stop, error) {
	return weft.Result("recovered: " + ev.Exception.ExceptionMessage), nil
}

func init() {
	weft.Define("rescue",
		weft.Step("work", work),
		weft.Step("recover", rescue, weft.Catches("work")))
}

func main() {}
