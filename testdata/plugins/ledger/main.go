// Ledger is a workflow for tests of atomic steps: it moves money between accounts,
// and must not lose any, whatever runs beside or fails in the middle.
package main

import (
	"fmt"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says how many transfers to make between how many accounts.
type StartEvent struct {
	weft.Start
	Accounts  int `min:"2"`
	Transfers int `min:"0"`
	Fail      int `min:"0" default:"0" doc:"every so many transfers fail after they have moved half of it; 0: none"`
}

// TransferEvent moves one coin.
type TransferEvent struct{ N, From, To, Fail int }

// MovedEvent ends a branch: its number is that of the transfer, -1 for what a
// transfer sent, -2 for one that bounced.
type MovedEvent struct{ N int }

// CountEvent is what a transfer sends.
type CountEvent struct{ N int }

// NoteEvent is on the stream for each transfer that was made.
type NoteEvent struct{ N int }

// State has the balances, and the numbers of the transfers that were made.
type State struct {
	Balances []int
	Made     []int
	Sent     int
}

// Result is what is there in the end.
type Result struct {
	Balances            []int
	Made, Sent, Bounced int
}

type context = weft.Context[State]

func open(ctx *context, ev StartEvent) ([]TransferEvent, error) {
	if err := ctx.Edit(func(s *State) error {
		*s = State{Balances: make([]int, ev.Accounts), Made: []int{}}
		for i := range s.Balances {
			s.Balances[i] = 100
		}
		return nil
	}); err != nil {
		return nil, err
	}
	out := make([]TransferEvent, ev.Transfers)
	for n := range out {
		out[n] = TransferEvent{N: n, From: n % ev.Accounts, To: (n*7 + 1) % ev.Accounts}
		if ev.Fail > 0 && n%ev.Fail == 0 {
			out[n].Fail = 1
		}
	}
	return out, nil
}

// transfer reads and writes the accounts call by call: only its being atomic keeps
// the sum.
func transfer(ctx *context, ev TransferEvent) (MovedEvent, error) {
	path := func(account int) string { return fmt.Sprintf("balances.%d", account) }
	var from, to int
	if err := ctx.Get(path(ev.From), &from); err != nil {
		return MovedEvent{}, err
	}
	if err := ctx.Set(path(ev.From), from-1); err != nil {
		return MovedEvent{}, err
	}
	if err := ctx.Stream(NoteEvent{ev.N}); err != nil {
		return MovedEvent{}, err
	}
	if err := ctx.Send(CountEvent{ev.N}); err != nil {
		return MovedEvent{}, err
	}
	if ev.Fail > 0 {
		return MovedEvent{}, weft.Errorf("bounced", "transfer %d bounces", ev.N)
	}
	if err := ctx.Get(path(ev.To), &to); err != nil {
		return MovedEvent{}, err
	}
	if err := ctx.Set(path(ev.To), to+1); err != nil {
		return MovedEvent{}, err
	}
	if _, err := ctx.Append("made", ev.N); err != nil {
		return MovedEvent{}, err
	}
	return MovedEvent{ev.N}, nil
}

func count(ctx *context, _ CountEvent) (MovedEvent, error) {
	_, err := ctx.Increment("sent", 1)
	return MovedEvent{-1}, err
}

func bounce(_ *context, _ weft.StepFailed) (MovedEvent, error) { return MovedEvent{-2}, nil }

func closing(ctx *context, all []MovedEvent) (weft.Stop, error) {
	s, err := ctx.State()
	if err != nil {
		return weft.Stop{}, err
	}
	r := Result{Balances: s.Balances, Made: len(s.Made), Sent: s.Sent}
	for _, ev := range all {
		if ev.N == -2 {
			r.Bounced++
		}
	}
	return weft.Result(r), nil
}

func init() {
	weft.Define("ledger",
		weft.Timeout(0),
		weft.Step("open", open),
		weft.Step("transfer", transfer, weft.Atomic(), weft.Workers(8), weft.Emits(MovedEvent{}, CountEvent{}), weft.Streams(NoteEvent{})),
		weft.Step("count", count),
		weft.Step("bounce", bounce, weft.Catches("transfer"), weft.MaxRecoveries(1)),
		weft.Step("close", closing))
}

func main() {}
