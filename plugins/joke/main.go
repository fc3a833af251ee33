// Joke asks a model for a joke, and then asks it to judge the joke.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says what the joke is about.
type StartEvent struct {
	weft.Start
	Topic string
}

// JokeEvent is the joke; it also appears on the stream.
type JokeEvent struct{ Joke string }

func invent(ctx *weft.Context[weft.Untyped], ev StartEvent) (JokeEvent, error) {
	answer, err := ctx.LLM("llm").Chat(weft.User("Write your best joke about " + ev.Topic + "."))
	if err != nil {
		return JokeEvent{}, err
	}
	joke := JokeEvent{answer.Content}
	return joke, ctx.Stream(joke)
}

func judge(ctx *weft.Context[weft.Untyped], ev JokeEvent) (weft.Stop, error) {
	answer, err := ctx.LLM("llm").Chat(weft.User("Give a thorough analysis and critique of the following joke: " + ev.Joke))
	return weft.Result(answer.Content), err
}

func init() {
	weft.Define("joke",
		weft.Resource{Name: "llm", Kind: "llm", Doc: "the model that makes jokes"},
		weft.Step("invent", invent, weft.Streams(JokeEvent{})),
		weft.Step("judge", judge))
}

func main() {}
