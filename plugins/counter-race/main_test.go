package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestEveryIncrementCounts(t *testing.T) {
	session := wefttest.NewSession()
	for _, mode := range []string{"edit", "get-set"} { // one worker at a time here, so none is lost
		for _, n := range []int{0, 1, 25} {
			run, err := session.Run(map[string]any{"n": n, "mode": mode})
			if err != nil {
				t.Fatal(err)
			}
			var got Tally
			if err := wefttest.Into(run.Result, &got); err != nil {
				t.Fatal(err)
			}
			if got.Count != n {
				t.Errorf("%s: counted %d of %d", mode, got.Count, n)
			}
		}
	}
}
