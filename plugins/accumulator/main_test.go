package main

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestResultsAreInOrder(t *testing.T) {
	session := wefttest.NewSession()
	for _, items := range [][]string{{"a", "b", "c"}, {}, {"x"}} {
		run, err := session.Run(map[string]any{"items": items})
		if err != nil {
			t.Fatal(err)
		}
		var got []Result
		if err := wefttest.Into(run.Result, &got); err != nil {
			t.Fatal(err)
		}
		want := []Result{}
		for i, item := range items {
			want = append(want, Result{i, item, "Processed: " + item})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v", items, got)
		}
	}
}
