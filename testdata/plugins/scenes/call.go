package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// call makes the calls that may take long.
func call(ctx *context, ev CallEvent) (weft.Stop, error) {
	result, err := result(ctx, ev)
	return weft.Result(result), err
}

func result(ctx *context, ev CallEvent) (any, error) {
	switch ev.What {
	case "approve":
		return approve(ctx, ev)
	case "ticks":
		return ticks(ctx, ev.N)
	case "assume":
		answer, err := weft.Wait[HumanResponseEvent](ctx, weft.Where("role", "manager"))
		return answer.Approved, err
	case "named":
		return ticks(ctx, ev.N, weft.For("tick"))
	case "patience":
		_, err := weft.Wait[TickEvent](ctx, weft.Timeout(time.Duration(ev.N)))
		return weft.CodeOf(err), nil
	case "nap":
		before := ctx.Now()
		err := ctx.Sleep(time.Duration(ev.N))
		return ctx.Now().Sub(before) >= time.Duration(ev.N), err
	case "once":
		return once(ctx)
	case "children":
		return children(ctx)
	case "fetch":
		answer, err := ctx.HTTP("web").Do(weft.HTTPRequest{Method: "POST", Path: ev.Text, Query: map[string]string{"q": "a b"},
			Headers: map[string]string{"X-Scene": "fetch"}, Body: []byte("tea"), ExpectSuccess: ev.N > 0})
		return []any{answer.Status, answer.Header("X-Answer"), string(answer.Body)}, err
	case "keep":
		return keep(ctx)
	case "tally":
		return tally(ctx, ev.Text)
	case "edits":
		return edits(ctx)
	case "regions":
		return regions(ctx)
	case "read":
		return read(ctx)
	case "print":
		return say(ctx, ev)
	case "panic":
		return nil, fail(ctx, ev.Text)
	case "count":
		return ctx.Increment("count", ev.N)
	case "show":
		return nil, ctx.Stream(ShownEvent{ev.Text})
	case "flaky":
		if attempt := int64(ctx.RunInfo().Attempt); attempt <= ev.N {
			return nil, weft.Errorf("flaky", "%s at attempt %d", ev.Text, attempt)
		}
		return ctx.RunInfo().Attempt, nil
	}
	return nil, weft.Errorf("asked", "%s", ev.Text)
}

// approve asks people one after the other.
func approve(ctx *context, ev CallEvent) (any, error) {
	asked, err := ctx.Increment("count", 1) // once, however often it waits
	if err != nil {
		return nil, err
	}
	approved := true
	for _, role := range []string{"manager", "finance"} {
		answer, err := weft.Wait[HumanResponseEvent](ctx, weft.For(role), weft.Where("role", role),
			weft.Ask(InputRequiredEvent{Prefix: role + ", approve " + ev.Text + "?"}))
		if err != nil {
			return nil, err
		}
		approved = approved && answer.Approved
	}
	return []any{approved, asked}, nil
}

func ticks(ctx *context, n int64, options ...weft.WaitOption) (any, error) {
	numbers := []int64{}
	for range n {
		tick, err := weft.Wait[TickEvent](ctx, options...)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, tick.N)
	}
	return numbers, nil
}

// once begins a child, fails, and has the child's result when it is tried again.
func once(ctx *context) (any, error) {
	count, err := weft.Run[int64](ctx, ctx.RunInfo().Workflow, map[string]any{"what": "count", "n": 5}, weft.SameSession(), weft.As("first"))
	if err != nil {
		return nil, err
	}
	attempt := ctx.RunInfo().Attempt
	if attempt < 3 {
		return nil, weft.Errorf("flaky", "after the child")
	}
	return []any{count, attempt}, nil
}

// children runs children of all sorts.
func children(ctx *context) (any, error) {
	workflow := ctx.RunInfo().Workflow
	var all []any
	for _, options := range [][]weft.RunOption{{}, {}, {weft.SameSession()}, {weft.SameSession()}, {weft.InSession(ctx.RunInfo().RunID)}} {
		count, err := weft.Run[int64](ctx, workflow, StartEvent{What: "count", N: 1}, options...)
		if err != nil {
			return nil, err
		}
		all = append(all, count)
	}
	for _, options := range [][]weft.RunOption{{}, {weft.WithStream()}} {
		if _, err := weft.Run[any](ctx, workflow, StartEvent{What: "show", Text: "shown by a child"}, options...); err != nil {
			return nil, err
		}
	}
	_, failed := weft.Run[any](ctx, workflow, StartEvent{What: "fail", Text: "by a child"})
	_, nobody := weft.Run[any](ctx, "nobody", nil)
	_, wrong := weft.Run[any](ctx, workflow, nil) // without what it must have
	for _, err := range []error{failed, nobody, wrong} {
		all = append(all, weft.CodeOf(err))
	}
	return all, nil
}
