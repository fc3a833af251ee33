package weft_test

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// The examples below are steps: they compile here, and a host runs them. Package
// wefttest has examples that run.

type (
	// Cart is a state.
	Cart struct {
		Items []string
		Total int
	}
	// OrderEvent begins each of the steps.
	OrderEvent struct {
		weft.Start
		Item  string
		Price int
	}
	// ApprovalEvent is what people answer.
	ApprovalEvent struct {
		weft.HumanResponse
		Role     string
		Approved bool
	}
	// QuestionEvent asks them.
	QuestionEvent struct {
		weft.InputRequired
		Prefix string
	}
	// PackedEvent and BilledEvent are two halves of an order.
	PackedEvent struct{ Parcel string }
	// BilledEvent is the other half.
	BilledEvent struct{ Bill string }
)

// Reading, changing and writing, as if nobody else did: an error changes nothing.
func ExampleContext_Edit() {
	weft.Define("shop", weft.Step("add", func(ctx *weft.Context[Cart], ev OrderEvent) (weft.Stop, error) {
		err := ctx.Edit(func(cart *Cart) error {
			if len(cart.Items) == 10 {
				return weft.Errorf("cart_full", "no room for %s", ev.Item)
			}
			cart.Items = append(cart.Items, ev.Item)
			cart.Total += ev.Price
			return nil
		})
		return weft.Result(ev.Item), err
	}))
}

// Single values and paths have a short way: one call, no read.
func ExampleContext_Increment() {
	weft.Define("shop", weft.Step("add", func(ctx *weft.Context[Cart], ev OrderEvent) (weft.Stop, error) {
		if _, err := ctx.Append("items", ev.Item); err != nil {
			return weft.Stop{}, err
		}
		total, err := ctx.Increment("total", int64(ev.Price))
		return weft.Result(total), err
	}))
}

// Values at paths; "items.-1" is the last item.
func ExampleContext_Get() {
	weft.Define("shop", weft.Step("last", func(ctx *weft.Context[Cart], _ OrderEvent) (weft.Stop, error) {
		var item, coupon string
		if err := ctx.Get("items.-1", &item); err != nil {
			return weft.Stop{}, err
		}
		err := ctx.GetOr("coupon", &coupon, "none")
		return weft.Result(item + ", coupon " + coupon), err
	}))
}

// Several edits together, or none of them.
func ExampleContext_Batch() {
	weft.Define("shop", weft.Step("sell", func(ctx *weft.Context[Cart], ev OrderEvent) (weft.Stop, error) {
		_, err := ctx.Batch().Test("open", true).Append("items", ev.Item).Increment("total", int64(ev.Price)).Do()
		if weft.CodeOf(err) == weft.CodeConflict {
			return weft.Result("closed"), nil
		}
		return weft.Result("sold"), err
	}))
}

// A person is asked, and answers within a day; nothing is in memory meanwhile.
func ExampleWait() {
	weft.Define("approve", weft.Timeout(0),
		weft.Step("ask", func(ctx *weft.Context[weft.Untyped], ev OrderEvent) (weft.Stop, error) {
			answer, err := weft.Wait[ApprovalEvent](ctx,
				weft.For("manager"),
				weft.Ask(QuestionEvent{Prefix: "buy " + ev.Item + "?"}),
				weft.Where("role", "manager"),
				weft.Timeout(24*time.Hour))
			if weft.CodeOf(err) == weft.CodeTimeout {
				return weft.Result("nobody answered"), nil
			}
			return weft.Result(answer.Approved), err
		}, weft.Waits(ApprovalEvent{}), weft.Streams(QuestionEvent{})))
}

// Another workflow as a call; a retry of the step does not run it again.
func ExampleRun() {
	weft.Define("order", weft.Step("pay", func(ctx *weft.Context[weft.Untyped], ev OrderEvent) (weft.Stop, error) {
		receipt, err := weft.Run[string](ctx, "payment", map[string]any{"amount": ev.Price}, weft.As("payment"))
		return weft.Result(receipt), err
	}))
}

// A resource that the operator grants.
func ExampleContext_HTTP() {
	weft.Define("customers",
		weft.Resource{Name: "crm", Kind: "http", Doc: "our customers"},
		weft.Step("look_up", func(ctx *weft.Context[weft.Untyped], ev OrderEvent) (weft.Stop, error) {
			answer, err := ctx.HTTP("crm").Get("customers/" + ev.Item)
			return weft.Result(string(answer.Body)), err
		}))
}

// Two events in any order; until both are there the step gives nothing.
func ExampleContext_Collect() {
	weft.Define("order",
		weft.Step("begin", func(ctx *weft.Context[weft.Untyped], ev OrderEvent) (PackedEvent, error) {
			return PackedEvent{ev.Item}, ctx.Send(BilledEvent{"7"})
		}, weft.Emits(BilledEvent{})),
		weft.Step("ship", func(ctx *weft.Context[weft.Untyped], _ weft.Event) (*weft.Stop, error) {
			var packed PackedEvent
			var billed BilledEvent
			complete, err := ctx.Collect(&packed, &billed)
			if err != nil || !complete {
				return nil, err
			}
			return &weft.Stop{Result: packed.Parcel + " " + billed.Bill}, nil
		}, weft.Accepts(PackedEvent{}, BilledEvent{})))
}

// A step that is tried again, and one that gets what has failed for good.
func ExampleRetry() {
	weft.Define("call",
		weft.Step("call", func(*weft.Context[weft.Untyped], OrderEvent) (weft.Stop, error) {
			return weft.Stop{}, weft.Errorf("busy", "call again")
		}, weft.Retry(weft.OnCodes("busy"), weft.Exponential(time.Second, 2, time.Minute), weft.Attempts(5))),
		weft.Step("rescue", func(_ *weft.Context[weft.Untyped], ev weft.StepFailed) (weft.Stop, error) {
			return weft.Result(ev.Exception.ExceptionMessage), nil
		}, weft.Catches("call")))
}

// Edits, sends and stream writes take effect together, or not at all.
func ExampleAtomic() {
	weft.Define("transfer", weft.Step("transfer", func(ctx *weft.Context[weft.Untyped], ev OrderEvent) (weft.Stop, error) {
		if _, err := ctx.Increment("here", int64(-ev.Price)); err != nil {
			return weft.Stop{}, err
		}
		there, err := ctx.Increment("there", int64(ev.Price))
		return weft.Result(there), err
	}, weft.Atomic()))
}

// A function that flows call, as shop.add_item.
func ExampleFunction() {
	weft.Define("shop", weft.Function("add_item", func(ctx *weft.Context[Cart], in weft.StepInput) (weft.StepOutput, error) {
		_, err := ctx.Append("items", in.Text())
		return weft.Content("Added " + in.Text()), err
	}))
}
