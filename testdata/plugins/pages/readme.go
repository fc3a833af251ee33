package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// Of README.md.

func approve(ctx *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	answer, err := weft.Wait[HumanResponseEvent](ctx, weft.Ask(InputRequiredEvent{Prefix: "approve?"}), weft.Where("role", "manager"))
	return weft.Result(answer.Approved), err
}

func halves(ctx *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	items := ev.Items
	results, err := weft.Run[[]Result](ctx, "accumulator", StartEvent{Items: items}, weft.SameSession())
	return weft.Result(results), err
}

func tidy(ctx *weft.Context[weft.Untyped], ev weft.StepFailed) (weft.Nothing, error) {
	return weft.Nothing{}, nil
}

func transfer(ctx *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	return weft.Result("done"), nil
}

func defineReadme() {
	weft.Define("readme",
		weft.Step("approve", approve, weft.Waits(HumanResponseEvent{}), weft.Streams(InputRequiredEvent{})),
		weft.Step("halves", halves),
		weft.Step("tidy", tidy, weft.Catches(weft.Cancelled, weft.TimedOut)),
		weft.Step("transfer", transfer, weft.Atomic()))
}

// They are compiled, and not run.
var _ = []any{defineReadme}
