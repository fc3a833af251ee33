// Tidy is a workflow for tests of what follows the end of a run: it takes
// something, waits for ever, and gives it back when it is cancelled or times out.
package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says what to take; without a name the run only shows the state.
type StartEvent struct {
	weft.Start
	Name  string        `default:""`
	Sleep time.Duration `default:"0" doc:"nanoseconds to sleep in the middle of the clean-up"`
}

// HumanResponseEvent lets a run end by itself.
type HumanResponseEvent struct{ weft.HumanResponse }

// HeldEvent, TidyingEvent and TidiedEvent go to the stream.
type (
	HeldEvent    struct{ Name string }
	TidyingEvent struct {
		Cause, Message string
		Seconds        float64
	}
	TidiedEvent struct{ Names []string }
)

// ReleasedEvent leads to the second step of the clean-up.
type ReleasedEvent struct{ Names []string }

// State has what is held, and counts the clean-ups that began and that ended.
type State struct {
	Held         []string
	Sleep        time.Duration
	Begun, Ended int64
}

type context = weft.Context[State]

func hold(ctx *context, ev StartEvent) (weft.Stop, error) {
	if ev.Name == "" {
		s, err := ctx.State()
		return weft.Result(s), err
	}
	err := ctx.Edit(func(s *State) error {
		s.Held, s.Sleep = append(s.Held, ev.Name), ev.Sleep
		return nil
	})
	if err == nil {
		err = ctx.Stream(HeldEvent{ev.Name})
	}
	if err == nil {
		_, err = weft.Wait[HumanResponseEvent](ctx)
	}
	return weft.Result("released"), err
}

// tidy makes an effect, sleeps, and makes others.
func tidy(ctx *context, ev weft.StepFailed) (r ReleasedEvent, err error) {
	if _, err = ctx.Increment("begun", 1); err != nil {
		return r, err
	}
	if err = ctx.Stream(TidyingEvent{ev.Exception.ExceptionType, ev.Exception.ExceptionMessage, ev.ElapsedSeconds}); err != nil {
		return r, err
	}
	var sleep time.Duration
	if err = ctx.Get("sleep", &sleep); err != nil {
		return r, err
	}
	if err = ctx.Sleep(sleep); err != nil {
		return r, err
	}
	err = ctx.Edit(func(s *State) error {
		r.Names, s.Held = s.Held, []string{}
		s.Ended++
		return nil
	})
	return r, err
}

// tell is the clean-up's second step.
func tell(ctx *context, ev ReleasedEvent) (weft.Nothing, error) {
	return weft.Nothing{}, ctx.Stream(TidiedEvent(ev))
}

func init() {
	weft.Define("tidy",
		weft.Step("hold", hold, weft.Waits(HumanResponseEvent{}), weft.Streams(HeldEvent{})),
		weft.Step("tidy", tidy, weft.Catches(weft.Cancelled, weft.TimedOut), weft.Streams(TidyingEvent{})),
		weft.Step("tell", tell, weft.Streams(TidiedEvent{})),
		weft.State(State{Held: []string{}}))
}

func main() {}
