// Fetch makes an HTTP request by a resource that the operator grants.
package main

import (
	"unicode/utf8"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says what to fetch.
type StartEvent struct {
	weft.Start
	Path   string `doc:"below the base_url of the resource"`
	Method string `default:"GET"`
	Body   string `weft:",omitempty"`
}

// Page is the result.
type Page struct {
	Status int
	Length int   `doc:"letters of the text"`
	Asked  int64 `doc:"pages that the session has asked for"`
}

// Tally is the session's state.
type Tally struct{ Asked int }

func fetch(ctx *weft.Context[Tally], ev StartEvent) (weft.Stop, error) {
	asked, err := ctx.Increment("asked", 1) // once, however often the request is repeated
	if err != nil {
		return weft.Stop{}, err
	}
	answer, err := ctx.HTTP("web").Do(weft.HTTPRequest{Method: ev.Method, Path: ev.Path, Body: []byte(ev.Body)})
	if err != nil {
		return weft.Stop{}, err
	}
	return weft.Result(Page{answer.Status, utf8.RuneCount(answer.Body), asked}), nil
}

func init() {
	weft.Define("fetch",
		weft.Resource{Name: "web", Kind: "http", Doc: "where pages are fetched from"},
		weft.Step("fetch", fetch))
}

func main() {}
