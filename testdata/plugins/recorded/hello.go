//go:build hello

package main

import (
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// Hello says whom to greet.
type Hello struct {
	weft.Start
	Name  string
	Times int `default:"1" min:"0" doc:"how often"`
}

// Mid is half of the way.
type Mid struct{ Text string }

// Greeting is the end.
type Greeting struct {
	weft.Stop
	Text  string
	Count int `default:"0"`
}

// Counted is the state: the runs of the session.
type Counted struct {
	Count int `default:"0"`
}

func first(ctx *weft.Context[Counted], ev Hello) (Mid, error) {
	return Mid{strings.Repeat("hello ", ev.Times) + ev.Name}, ctx.Stream(Progress{50})
}

func second(ctx *weft.Context[Counted], ev Mid) (Greeting, error) {
	out := Greeting{Text: ev.Text}
	err := ctx.Edit(func(s *Counted) error {
		s.Count++
		out.Count = s.Count
		return nil
	})
	if err != nil {
		return out, err
	}
	return out, ctx.Stream(Progress{100})
}

func init() {
	weft.Define("hello",
		weft.Doc("Custom start and stop events; streams its progress; counts its runs in state."),
		weft.Step("first", first, weft.Streams(Progress{})),
		weft.Step("second", second, weft.Streams(Progress{})))
}
