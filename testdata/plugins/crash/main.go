// Crash is a workflow for tests that stop the host in the middle: it makes one
// effect of every kind, computes for a while and makes another, so that a test
// can tell which effects were kept, lost or doubled.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent says how long to compute, where, and how to end.
type StartEvent struct {
	weft.Start
	Key    string
	Spins  int  `min:"0" doc:"rounds of arithmetic"`
	Region bool `default:"false" doc:"compute while an edit is open"`
	Hold   bool `default:"false" doc:"wait for a HumanResponseEvent before the end"`
}

// SideEvent leads to a second step.
type SideEvent struct{ Key string }

// ProgressEvent goes to the stream.
type ProgressEvent struct {
	Phase int
	Seen  int `doc:"how many log entries the step read at its start"`
}

// InputRequiredEvent is given instead of the end when the run is to hold.
type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

// HumanResponseEvent ends a run that holds.
type HumanResponseEvent struct{ weft.HumanResponse }

// Entry is an entry of the log in the state.
type Entry struct {
	Key   string
	Phase int
}

// Report is the run's result: what the first read gave, and the counters.
type Report struct {
	Read    []Entry
	A, B, C int64
}

// State counts the effects.
type State struct {
	Log     []Entry
	Sides   []string
	A, B, C int64
	Region  int
	Held    *Report
}

type context = weft.Context[State]

func work(ctx *context, ev StartEvent) (weft.Event, error) {
	report, err := before(ctx, ev)
	if err != nil {
		return nil, err
	}
	if err := compute(ctx, ev); err != nil {
		return nil, err
	}
	if report.C, err = ctx.Increment("c", 1); err != nil {
		return nil, err
	}
	if ev.Hold {
		return InputRequiredEvent{Prefix: "Go on?"}, ctx.Set("held", report)
	}
	return weft.Result(report), nil
}

// before makes an effect of every kind.
func before(ctx *context, ev StartEvent) (r Report, err error) {
	if err = ctx.GetOr("log", &r.Read, []Entry{}); err != nil {
		return r, err
	}
	if _, err = ctx.Append("log", Entry{ev.Key, 1}); err != nil {
		return r, err
	}
	if r.A, err = ctx.Increment("a", 1); err != nil {
		return r, err
	}
	if err = ctx.Send(SideEvent{ev.Key}); err != nil {
		return r, err
	}
	if err = ctx.Stream(ProgressEvent{1, len(r.Read)}); err != nil {
		return r, err
	}
	r.B, err = ctx.Increment("b", 1)
	return r, err
}

func compute(ctx *context, ev StartEvent) error {
	if !ev.Region {
		spin(ev.Spins)
		return nil
	}
	return weft.EditAt(ctx, "region", func(n *int) error {
		spin(ev.Spins)
		*n++
		return nil
	})
}

var sink uint64 // keeps the compiler from dropping the loop

// spin takes some nanoseconds a round. It does not look at the clock, which
// stands still while a step computes.
func spin(rounds int) {
	x := sink | 1
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
}

// side is there for its effect only.
func side(ctx *context, ev SideEvent) (weft.Nothing, error) {
	_, err := ctx.Append("sides", ev.Key)
	return weft.Nothing{}, err
}

func release(ctx *context, _ HumanResponseEvent) (weft.Stop, error) {
	s, err := ctx.State()
	return weft.Result(s.Held), err
}

func init() {
	weft.Define("crash",
		weft.Step("work", work,
			weft.Emits(weft.Stop{}, SideEvent{}, InputRequiredEvent{}), weft.Streams(ProgressEvent{})),
		weft.Step("side", side),
		weft.Step("release", release))
}

func main() {}
