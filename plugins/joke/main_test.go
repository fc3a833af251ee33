package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestTheJokeIsJudged(t *testing.T) {
	model := func(_ string, r weft.ChatRequest) (any, error) {
		return weft.ChatResponse{Content: "on: " + r.Messages[0].Content}, nil
	}
	run, err := wefttest.NewSession(wefttest.Resource("llm", model)).Run(map[string]any{"topic": "pirates"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "on: Give a thorough analysis and critique of the following joke: on: Write your best joke about pirates."
	if run.Result != want {
		t.Errorf("got %v, want %s", run.Result, want)
	}
}
