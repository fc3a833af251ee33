package wefttest_test

import (
	"reflect"
	"testing"

	. "github.com/weftrun/weft/sdk-guest/go/weft"
)

func TestUnionsAndLoops(t *testing.T) {
	session := define(t,
		Step("loop", func(_ *untypedContext, ev Event) (Event, error) {
			switch ev := ev.(type) {
			case start:
				return first{I: ev.N}, nil
			case first:
				if ev.I < 3 {
					return first{I: ev.I + 1}, nil
				}
				return []second{{I: 1}, {I: ev.I}}, nil
			}
			return nil, Errorf("unexpected", "%v", ev)
		}, Accepts(start{}, first{}), Emits(first{}, []second{})),
		Step("all", func(_ *untypedContext, all []second) (Stop, error) { return Result(all), nil }))
	run, err := session.Run(map[string]any{"n": 1})
	if want := []any{map[string]any{"i": int64(1)}, map[string]any{"i": int64(3)}}; err != nil || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}

func TestJoin(t *testing.T) {
	type both struct {
		Join
		B second
		A first
	}
	session := define(t,
		Step("fork", func(ctx *untypedContext, _ start) (Nothing, error) {
			if err := ctx.Send(first{I: 1}); err != nil {
				return Nothing{}, err
			}
			return Nothing{}, ctx.Send(second{I: 2})
		}, Emits(first{}, second{})),
		Step("join", func(_ *untypedContext, ev both) (Stop, error) { return Result([]int{ev.A.I, ev.B.I}), nil }))
	run, err := session.Run(nil)
	if want := []any{int64(1), int64(2)}; err != nil || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}

func TestTakeAndNothing(t *testing.T) {
	fan := Step("fan", func(_ *untypedContext, ev start) ([]first, error) {
		list := make([]first, ev.N)
		for i := range list {
			list[i].I = i
		}
		return list, nil
	})
	odd := Step("odd", func(_ *untypedContext, ev first) (*second, error) {
		if ev.I%2 == 0 {
			return nil, nil
		}
		return &second{ev.I}, nil
	})
	gather := func(_ *untypedContext, all []second) (Stop, error) { return Result(len(all)), nil }
	for _, test := range []struct {
		options []StepOption
		n       int
		want    int64
	}{{nil, 10, 5}, {nil, 0, 0}, {nil, 1, 0}, {[]StepOption{Take(2)}, 10, 2}, {[]StepOption{Take(20)}, 10, 5}} {
		session := define(t, fan, odd, Step("gather", gather, test.options...))
		run, err := session.Run(map[string]any{"n": test.n})
		if err != nil || run.Result != test.want {
			t.Errorf("n = %d: result %v (%v), want %d", test.n, run.Result, err, test.want)
		}
	}
}

func TestListsOfSeveralTypes(t *testing.T) {
	session := define(t,
		Step("fan", func(*untypedContext, start) ([]Event, error) {
			return []Event{first{I: 1}, second{I: 2}, first{I: 3}}, nil
		}, Emits([]first{}, []second{})),
		Step("gather", func(_ *untypedContext, all []Event) (Stop, error) {
			sum := 0
			for _, ev := range all {
				switch ev := ev.(type) {
				case first:
					sum += ev.I
				case second:
					sum += 10 * ev.I
				}
			}
			return Result(sum), nil
		}, Accepts(first{}, second{})))
	run, err := session.Run(nil)
	if err != nil || run.Result != int64(24) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}

func TestCollect(t *testing.T) {
	session := define(t,
		Step("fork", func(ctx *untypedContext, _ start) (Nothing, error) {
			for _, ev := range []Event{first{I: 1}, second{I: 2}, first{I: 3}} {
				if err := ctx.SendTo("join", ev); err != nil {
					return Nothing{}, err
				}
			}
			return Nothing{}, nil
		}, Emits(first{}, second{})),
		Step("join", func(ctx *untypedContext, _ Event) (*Stop, error) {
			var a, b first
			var c second
			complete, err := ctx.Collect(&c, &a, &b)
			if err != nil || !complete {
				return nil, err
			}
			stop := Result([]int{a.I, b.I, c.I})
			return &stop, nil
		}, Accepts(first{}, second{})))
	run, err := session.Run(nil)
	if want := []any{int64(1), int64(3), int64(2)}; err != nil || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}

func TestCollectN(t *testing.T) {
	session := define(t,
		Step("fan", func(ctx *untypedContext, ev start) (Nothing, error) {
			for i := range ev.N {
				if err := ctx.Send(first{I: i}); err != nil {
					return Nothing{}, err
				}
			}
			return Nothing{}, nil
		}, Emits(first{})),
		Step("gather", func(ctx *untypedContext, _ first) (*Stop, error) {
			all, err := CollectN[first](ctx, 3)
			if err != nil || all == nil {
				return nil, err
			}
			stop := Result(all)
			return &stop, nil
		}))
	run, err := session.Run(map[string]any{"n": 3})
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := run.Result.([]any); len(list) != 3 {
		t.Errorf("result %v", run.Result)
	}
}

func TestCustomStopIsTheResult(t *testing.T) {
	type done struct {
		Stop
		Total int
	}
	session := define(t, Step("only", func(*untypedContext, start) (done, error) { return done{Total: 3}, nil }))
	run, err := session.Run(nil)
	if want := map[string]any{"total": int64(3)}; err != nil || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}

func TestExtraFieldsReachTheStep(t *testing.T) {
	type open struct {
		Start
		Extra
		Name string
	}
	session := define(t, Step("only", func(_ *untypedContext, ev open) (Stop, error) {
		return Result([]any{ev.Name, ev.Extra["color"]}), nil
	}))
	run, err := session.Run(map[string]any{"name": "n", "color": "red"})
	if want := []any{"n", "red"}; err != nil || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("result %v (%v)", run.Result, err)
	}
}
