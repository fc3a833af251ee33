package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestCountsTheRunsOfASession(t *testing.T) {
	session := wefttest.NewSession()
	for want := int64(1); want <= 3; want++ {
		run, err := session.Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		if run.Result != want {
			t.Errorf("result %v, want %d", run.Result, want)
		}
	}
}
