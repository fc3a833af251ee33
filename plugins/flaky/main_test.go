package main

import (
	"errors"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestItFails(t *testing.T) {
	run, err := wefttest.NewSession().Run(map[string]any{"fail_times": 0})
	if err != nil || run.Result.(map[string]any)["attempts"] != int64(1) {
		t.Fatal(run, err)
	}
	for _, most := range []int{1, 3} { // the test's host makes one attempt only
		_, err = wefttest.NewSession().Run(map[string]any{"fail_times": 5, "max_attempts": most})
		var failure *wefttest.Failure
		if !errors.As(err, &failure) || failure.Code != "flaky" {
			t.Fatal(err)
		}
		if final := failure.Fields["retryable"] == false; final != (most == 1) {
			t.Errorf("max_attempts %d: %v", most, failure.Fields)
		}
	}
}
