//go:build human

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

func ask(*context, StartEvent) (Ask, error) { return Ask{Prompt: "your name?"}, nil }

func answered(_ *context, ev Answer) (weft.Stop, error) { return weft.Result("hi " + ev.Text), nil }

func init() {
	weft.Define("human",
		weft.Step("ask", ask, weft.Streams(Progress{})),
		weft.Step("answered", answered))
}
