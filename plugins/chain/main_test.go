package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestHops(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9} {
		run, err := wefttest.NewSession().Run(map[string]any{"n": n, "payload": "p"})
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Result.(map[string]any)["hops"]; got != int64(n) {
			t.Errorf("%v hops, want %d", got, n)
		}
	}
}
