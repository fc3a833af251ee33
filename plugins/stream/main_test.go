package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestProgress(t *testing.T) {
	for _, n := range []int{0, 3} {
		run, err := wefttest.NewSession().Run(map[string]any{"n": n})
		if err != nil {
			t.Fatal(err)
		}
		if run.Result != "done" || len(run.Stream) != n {
			t.Errorf("n = %d: result %v, %d events", n, run.Result, len(run.Stream))
		}
		for i, ev := range run.Stream {
			if ev.Type != "ProgressEvent" || ev.Body["i"] != int64(i) {
				t.Errorf("event %d is %+v", i, ev)
			}
		}
	}
}
