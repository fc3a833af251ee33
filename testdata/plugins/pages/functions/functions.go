// Package functions has code that pages show and that is beside other code of its names.
package functions

import "github.com/weftrun/weft/sdk-guest/go/weft"

// State is of sdk-guest/go/README.md, as is what follows.
type State struct{ Items []string }

func addItem(ctx *weft.Context[State], in weft.StepInput) (weft.StepOutput, error) {
	_, err := ctx.Append("items", in.Text()) // in.PreviousText(), in.PreviousStepOutputs, in.AdditionalData
	return weft.Content("Added " + in.Text()), err
}

func init() {
	weft.Define("shop", weft.Function("add_item", addItem, weft.Retry(weft.Attempts(3)))) // a flow calls shop.add_item
}
