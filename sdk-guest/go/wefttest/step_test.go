package wefttest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	. "github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// Each kind of step runs alone: the first and the last of a workflow, collectors,
// joins, steps that send, wait or catch.
func TestStepsAlone(t *testing.T) {
	type pair struct {
		Join
		A first
		B second
	}
	session := define(t, State(tally{Count: 5}),
		Step("begin", func(ctx *Context[tally], ev start) ([]first, error) {
			return make([]first, ev.N), errors.Join(ctx.SendTo("both", second{ev.N}), ctx.Stream(third{ev.N}))
		}, Emits(second{}), Streams(third{})),
		Step("both", func(_ *Context[tally], ev pair) (*third, error) { return &third{ev.A.I + ev.B.I}, nil }),
		Step("all", func(_ *untypedContext, all []third) (Event, error) {
			if len(all) == 0 {
				return nil, nil
			}
			return Result(len(all)), nil
		}, Emits(Stop{})),
		Step("ask", func(ctx *untypedContext, _ first) (Nothing, error) {
			ev, err := Wait[human](ctx)
			ctx.Info(ev.Text)
			return Nothing{}, err
		}, Waits(human{})),
		Step("mend", func(_ *untypedContext, ev StepFailed) (third, error) {
			return third{len(ev.Exception.ExceptionMessage)}, nil
		}, Catches("ask")))
	for _, test := range []struct {
		step string
		in   []any
		want []wefttest.Event
	}{
		{"begin", []any{start{N: 2}}, []wefttest.Event{{Type: "first", Body: object{"i": int64(0)}}, {Type: "first", Body: object{"i": int64(0)}}}},
		{"both", []any{first{1}, second{2}}, []wefttest.Event{{Type: "third", Body: object{"i": int64(3)}}}},
		{"all", []any{third{1}, third{2}}, []wefttest.Event{{Type: "StopEvent", Body: object{"result": int64(2)}}}},
		{"all", nil, nil},
		{"mend", []any{StepFailed{StepName: "ask", Exception: Exception{ExceptionType: "x", ExceptionMessage: "four"}}}, []wefttest.Event{{Type: "third", Body: object{"i": int64(4)}}}},
	} {
		run, err := session.Step(test.step, test.in...)
		if err != nil || !run.Ended || !reflect.DeepEqual(run.Emitted, test.want) {
			t.Errorf("%s: %+v (%v), want %v", test.step, run, err, test.want)
			continue
		}
		if test.step == "begin" && (len(run.Sent) != 1 || run.Sent[0].Type != "second" || len(run.Stream) != 1) {
			t.Errorf("begin: sent %v, stream %v", run.Sent, run.Stream)
		}
	}
	run, err := session.Step("ask", first{1})
	if err != nil || run.Ended {
		t.Fatalf("ask: %+v (%v)", run, err)
	}
	if err := run.Send(human{Text: "yes"}); err != nil || !run.Ended || len(run.Log) != 1 || run.Log[0].Message != "yes" {
		t.Errorf("ask: %+v (%v)", run, err)
	}
	for want, in := range map[string][]any{
		"it takes one event, and was given 2": {first{1}, first{2}},
		"is not an event type":                {"text"},
		"step ask: ":                          {},
	} {
		if _, err := session.Step("ask", in...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", in, err, want)
		}
	}
	if _, err := session.Step("nobody", first{}); err == nil {
		t.Error("no such step runs")
	}
}

// A step that fails gives its failure, a workflow that cannot run all that is wrong
// with it.
func TestFailuresOfSteps(t *testing.T) {
	session := define(t, Step("fail", func(_ *untypedContext, ev start) (first, error) { return first{}, Errorf("boom", "at %d", ev.N) }))
	_, err := session.Step("fail", start{N: 3})
	var failure *wefttest.Failure
	if !errors.As(err, &failure) || failure.Code != "boom" || failure.Message != "at 3" {
		t.Errorf("fails with %v", err)
	}
	_, err = session.Run(nil)
	for _, want := range []string{"no step emits a stop event", "no step accepts it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("runs with %v, want %s", err, want)
		}
	}
}
