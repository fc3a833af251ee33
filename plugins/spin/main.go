// Spin computes without end, to show how it is stopped.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent starts a run. It needs no fields.
type StartEvent struct{ weft.Start }

type context = weft.Context[weft.Untyped] // this workflow has no state

// Turns gives the loop something to do.
var Turns uint64

func spin(*context, StartEvent) (weft.Stop, error) {
	for {
		Turns++
	}
}

func init() {
	weft.Define("spin", weft.Step("spin", spin))
}

func main() {}
