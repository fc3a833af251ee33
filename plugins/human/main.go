// Human asks a person and waits for the answer, however long that takes: no
// step runs meanwhile.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent starts a run. It needs no fields.
type StartEvent struct{ weft.Start }

// InputRequiredEvent asks. Every client that follows the run sees it.
type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

// HumanResponseEvent is the answer: any JSON value.
type HumanResponseEvent struct {
	weft.HumanResponse
	Response weft.Value
}

type context = weft.Context[weft.Untyped] // this workflow has no state

func ask(_ *context, _ StartEvent) (InputRequiredEvent, error) {
	return InputRequiredEvent{Prefix: "Enter a number: "}, nil
}

func answer(_ *context, ev HumanResponseEvent) (weft.Stop, error) {
	return weft.Result(ev.Response), nil
}

func init() {
	weft.Define("human",
		weft.Timeout(0), // people need time to answer
		weft.Step("ask", ask),
		weft.Step("answer", answer))
}

func main() {}
