//go:build !broken

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// GreetingEvent comes from the other part.
type GreetingEvent struct{ Text string }

func takes(ctx *weft.Context[weft.Untyped], ev GreetingEvent) (weft.Stop, error) {
	return shout(ctx, ev.Text)
}

func init() {
	weft.Define("shout-part", weft.Part(), weft.Step("shout", takes, settings...))
}
