package main

import (
	"errors"
	"strconv"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// notes are what calls gave: their values, or the codes of their errors.
type notes []any

func (n *notes) add(v any, err error) {
	if err != nil {
		v = weft.CodeOf(err)
	}
	*n = append(*n, v)
}

// edits makes each kind of edit, well and badly, alone and in batches.
func edits(ctx *context) (any, error) {
	var n notes
	n.add(nil, ctx.Set("m.a.b", 1))
	n.add(nil, ctx.Set("log.7", "x"))
	n.add(nil, ctx.Set("count", "many")) // the schema wants a number
	n.add(ctx.Append("log", "one"))
	n.add(ctx.Append("m.list", []any{nil, true, 1.5}))
	n.add(ctx.Append("count", "x"))
	n.add(ctx.Increment("count", 5))
	n.add(ctx.Increment("m.a", 1))
	n.add(ctx.IncrementFloat("m.rate", 0.5))
	n.add(nil, ctx.Merge("m", map[string]any{"a": map[string]any{"c": "\u00e4"}}))
	n.add(nil, ctx.Test("m.a.c", "\u00e4"))
	n.add(nil, ctx.Test("m.a.c", "other"))
	n.add(ctx.Delete("m.list.-1"))
	n.add(ctx.Delete("m.list.-1"))
	results, err := ctx.Batch().Test("count", 5).Set("m.a", 7).Increment("count", -6).Append("log", "two").
		Delete("m.rate").Merge("m", map[string]int{"z": 1}).IncrementFloat("m.f", 0.25).Do()
	n.add(results, err)
	results, err = ctx.Batch().Set("m.a", 100).Test("count", 0).Do()
	n.add(results, err)
	var whole weft.Value
	n.add(nil, ctx.Get("", &whole))
	n = append(n, whole)
	n.add(nil, ctx.Clear())
	s, err := ctx.State()
	n.add(s, err)
	return n, nil
}

// regions edits as if alone, and gives edits up.
func regions(ctx *context) (any, error) {
	var n notes
	n.add(nil, ctx.Edit(func(s *State) error {
		s.Count, s.Log = 3, append(s.Log, "kept")
		n.add(nil, ctx.Set("count", 9)) // only reads are allowed here
		var seen int64
		n.add(nil, ctx.Get("count", &seen)) // what is committed
		n = append(n, seen)
		return nil
	}))
	n.add(nil, ctx.Edit(func(s *State) error {
		s.Count = 100
		return errors.New("given up")
	}))
	n.add(nil, weft.EditAt(ctx, "log", func(log *[]string) error {
		*log = append(*log, "at a path")
		return nil
	}))
	n.add(nil, weft.EditAt(ctx, "nothing", func(*string) error { return nil }))
	s, err := ctx.State()
	n.add(s, err)
	return n, nil
}

// read asks for what is not the state's.
func read(ctx *context) (any, error) {
	var n notes
	var v any
	n.add(nil, ctx.Get("nothing.at.all", &v))
	n.add(nil, ctx.GetOr("nothing", &v, []int{1}))
	n = append(n, v)
	n.add(nil, ctx.GetOr("count", &v, 9))
	n = append(n, v)
	random, err := ctx.Random(16)
	n.add(len(random), err)
	_, err = ctx.Random(5000)
	n.add(nil, err)
	info := ctx.RunInfo()
	n = append(n, info.Attempt, info.Invocation, info.Tenant, info.LastError == nil, !ctx.Now().Before(info.Started()))
	var config struct {
		Model string `default:"none"`
	}
	n.add(nil, ctx.Config(&config))
	return append(n, config.Model), nil
}

// say logs at all levels.
func say(ctx *context, ev CallEvent) (any, error) {
	ctx.Debug(ev.Text)
	ctx.Info(ev.Text)
	ctx.Warn(ev.Text)
	ctx.Error(ev.Text)
	ctx.Log(weft.LevelInfo, ev.Text, "n", ev.N, "list", []int64{1, 2})
	return nil, ctx.Stream(ShownEvent{ev.Text + strconv.FormatInt(ev.N, 10)})
}

var (
	none  map[string]int
	empty []int64
)

// fail fails in the ways in which code does.
func fail(ctx *context, how string) error {
	if _, err := ctx.Increment("count", 1); err != nil { // it stands
		return err
	}
	switch how {
	case "map":
		none[how] = 1
	case "index":
		empty[len(how)]++
	case "zero":
		empty = append(empty, int64(len(how))/int64(len(empty)))
	case "wrapped":
		return wrapped{weft.Errorf("inside", "the cause")}
	}
	panic("boom")
}

// wrapped is an error around another.
type wrapped struct{ cause error }

func (w wrapped) Error() string { return "around: " + w.cause.Error() }

func (w wrapped) Unwrap() error { return w.cause }
