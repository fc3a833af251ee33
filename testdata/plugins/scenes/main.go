// Scenes does one of many things that a step can do, so that the SDKs of several
// languages can be compared: sdk-guest/rust/testdata/scenes is the same in Rust.
package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says what to do.
type StartEvent struct {
	weft.Start
	What string
	N    int64  `default:"0"`
	Text string `default:""`
}

// CallEvent is something that calls do.
type CallEvent struct {
	What string
	N    int64
	Text string
}

// WorkEvent is something that happens as a whole.
type WorkEvent struct{ Fail bool }

// FragileEvent is something that fails.
type FragileEvent struct{ Text string }

// ItemEvent is measured.
type ItemEvent struct{ Name string }

// BoxEvent is an item with a size.
type BoxEvent struct {
	ItemEvent
	Size int64
}

// LeftEvent and RightEvent are collected.
type (
	LeftEvent  struct{ N int64 }
	RightEvent struct{ Text string }
)

// DoneEvent comes after work that succeeded.
type DoneEvent struct{}

// ShownEvent is for the stream.
type ShownEvent struct{ Text string }

// TickEvent is waited for.
type TickEvent struct{ N int64 }

// LoudTickEvent is a tick that comes with words.
type LoudTickEvent struct {
	TickEvent
	Text string
}

// ListenEvent begins a wait for ticks of all kinds.
type ListenEvent struct{}

// InputRequiredEvent asks a person.
type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

// HumanResponseEvent is a person's answer.
type HumanResponseEvent struct {
	weft.HumanResponse
	Role     string `default:"manager"`
	Approved bool
}

// State is the session's.
type State struct {
	Count int64
	Log   []string
}

type context = weft.Context[State]

func begin(ctx *context, ev StartEvent) (weft.Event, error) {
	switch ev.What {
	case "work":
		return WorkEvent{ev.N > 0}, nil
	case "fragile":
		return FragileEvent{ev.Text}, nil
	case "box":
		return BoxEvent{ItemEvent{ev.Text}, ev.N}, nil
	case "listen":
		return ListenEvent{}, nil
	case "pair":
		if err := ctx.SendTo("pair", LeftEvent{ev.N}); err != nil {
			return nil, err
		}
		return RightEvent{ev.Text}, nil
	case "fan":
		return FanEvent{ev.N, ev.Text}, nil
	case "nest":
		return NestEvent{ev.N}, nil
	case "deal":
		return DealEvent{ev.N}, nil
	case "join":
		return JoinEvent{ev.N, ev.Text}, nil
	}
	return CallEvent{ev.What, ev.N, ev.Text}, nil
}

// work shows as a whole or not at all.
func work(ctx *context, ev WorkEvent) (weft.Nothing, error) {
	err := ctx.Edit(func(s *State) error {
		s.Count += 10
		s.Log = append(s.Log, "worked")
		return nil
	})
	if err == nil {
		err = ctx.Stream(ShownEvent{"worked"})
	}
	if err == nil {
		err = ctx.Send(DoneEvent{})
	}
	if err != nil {
		return weft.Nothing{}, err
	}
	refused := weft.CodeOf(ctx.Sleep(time.Second))
	if ev.Fail {
		return weft.Nothing{}, weft.Errorf("undone", "a sleep is refused by %s", refused).Final()
	}
	return weft.Nothing{}, nil
}

func done(ctx *context, _ DoneEvent) (weft.Stop, error) {
	s, err := ctx.State()
	return weft.Result(s), err
}

func fragile(_ *context, ev FragileEvent) (weft.Stop, error) {
	return weft.Stop{}, weft.Errorf("fragile", "%s", ev.Text)
}

// Rescued is what is known of a failure.
type Rescued struct {
	Step, Code, Message string
	Attempts            uint64
	Input               weft.Value
	State               State
}

func rescue(ctx *context, ev weft.StepFailed) (weft.Stop, error) {
	s, err := ctx.State()
	return weft.Result(Rescued{ev.StepName, ev.Exception.ExceptionType, ev.Exception.ExceptionMessage, ev.Attempts, ev.InputEvent, s}), err
}

// clean runs when the run is cancelled.
func clean(ctx *context, ev weft.StepFailed) (weft.Nothing, error) {
	return weft.Nothing{}, ctx.Stream(ShownEvent{"cleaned: " + ev.StepName + ev.Exception.ExceptionType})
}

func measure(_ *context, ev ItemEvent) (weft.Stop, error) { return weft.Result(len(ev.Name)), nil }

func listen(ctx *context, _ ListenEvent) (weft.Stop, error) {
	tick, err := weft.Wait[TickEvent](ctx)
	return weft.Result(tick.N), err
}

// pair waits until both are there; what comes before is kept.
func pair(ctx *context, _ weft.Event) (weft.Event, error) {
	var left LeftEvent
	var right RightEvent
	complete, err := ctx.CollectIn("pair", &right, &left)
	if err != nil || !complete {
		return nil, err
	}
	return weft.Result([]any{left.N, right.Text}), nil
}

func init() {
	weft.Define(workflow,
		weft.Timeout(0),
		weft.Resource{Name: "web", Kind: "http", Optional: true},
		weft.Resource{Name: "shelf", Kind: "kv", Optional: true},
		weft.Step("begin", begin, weft.Emits(CallEvent{}, WorkEvent{}, FragileEvent{}, BoxEvent{}, ListenEvent{}, LeftEvent{}, RightEvent{},
			FanEvent{}, NestEvent{}, DealEvent{}, JoinEvent{})),
		weft.Step("pair", pair, weft.Accepts(LeftEvent{}, RightEvent{}), weft.Emits(weft.Stop{})),
		weft.Step("call", call, weft.Waits(HumanResponseEvent{}, TickEvent{}), weft.Streams(InputRequiredEvent{}, ShownEvent{}),
			weft.Retry(weft.Chain(weft.Fixed(time.Millisecond), weft.Sum(weft.Fixed(time.Millisecond), weft.RandomWait(0, time.Millisecond))),
				weft.AllOf(weft.OnCodes("flaky"), weft.Not(weft.OnMessage("final"))), weft.Attempts(4))),
		weft.Step("work", work, weft.Atomic(), weft.Emits(DoneEvent{}), weft.Streams(ShownEvent{})),
		weft.Step("done", done),
		weft.Step("fragile", fragile, weft.Retry(weft.Fixed(time.Millisecond), weft.AnyOf(weft.Attempts(2), weft.GiveUpAfter(time.Hour)))),
		weft.Step("rescue", rescue, weft.Catches("work", "fragile"), weft.MaxRecoveries(2)),
		weft.Step("clean", clean, weft.Catches(weft.Cancelled, weft.TimedOut), weft.Streams(ShownEvent{})),
		weft.Step("measure", measure, weft.AcceptSubtypes()),
		weft.Step("listen", listen, weft.Waits(TickEvent{}), weft.Streams(LoudTickEvent{}), weft.AcceptSubtypes()),
		weft.Step("fan", fan),
		weft.Step("nest", nest),
		weft.Step("deal", deal),
		weft.Step("both", both, weft.Emits(MoonEvent{})),
		weft.Step("part", part, weft.Workers(2), weft.Retry(weft.Fixed(time.Millisecond), weft.Attempts(2))),
		weft.Step("mend", mend, weft.Catches("part")),
		weft.Step("gather", gather),
		weft.Step("row", row),
		weft.Step("cells", cells),
		weft.Step("total", total),
		weft.Step("hand", hand, weft.Take(2)),
		weft.Step("sky", sky))
}

func main() {}
