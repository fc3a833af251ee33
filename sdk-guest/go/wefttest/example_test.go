package wefttest_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// OrderEvent starts an order.
type OrderEvent struct {
	weft.Start
	Item  string
	Price int
}

// PaidEvent says what was paid.
type PaidEvent struct{ Receipt string }

// Payment is what the workflow pay starts with. It need not be an event here.
type Payment struct{ Amount int }

// Shop is the session's state.
type Shop struct {
	Sold   int
	Ledger []string
}

// order runs another workflow, and waits for its result for as long as it takes.
func order(ctx *weft.Context[Shop], ev OrderEvent) (PaidEvent, error) {
	receipt, err := weft.Run[string](ctx, "pay", Payment{ev.Price}, weft.As("payment"))
	if weft.CodeOf(err) == "declined" {
		err = weft.Errorf("declined", "%s is not sold: %v", ev.Item, err).Final()
	}
	return PaidEvent{receipt}, err
}

// book is atomic: it never counts a sale that is not in the ledger.
func book(ctx *weft.Context[Shop], ev PaidEvent) (weft.Stop, error) {
	if _, err := ctx.Append("ledger", ev.Receipt); err != nil {
		return weft.Stop{}, err
	}
	sold, err := ctx.Increment("sold", 1)
	return weft.Result(sold), err
}

func init() {
	weft.Define("order",
		weft.Step("order", order, weft.Retry(
			weft.Not(weft.OnCodes("declined")),
			weft.Exponential(time.Second, 2, time.Minute),
			weft.Attempts(5), weft.GiveUpAfter(time.Hour))),
		weft.Step("book", book, weft.Atomic()))
}

// A workflow that runs another one, which a function stands for.
func ExampleChild() {
	session := wefttest.NewSession(wefttest.Child("pay", func(p Payment) (string, error) {
		if p.Amount > 100 {
			return "", &wefttest.Failure{Code: "declined", Message: "that is too much"}
		}
		return fmt.Sprintf("receipt for %d", p.Amount), nil
	}))
	for _, ev := range []OrderEvent{{Item: "tea", Price: 3}, {Item: "a ring", Price: 300}} {
		run, err := session.Run(ev)
		if failure := (*wefttest.Failure)(nil); errors.As(err, &failure) {
			fmt.Println(failure.Code)
			continue
		}
		fmt.Println(run.Result)
	}
	fmt.Println(session.State())
	// Output:
	// 1
	// declined
	// map[ledger:[receipt for 3] sold:1]
}

// One step alone, on an event and a state that the test gives.
func ExampleSession_Step() {
	session := wefttest.NewSession(wefttest.State(Shop{Sold: 7, Ledger: []string{"old"}}))
	run, err := session.Step("book", PaidEvent{Receipt: "receipt for 3"})
	fmt.Println(run.Emitted, err)
	for _, edit := range run.Edits {
		fmt.Println(edit.Op, edit.Path, edit.Value)
	}
	fmt.Println(session.State())
	// Output:
	// [{StopEvent map[result:8]}] <nil>
	// append ledger receipt for 3
	// increment sold 1
	// map[ledger:[old receipt for 3] sold:8]
}
