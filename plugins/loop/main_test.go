package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestIterations(t *testing.T) {
	for _, n := range []int{0, 1, 7} {
		run, err := wefttest.NewSession().Run(map[string]any{"n": n})
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Result.(map[string]any)["iterations"]; got != int64(n) {
			t.Errorf("%v iterations, want %d", got, n)
		}
	}
}
