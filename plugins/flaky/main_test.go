package main

import (
	"errors"
	"testing"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestItFails(t *testing.T) {
	for times, attempts := range map[int]int64{0: 1, 2: 3} {
		session := wefttest.NewSession()
		began := session.Clock
		run, err := session.Run(map[string]any{"fail_times": times})
		if err != nil || run.Result.(map[string]any)["attempts"] != attempts {
			t.Fatal(run, err)
		}
		if waited := session.Clock.Sub(began); waited != time.Duration(times)*10*time.Millisecond {
			t.Errorf("%d failures take %s", times, waited)
		}
	}
	for _, most := range []int{1, 3} {
		_, err := wefttest.NewSession().Run(map[string]any{"fail_times": 5, "max_attempts": most})
		var failure *wefttest.Failure
		if !errors.As(err, &failure) || failure.Code != "flaky" || failure.Fields["retryable"] != false {
			t.Errorf("max_attempts %d: %v", most, err)
		}
	}
}
