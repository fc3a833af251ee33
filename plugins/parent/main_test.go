package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// accumulator replaces the child.
func accumulator(start Half) ([]Result, error) {
	if len(start.Items) > 3 {
		return nil, &wefttest.Failure{Code: "too_many", Message: fmt.Sprint(len(start.Items), " items")}
	}
	var results []Result
	for i, item := range start.Items {
		results = append(results, Result{i, item, "Processed: " + item})
	}
	return results, nil
}

func TestBothHalvesAreProcessed(t *testing.T) {
	session := wefttest.NewSession(wefttest.Child("accumulator", accumulator))
	for _, items := range [][]string{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
		run, err := session.Run(map[string]any{"items": items})
		if err != nil {
			t.Fatal(err)
		}
		var got Summary
		if err := wefttest.Into(run.Result, &got); err != nil {
			t.Fatal(err)
		}
		want := Summary{Children: 2, Results: []Result{}}
		for i, item := range items {
			if i >= len(items)/2 {
				i -= len(items) / 2 // each child counts from 0
			}
			want.Results = append(want.Results, Result{i, item, "Processed: " + item})
		}
		if !reflect.DeepEqual(got, want) || len(run.Children) != 2 {
			t.Errorf("%v: got %+v of %d children", items, got, len(run.Children))
		}
	}
}

func TestAFailureIsTheChilds(t *testing.T) {
	session := wefttest.NewSession(wefttest.Child("accumulator", accumulator))
	_, err := session.Run(map[string]any{"items": make([]string, 7)})
	if err == nil || !strings.HasPrefix(err.Error(), `too_many: run "accumulator": `) || !strings.HasSuffix(err.Error(), ": 4 items") {
		t.Errorf("fails with %v", err)
	}
	if _, err := wefttest.NewSession().Run(map[string]any{"items": []string{}}); err == nil {
		t.Error("runs without the child's workflow")
	}
}
