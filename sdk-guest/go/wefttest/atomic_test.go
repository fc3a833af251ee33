package wefttest_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	. "github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// The effects of an atomic step become visible when it succeeds, or not at all.
func TestAtomic(t *testing.T) {
	boom := errors.New("boom")
	define(t,
		Step("begin", func(ctx *Context[tally], ev start) (first, error) {
			return first{I: ev.N}, ctx.Set("log", []string{"begun"})
		}),
		Step("work", func(ctx *Context[tally], ev first) (Nothing, error) {
			if err := ctx.Edit(func(s *tally) error { s.Count += 10; return nil }); err != nil {
				return Nothing{}, err
			}
			if n, err := ctx.Append("log", "worked"); err != nil || n != 2 {
				t.Errorf("its own edit is not seen: %d (%v)", n, err)
			}
			if s, err := ctx.State(); err != nil || s.Count != 10 || len(s.Log) != 2 {
				t.Errorf("its own edits are not seen: %+v (%v)", s, err)
			}
			if err := errors.Join(ctx.Stream(third{I: 1}), ctx.Send(second{I: 2})); err != nil {
				return Nothing{}, err
			}
			if ctx.SendTo("nowhere", second{}) == nil {
				t.Error("an event is sent to no step")
			}
			refusedCalls(t, ctx)
			ctx.Info("worked")
			if ev.I > 0 {
				return Nothing{}, boom
			}
			return Nothing{}, nil
		}, Atomic(), Emits(second{}), Streams(third{})),
		Step("end", func(ctx *Context[tally], _ Event) (Stop, error) {
			s, err := ctx.State()
			return Result(s), err
		}, Accepts(second{}, StepFailed{}), Catches("work")))
	for n, want := range map[int]object{
		0: {"count": int64(10), "log": []any{"begun", "worked"}},
		1: {"count": int64(0), "log": []any{"begun"}},
	} {
		session := wefttest.NewSession()
		run, err := session.Run(start{N: n})
		if err != nil || !reflect.DeepEqual(run.Result, any(want)) || !reflect.DeepEqual(session.State(), want) {
			t.Errorf("%d: result %v, state %v (%v)", n, run.Result, session.State(), err)
		}
		if len(run.Stream) != 1-n || len(run.Log) != 1 {
			t.Errorf("%d: stream %v, log %v", n, run.Stream, run.Log)
		}
	}
}

// refusedCalls makes the calls that an atomic step may not make.
func refusedCalls(t *testing.T, ctx *Context[tally]) {
	_, run := Run[any](ctx, "test", nil)
	_, collect := ctx.Collect(&first{})
	for name, err := range map[string]error{"run": run, "collect": collect, "sleep": ctx.Sleep(time.Second)} {
		if CodeOf(err) != CodeFailedPrecondition {
			t.Errorf("%s in an atomic step: %v", name, err)
		}
	}
}

type (
	item struct{ Name string }
	box  struct {
		item2
		Size int
	}
	item2 struct {
		item
		Weight int
	}
	question struct {
		InputRequired
		Text string
	}
	hard struct {
		question
		Level int
	}
)

// An event that embeds another is one of that kind too.
func TestSubtypes(t *testing.T) {
	session := define(t,
		Step("fan", func(ctx *untypedContext, _ start) ([]Event, error) {
			if err := ctx.Send(hard{Level: 2, question: question{Text: "why"}}); err != nil {
				return nil, err
			}
			b := box{Size: 3}
			b.Name, b.Weight = "box", 7
			return []Event{item{"plain"}, item2{item{"heavy"}, 5}, b}, nil
		}, Emits([]item{}, []item2{}, []box{}, hard{}, question{})),
		Step("names", func(_ *untypedContext, ev item) (second, error) { return second{len(ev.Name)}, nil }, AcceptSubtypes()),
		Step("kinds", func(ctx *untypedContext, ev Event) (Nothing, error) {
			switch ev := ev.(type) {
			case item:
				return Nothing{}, ctx.Stream(third{I: 0})
			case item2:
				return Nothing{}, ctx.Stream(third{I: ev.Weight})
			case box:
				return Nothing{}, ctx.Stream(third{I: ev.Size})
			}
			return Nothing{}, Errorf("kind", "unexpected")
		}, Accepts(item{}), AcceptSubtypes(), Streams(third{})),
		Step("exact", func(ctx *untypedContext, _ item) (Nothing, error) { return Nothing{}, ctx.Stream(third{I: 100}) }, Streams(third{})),
		Step("sum", func(_ *untypedContext, all []second) (Stop, error) {
			sum := 0
			for _, ev := range all {
				sum += ev.I
			}
			return Result(sum), nil
		}))
	run, err := session.Run(nil)
	if err != nil || run.Result != int64(len("plain")+len("heavy")+len("box")) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
	var seen []int64
	for _, ev := range run.Stream[1:] {
		seen = append(seen, ev.Body["i"].(int64))
	}
	if want := []int64{0, 100, 5, 3}; run.Stream[0].Type != "hard" || !reflect.DeepEqual(seen, want) {
		t.Errorf("stream %v", run.Stream)
	}
}

// A wait takes subtypes too, and so does a type that the plugin does not know.
func TestSubtypesOfOthers(t *testing.T) {
	session := define(t,
		Step("ask", func(ctx *untypedContext, _ start) (Stop, error) {
			ev, err := Wait[first](ctx)
			return Result(ev.I), err
		}, Waits(first{}), AcceptSubtypes()),
		Step("give", func(*untypedContext, firstAndMore) (Nothing, error) { return Nothing{}, nil }))
	run, err := session.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Post("firstAndMore", object{"i": 4, "more": "x"}); err != nil || run.Result != int64(4) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}

type firstAndMore struct {
	first
	More string
}
