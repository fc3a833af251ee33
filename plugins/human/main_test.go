package main

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestTheAnswerIsTheResult(t *testing.T) {
	for _, answer := range []any{"42", int64(42), nil, []any{"a", true}, map[string]any{"b": 1.5}} {
		run, err := wefttest.NewSession().Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		if run.Ended || len(run.Stream) != 1 || run.Stream[0].Body["prefix"] != "Enter a number: " {
			t.Fatalf("it does not ask: %+v", run)
		}
		if err := run.Post("HumanResponseEvent", map[string]any{"response": answer}); err != nil {
			t.Fatal(err)
		}
		if !run.Ended || !reflect.DeepEqual(run.Result, answer) {
			t.Errorf("answer %v, result %v", answer, run.Result)
		}
	}
}
