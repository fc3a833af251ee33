package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestBothBranches(t *testing.T) {
	for _, branch := range []string{"A", "B"} {
		run, err := wefttest.NewSession().Run(map[string]any{"branch": branch})
		if err != nil {
			t.Fatal(err)
		}
		if want := "Branch " + branch + " complete."; run.Result != want {
			t.Errorf("got %v, want %q", run.Result, want)
		}
	}
}
