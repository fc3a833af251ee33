package weft_test

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent is the base start event, as its name says.
type StartEvent struct {
	weft.Start
	Names []string `doc:"whom to greet"`
}

// GreetEvent asks for one greeting.
type GreetEvent struct{ Name string }

// GreetedEvent holds one.
type GreetedEvent struct{ Text string }

// State belongs to the session: it outlives the run.
type State struct {
	Greeted int
}

// start returns a list: every event in it is taken by a worker of its own.
func start(_ *weft.Context[State], ev StartEvent) ([]GreetEvent, error) {
	var list []GreetEvent
	for _, name := range ev.Names {
		list = append(list, GreetEvent{Name: name})
	}
	return list, nil
}

func greet(ctx *weft.Context[State], ev GreetEvent) (GreetedEvent, error) {
	err := ctx.Edit(func(s *State) error { // read, change and write without interference
		s.Greeted++
		return nil
	})
	return GreetedEvent{Text: "Hello, " + ev.Name}, err
}

// finish takes what became of the whole list.
func finish(_ *weft.Context[State], all []GreetedEvent) (weft.Stop, error) {
	return weft.Result(all), nil
}

// A workflow. Its plugin calls Define in init; package wefttest has its test.
func Example() {
	weft.Define("greet",
		weft.Step("start", start),
		weft.Step("greet", greet, weft.Workers(8)),
		weft.Step("finish", finish))
}
