package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// Of sdk-guest/go/README.md.

//lint:file-ignore SA4006 the page shows the calls, not what becomes of their errors

//nolint:ineffassign,staticcheck // the page shows the calls, not what becomes of their errors
func waits(ctx *weft.Context[weft.Untyped], _ StartEvent) error {
	answer, err := weft.Wait[HumanResponseEvent](ctx,
		weft.For("manager"), // a name, for people and for retries
		weft.Ask(InputRequiredEvent{Prefix: "approve?"}), // goes to the stream, once
		weft.Where("role", "manager"), weft.Timeout(24*time.Hour))
	err = ctx.Sleep(time.Hour)
	_ = answer
	return err
}

func children(ctx *weft.Context[weft.Untyped], items []string) error {
	results, err := weft.Run[[]Result](ctx, "accumulator", Order{Items: items}, weft.SameSession())
	_ = results
	return err
}

//nolint:ineffassign,staticcheck // the page shows the calls, not what becomes of their errors
func resources(ctx *weft.Context[weft.Untyped], payload, anything any) error {
	answer, err := ctx.HTTP("crm").Get("customers/7")    // asked for by weft.Resource{Name: "crm", Kind: "http"}
	err = ctx.Call("crm", "request", payload, &anything) // a resource of any kind
	_ = answer
	return err
}

var policy = weft.Step("transfer", transfer,
	weft.Retry(
		weft.OnCodes("busy", "timeout"), weft.Not(weft.OnMessage("quota")), // both must hold
		weft.ExponentialJitter(time.Second, 2, time.Minute, time.Second),
		// whichever comes first:
		weft.Attempts(5), weft.GiveUpAfter(time.Hour)))

// They are compiled, and not run.
var _ = []any{waits, children, resources, policy}
