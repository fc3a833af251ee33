// Code that pages of the documentation show in part. It compiles, so that they do not
// show what is not so: each block of Go in a page is a whole program, or lines of a file
// such as these. See docs/README.md.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent, HumanResponseEvent and InputRequiredEvent are those of most pages.
type StartEvent struct {
	weft.Start
	Text  string
	Items []string
}

type HumanResponseEvent struct {
	weft.HumanResponse
	Approved bool
}

type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

type Result struct{ Text string }

type Order struct {
	weft.Start
	Customer string
	Items    []string
}

func main() {}
