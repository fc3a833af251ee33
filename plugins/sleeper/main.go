// Sleeper sleeps, and uses no resources while it does.
package main

import (
	"math"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says for how long.
type StartEvent struct {
	weft.Start
	Seconds float64 `min:"0" doc:"how long to sleep"`
}

type context = weft.Context[weft.Untyped] // this workflow has no state

func sleep(ctx *context, ev StartEvent) (weft.Stop, error) {
	ns := math.Min(ev.Seconds*1e9, math.MaxInt64-1023) // the largest float64 below 2^63
	return weft.Result("slept"), ctx.Sleep(time.Duration(ns))
}

func init() {
	weft.Define("sleeper", weft.Step("sleep", sleep), weft.Timeout(45*time.Second))
}

func main() {}
