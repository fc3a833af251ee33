package main

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestAnswersAreInTheExpectedOrder(t *testing.T) {
	run, err := wefttest.NewSession().Run(map[string]any{"query": "q"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []any{"C:q", "A:q", "B:q"}; !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("got %v, want %v", run.Result, want)
	}
}
