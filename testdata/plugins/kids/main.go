// Kids is a workflow for tests of child workflows: it runs itself as a child, in the
// way that its mode says.
package main

import (
	"errors"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says what to do. The modes after "many" are those of the children.
type StartEvent struct {
	weft.Start
	Mode string `enum:"ask,named,same,fail,retry,stream,deep,many,human,boom,count,progress"`
	N    int    `default:"0" min:"0"`
}

// InputRequiredEvent asks a person, in the mode human.
type InputRequiredEvent struct {
	weft.InputRequired
	Prefix string
}

// HumanResponseEvent is the answer.
type HumanResponseEvent struct {
	weft.HumanResponse
	Response weft.Value
}

// ProgressEvent is one of those that the mode progress writes to the stream.
type ProgressEvent struct{ I int }

// State belongs to the session, which the modes same and retry share with their child.
type State struct {
	Children int `default:"0" doc:"how many children of the mode count have run"`
}

// Failure is the result of the mode fail.
type Failure struct{ Code, Message string }

// Retried is the result of the mode retry.
type Retried struct{ Attempts, Child int }

type context = weft.Context[State]

func start(ctx *context, ev StartEvent) (weft.Event, error) {
	switch ev.Mode {
	case "human":
		return InputRequiredEvent{Prefix: "What now?"}, nil
	case "boom":
		return nil, weft.Errorf("boom", "asked to fail")
	case "progress":
		for i := range ev.N {
			if err := ctx.Stream(ProgressEvent{i}); err != nil {
				return nil, err
			}
		}
		return weft.Result(ev.N), nil
	}
	result, err := parent(ctx, ev)
	return weft.Result(result), err
}

// parent gives the result of a mode that is not a person's.
func parent(ctx *context, ev StartEvent) (any, error) {
	switch ev.Mode {
	case "ask":
		return run[any](ctx, "human", 0)
	case "named":
		return run[any](ctx, "human", 0, weft.InSession("shared-kids"))
	case "same":
		return run[any](ctx, "human", 0, weft.SameSession())
	case "fail":
		_, err := run[any](ctx, "boom", 0)
		var failed *weft.Error
		if !errors.As(err, &failed) {
			return nil, weft.Errorf("mode", "the child did not fail: %v", err)
		}
		return Failure{failed.Code, failed.Message}, nil
	case "retry":
		return retry(ctx)
	case "stream":
		return run[int](ctx, "progress", ev.N, weft.WithStream())
	case "count":
		return ctx.Increment("children", 1)
	case "deep":
		if ev.N == 0 {
			return 0, nil
		}
		depth, err := run[int](ctx, "deep", ev.N-1)
		return depth + 1, err
	case "many":
		sum := 0
		for range ev.N {
			one, err := run[int](ctx, "count", 0) // 1, as it is the first in its session
			if err != nil {
				return nil, err
			}
			sum += one
		}
		return sum, nil
	}
	return nil, weft.Errorf("mode", "there is no mode %q", ev.Mode)
}

// retry fails twice after its child has ended, which all attempts have in common.
func retry(ctx *context) (any, error) {
	child, err := run[int](ctx, "count", 0, weft.As("once"), weft.SameSession())
	if err != nil {
		return nil, err
	}
	attempt := int(ctx.RunInfo().Attempt)
	if attempt <= 2 {
		return nil, weft.Errorf("again", "attempt %d fails", attempt)
	}
	return Retried{attempt, child}, nil
}

func run[R any](ctx *context, mode string, n int, options ...weft.RunOption) (R, error) {
	return weft.Run[R](ctx, "kids", StartEvent{Mode: mode, N: n}, options...)
}

func answer(_ *context, ev HumanResponseEvent) (weft.Stop, error) {
	return weft.Result(ev.Response), nil
}

func init() {
	weft.Define("kids",
		weft.Timeout(0), // people take their time
		weft.Step("start", start,
			weft.Emits(weft.Stop{}, InputRequiredEvent{}),
			weft.Streams(ProgressEvent{}),
			weft.Retry(weft.OnCodes("again"), weft.Fixed(time.Millisecond), weft.Attempts(3))),
		weft.Step("answer", answer))
}

func main() {}
