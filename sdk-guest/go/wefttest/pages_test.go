package wefttest_test

import (
	"fmt"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// HumanResponseEvent answers.
type HumanResponseEvent struct {
	weft.HumanResponse
	Approved bool
}

// What sdk-guest/go/README.md shows. It is compiled, and not run.
//
//nolint:ineffassign // the page shows calls, not what becomes of their errors
func ExampleNewSession_readme() {
	session := wefttest.NewSession(
		wefttest.Child("pay", func(p Payment) (string, error) { return "paid", nil }), // stands for a workflow
		wefttest.Resource("crm", func(_ string, r weft.HTTPRequest) (any, error) { // and for a resource
			return weft.HTTPResponse{Status: 200}, nil
		}))
	run, err := session.Run(OrderEvent{Item: "tea"})   // until it ends or waits for the test
	err = run.Send(HumanResponseEvent{Approved: true}) // answers a wait; run.Waiting() names those that are open
	fmt.Println(run.Result, run.Stream, run.Log, session.State())
	fmt.Println(err)
}
