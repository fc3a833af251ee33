// Review is a flow in which a person decides: flow.json says who is asked, how long, and
// what follows an approval, a rejection and no answer. The functions here do not depend
// on it.
package main

import (
	"strconv"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// State lists what has been published. It outlives runs.
type State struct{ Published []string }

type ctx = weft.Context[State]

// draft makes the text that people are asked about.
func draft(_ *ctx, in weft.StepInput) (weft.StepOutput, error) {
	text := strings.Join(strings.Fields(in.Text()), " ")
	if text == "" {
		return weft.StepOutput{}, weft.Errorf("nothing_said", "input is not a text, or an empty one").Final()
	}
	return weft.Content(text), nil
}

// publish is called only after an approval.
func publish(ctx *ctx, in weft.StepInput) (weft.StepOutput, error) {
	_, err := ctx.Append("published", drafted(in))
	return weft.Content(drafted(in)), err
}

func report(ctx *ctx, in weft.StepInput) (weft.StepOutput, error) {
	s, err := ctx.State()
	return weft.Content("Published: " + drafted(in) + " (" + strconv.Itoa(len(s.Published)) + " in all)"), err
}

func regret(_ *ctx, in weft.StepInput) (weft.StepOutput, error) {
	return weft.Content("Not published: " + drafted(in)), nil
}

// drafted returns the output of the node "draft".
func drafted(in weft.StepInput) string {
	out := in.PreviousStepOutputs["draft"]
	return out.Text()
}

func init() {
	weft.Define("review-functions",
		weft.Function("draft", draft),
		weft.Function("publish", publish),
		weft.Function("report", report),
		weft.Function("regret", regret))
}

func main() {}
