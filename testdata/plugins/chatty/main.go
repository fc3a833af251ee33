// Chatty is a workflow for tests of logs: it logs, waits for an answer, logs again and
// ends.
package main

import (
	"fmt"
	"os"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says how much to log before the first answer; if it is less than 0, some
// lines are printed instead.
type StartEvent struct {
	weft.Start
	Lines int `default:"2"`
}

// MoreEvent asks for an answer, and HumanResponseEvent is one.
type (
	MoreEvent          struct{ weft.InputRequired }
	HumanResponseEvent struct {
		weft.HumanResponse
		Text string
	}
)

type context = weft.Context[weft.Untyped] // without state

func speak(ctx *context, ev StartEvent) (MoreEvent, error) {
	if ev.Lines < 0 {
		fmt.Print("one\ntwo\n")
		fmt.Fprint(os.Stderr, "panic: ")
		fmt.Fprint(os.Stderr, "as it looks\n")
	}
	for i := range ev.Lines {
		ctx.Info("before the answer", "line", i+1)
	}
	ctx.Warn("quite\nwarm", "degrees", 41.5)
	return MoreEvent{}, nil
}

func end(ctx *context, ev HumanResponseEvent) (weft.Stop, error) {
	ctx.Debug("an answer came", "text", ev.Text)
	ctx.Error("over")
	return weft.Result(ev.Text), nil
}

func init() {
	weft.Define("chatty", weft.Step("speak", speak), weft.Step("end", end))
}

func main() {}
