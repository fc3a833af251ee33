package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestTheFailureIsCaught(t *testing.T) {
	for fail, want := range map[bool]string{false: "ok", true: "recovered: asked to fail"} {
		run, err := wefttest.NewSession().Run(map[string]any{"fail": fail})
		if err != nil || run.Result != want {
			t.Errorf("fail %v: %+v, %v", fail, run, err)
		}
	}
}
