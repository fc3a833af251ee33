// Flowstrange is a plugin for tests of flows: its functions answer in shapes that no
// output has.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// Strange is an output whose parts are of no use.
type Strange struct {
	_       struct{} `weft:"StepOutput"`
	Content any
	Success any
	Stop    any
	Steps   any
	Call    string // which is not the function's to say
}

type ctx = weft.Context[weft.Untyped]

// strange answers as the input says.
func strange(_ *ctx, in weft.StepInput) (Strange, error) {
	out := Strange{Success: true, Call: "1.1.7"}
	switch in.Input {
	case "success":
		out.Success = "of course"
	case "stop":
		out.Stop = 1
	case "steps":
		out.Steps = []any{"one"}
	default:
		out.Content = in.Input
	}
	return out, nil
}

func init() {
	weft.Define("flowstrange", weft.Part(), weft.Step("strange", strange))
}

func main() {}
