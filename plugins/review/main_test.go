package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// The functions, without a flow around them.
func TestFunctions(t *testing.T) {
	session := wefttest.NewSession()
	drafted := weft.StepInput{PreviousStepOutputs: map[string]weft.StepOutput{"draft": weft.Content("buy tea")}}
	for _, tt := range []struct {
		function string
		in       weft.StepInput
		want     string
	}{
		{"draft", weft.StepInput{Input: "  buy   tea "}, "buy tea"},
		{"regret", drafted, "Not published: buy tea"},
		{"publish", drafted, "buy tea"},
		{"report", drafted, "Published: buy tea (1 in all)"},
	} {
		run, err := session.Step(tt.function, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Emitted[0].Body["content"]; got != tt.want {
			t.Errorf("%s gives %v, want %s", tt.function, got, tt.want)
		}
	}
	if _, err := session.Step("draft", weft.StepInput{Input: " "}); err == nil {
		t.Error("a draft of nothing")
	}
}
