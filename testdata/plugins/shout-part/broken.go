//go:build broken

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// SalutationEvent comes from nobody.
type SalutationEvent struct{ Text string }

func takes(ctx *weft.Context[weft.Untyped], ev SalutationEvent) (weft.Stop, error) {
	return shout(ctx, ev.Text)
}

func init() {
	weft.Define("shout-part", weft.Part(), weft.Step("shout", takes, settings...))
}
