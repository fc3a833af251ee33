package main

import (
	"errors"
	"testing"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestItSleeps(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{0: 0, 1.5: 1500 * time.Millisecond, 40: 40 * time.Second} {
		session := wefttest.NewSession()
		began := session.Clock
		run, err := session.Run(map[string]any{"seconds": seconds})
		if err != nil || run.Result != "slept" {
			t.Fatal(run, err)
		}
		if slept := session.Clock.Sub(began); slept != want {
			t.Errorf("slept %s, want %s", slept, want)
		}
	}
	_, err := wefttest.NewSession().Run(map[string]any{"seconds": 3600})
	if failure := (*wefttest.Failure)(nil); !errors.As(err, &failure) || failure.Code != "timeout" {
		t.Errorf("slept longer than a run may take: %v", err)
	}
}
