package main

import (
	"fmt"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// model replaces the resource. It answers with the number of messages that it received.
func model(_ string, r weft.ChatRequest) (any, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Content == "fail" {
		return nil, &wefttest.Failure{Code: "unavailable", Message: "nobody is there"}
	}
	return weft.ChatResponse{Content: fmt.Sprintf("%s %d", last.Content, len(r.Messages)), FinishReason: "stop"}, nil
}

func TestRemembersTheTurns(t *testing.T) {
	session := wefttest.NewSession(wefttest.Resource("llm", model))
	for i := range 3 {
		if _, err := session.Run(map[string]any{"message": "fail"}); err == nil {
			t.Fatal("a model that is not there answers") // a turn that fails leaves nothing
		}
		run, err := session.Run(map[string]any{"message": "hello"})
		if err != nil {
			t.Fatal(err)
		}
		var got Response
		if err := wefttest.Into(run.Result, &got); err != nil {
			t.Fatal(err)
		}
		if want := (Response{fmt.Sprintf("hello %d", 2*i+2), i + 1, 2*i + 2}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
