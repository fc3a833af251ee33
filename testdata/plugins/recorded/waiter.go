//go:build waiter

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

func ask(ctx *Context, _ StartEvent) (weft.Stop, error) {
	got, err := weft.Wait[Answer](ctx, weft.For("w1"), weft.Ask(Ask{Prompt: "your name?"}))
	return weft.Result("hi " + got.Text), err
}

func init() {
	weft.Define("waiter",
		weft.Doc("The same with ctx.wait_for_event inside a step."),
		weft.Step("ask", ask, weft.Waits(Answer{}), weft.Streams(Ask{})))
}
