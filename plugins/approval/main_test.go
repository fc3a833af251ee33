package main

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func answer(role string, approved bool) map[string]any {
	return map[string]any{"role": role, "approved": approved}
}

func TestBothAreAsked(t *testing.T) {
	for _, answers := range [][]map[string]any{
		{answer("manager", true), answer("finance", true)},
		{answer("finance", false), answer("manager", true)}, // too early: kept
		{answer("janitor", true), answer("manager", false), answer("finance", true)},
	} {
		session := wefttest.NewSession()
		run, err := session.Run(map[string]any{"item": "a desk"})
		if err != nil {
			t.Fatal(err)
		}
		approved := true
		for _, a := range answers {
			if err := run.Post("HumanResponseEvent", a); err != nil {
				t.Fatal(err)
			}
			approved = approved && a["approved"].(bool)
		}
		want := map[string]any{"approved": approved, "by": []any{"manager", "finance"}, "calls": int64(1)}
		if !run.Ended || !reflect.DeepEqual(run.Result, want) {
			t.Errorf("%v: %+v, want %v", answers, run.Result, want)
		}
		if len(run.Stream) != 2 || run.Stream[1].Body["prefix"] != "finance, approve a desk?" {
			t.Errorf("asked: %+v", run.Stream)
		}
	}
}
