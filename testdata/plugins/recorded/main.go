// Recorded is the workflows whose traffic testdata/wire has recorded from the
// peer's server, one for each tag: hello, plain, fail, slow, timeout, human and
// waiter. They are served under the tag's name.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// Progress is for the stream.
type Progress struct{ Pct int }

// Ask asks a person.
type Ask struct {
	weft.InputRequired
	Prompt string
}

// Answer is what the person says.
type Answer struct {
	weft.HumanResponse
	Text string
}

// StartEvent may hold anything.
type StartEvent struct {
	weft.Start
	weft.Extra
}

// Context is that of steps without state.
type Context = weft.Context[weft.Untyped]

func main() {}
