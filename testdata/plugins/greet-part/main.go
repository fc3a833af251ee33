// Greet-part is the first of two parts of a workflow for tests: it makes a
// greeting, which another plugin takes.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says whom to greet.
type StartEvent struct {
	weft.Start
	Name string
}

// GreetingEvent goes to the other part.
type GreetingEvent struct{ Text string }

// Config is what the step can be configured with.
type Config struct {
	Greeting string `default:"Hello"`
}

func greet(ctx *weft.Context[weft.Untyped], ev StartEvent) (GreetingEvent, error) {
	var c Config
	if err := ctx.Config(&c); err != nil {
		return GreetingEvent{}, err
	}
	return GreetingEvent{Text: c.Greeting + ", " + ev.Name}, nil
}

func init() {
	weft.Define("greet-part", weft.Part(), weft.Step("greet", greet))
}

func main() {}
