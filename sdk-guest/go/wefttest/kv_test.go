package wefttest_test

import (
	"slices"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

type countEvent struct {
	weft.Start
	Page string
}

// The next session and the test see the values that a step has kept.
func TestKV(t *testing.T) {
	var shelf wefttest.Values
	session := func() *wefttest.Session {
		t.Cleanup(boundary.Aside())
		weft.Define("visits", weft.Resource{Name: "shelf", Kind: "kv"},
			weft.Step("count", func(ctx *weft.Context[weft.Untyped], ev countEvent) (weft.Stop, error) {
				kv := ctx.KV("shelf")
				n, err := weft.UpdateKey(kv, ev.Page, func(n *int64) error {
					if *n == 1 { // another run writes in between
						if _, err := kv.Increment(ev.Page, 10); err != nil {
							return err
						}
					}
					*n++
					return nil
				})
				return weft.Result(n), err
			}))
		return wefttest.NewSession(wefttest.KV("shelf", &shelf))
	}
	for _, want := range []int64{1, 12} {
		run, err := session().Run(countEvent{Page: "home"})
		if err != nil {
			t.Fatal(err)
		}
		if run.Result != want {
			t.Errorf("the visit is number %v, want %d", run.Result, want)
		}
	}
	if err := shelf.Set("about", 3); err != nil {
		t.Fatal(err)
	}
	var n int64
	if found, err := shelf.Get("home", &n); err != nil || !found || n != 12 || !slices.Equal(shelf.Keys(), []string{"about", "home"}) {
		t.Errorf("it keeps %d (%v), %v", n, shelf.Keys(), err)
	}
}
