//go:build human

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

func ask(*Context, StartEvent) (Ask, error) { return Ask{Prompt: "your name?"}, nil }

func answered(_ *Context, ev Answer) (weft.Stop, error) { return weft.Result("hi " + ev.Text), nil }

func init() {
	weft.Define("human",
		weft.Step("ask", ask, weft.Streams(Progress{})),
		weft.Step("answered", answered))
}
