package wefttest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
	. "github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// kid is the start event of a workflow that is its own child.
type kid struct {
	Start
	Mode string `weft:",omitempty"`
	N    int    `weft:",omitempty"`
}

type ask struct {
	InputRequired
	N int
}

type reply struct {
	HumanResponse
	Text string
}

// family defines a workflow that runs itself: do is what it does at the top.
func family(t *testing.T, do func(*Context[tally]) (any, error), options ...wefttest.Option) *wefttest.Session {
	t.Helper()
	define(t, Step("start", func(ctx *Context[tally], ev kid) (Event, error) {
		switch ev.Mode {
		case "":
			v, err := do(ctx)
			return Result(v), err
		case "human":
			return ask{N: ev.N}, nil
		case "boom":
			return nil, Errorf("boom", "asked to fail").With([]int{ev.N})
		case "count":
			n, err := ctx.Increment("count", int64(ev.N))
			return Result(n), err
		case "show":
			return Result(nil), ctx.Stream(third{I: ev.N})
		case "deep":
			if ev.N == 0 {
				return Result(0), nil
			}
			n, err := Run[int](ctx, "test", kid{Mode: "deep", N: ev.N - 1})
			return Result(n + 1), err
		}
		return nil, Errorf("mode", "%q", ev.Mode)
	}, Emits(Stop{}, ask{}), Streams(third{})),
		Step("answer", func(_ *untypedContext, ev reply) (Stop, error) { return Result(ev.Text), nil }))
	return wefttest.NewSession(options...)
}

func TestAChildIsACall(t *testing.T) {
	session := family(t, func(ctx *Context[tally]) (any, error) {
		twice, err := Run[int](ctx, "double", struct{ N int }{4})
		if err != nil || twice != 8 {
			t.Errorf("a function: %d (%v)", twice, err)
		}
		depth, err := Run[uint8](ctx, "test", kid{Mode: "deep", N: 5})
		if err != nil || depth != 5 {
			t.Errorf("itself: %d (%v)", depth, err)
		}
		var counts []int
		for _, options := range [][]RunOption{{}, {}, {SameSession()}, {SameSession()}, {InSession("x")}, {InSession("x")}} {
			n, err := Run[int](ctx, "test", map[string]any{"mode": "count", "n": 1}, options...)
			if err != nil {
				return nil, err
			}
			counts = append(counts, n)
		}
		for range 2 { // the second one is the first one
			n, err := Run[int](ctx, "test", &kid{Mode: "count", N: 10}, SameSession(), As("once"))
			if err != nil {
				return nil, err
			}
			counts = append(counts, n)
		}
		return counts, nil
	}, wefttest.Child("double", func(start struct{ N int }) (int, error) { return 2 * start.N, nil }))
	run, err := session.Run(nil)
	if want := []any{int64(1), int64(1), int64(1), int64(2), int64(1), int64(2), int64(12), int64(12)}; err != nil || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("counts %v (%v), want %v", run.Result, err, want)
	}
	if got := session.State()["count"]; got != int64(12) {
		t.Errorf("count is %v", got)
	}
	if len(run.Children) != 9 || run.Children[0].Result != int64(8) || run.Children[2].Session().State()["count"] != int64(1) {
		t.Errorf("children %v", run.Children)
	}
}

func TestAChildThatFails(t *testing.T) {
	session := family(t, func(ctx *Context[tally]) (any, error) {
		for _, c := range []struct{ code, workflow string }{
			{"boom", "test"}, {"late", "late"}, {"error", "plain"}, {CodeNotFound, "nobody"}, {CodeLimitExceeded, "endless"},
		} { // in this order: each run comes first again
			code, workflow := c.code, c.workflow
			_, err := Run[any](ctx, workflow, object{"mode": "boom", "n": 3})
			var e *Error
			if CodeOf(err) != code || !errors.As(err, &e) || !strings.Contains(err.Error(), `run "`+workflow+`": `) {
				t.Errorf("%s fails with %v", workflow, err)
			}
			if code == "boom" && !strings.HasSuffix(e.Message, "asked to fail") {
				t.Errorf("%+v", e)
			}
		}
		run := func(start any, options ...RunOption) error {
			_, err := Run[string](ctx, "test", start, options...)
			return err
		}
		_, badTarget := Run[chan int](ctx, "test", nil)
		for want, err := range map[string]error{
			"its result cannot be read as string: ": run(kid{Mode: "count"}),
			"a chan cannot be sent":                 badTarget,
			".C: a chan cannot be sent":             run(struct{ C chan int }{}),
			"int cannot start a workflow":           run(3),
			"give SameSession() or InSession(id)":   run(nil, SameSession(), InSession("a")),
			"a child's name has 1 to 128 bytes":     run(nil, As("")),
			"a session's id is not empty":           run(nil, InSession("")),
		} {
			if CodeOf(err) != CodeInvalidMessage || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		// A type that steps use as an event is sent under its name.
		if err := run(third{}); CodeOf(err) != "invalid_argument" || !strings.Contains(err.Error(), "must be a kid, not a third") {
			t.Errorf("another event: %v", err)
		}
		if _, err := Run[any](ctx, "late", object{"wait": "long"}); CodeOf(err) != "invalid_argument" {
			t.Errorf("a start event of another shape: %v", err)
		}
		return nil, nil
	}, wefttest.Child("late", func(struct {
		Wait int `weft:",omitempty"`
	}) (any, error) {
		return nil, &wefttest.Failure{Code: "late", Message: "too late"}
	}),
		wefttest.Child("plain", func(struct{}) (any, error) { return nil, errors.New("plain") }),
		wefttest.ChildOn("endless", endless{}))
	if _, err := session.Run(nil); err != nil {
		t.Fatal(err)
	}
}

// endless is a workflow that runs itself without end.
type endless struct{}

func (endless) Describe() ([]byte, error) {
	return codec.Append(nil, object{"abi": 1, "workflow": "endless", "events": object{}, "steps": []any{
		object{"name": "again", "accepts": []any{"StartEvent"}, "emits": []any{"StopEvent"}}}})
}

func (endless) Step(calls wefttest.Calls, _ []byte) ([]byte, int, error) {
	request, err := codec.Append(nil, object{"workflow": "endless", "event": []any{"StartEvent", object{}}})
	if err != nil {
		return nil, 0, err
	}
	status, response := calls.Call("run_workflow", request)
	output, err := codec.Append(nil, []any{1, codec.Raw(response)})
	return output, int(min(status, 1)), err
}

func TestAChildThatWaits(t *testing.T) {
	before := 0
	session := family(t, func(ctx *Context[tally]) (any, error) {
		before++ // again after each answer
		if _, err := ctx.Increment("count", 1); err != nil {
			return nil, err
		}
		var texts []string
		for n, id := range []string{"a", "b"} {
			text, err := Run[string](ctx, "test", kid{Mode: "human", N: n}, As(id), WithStream())
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		return texts, nil
	})
	run, err := session.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"a", "b"} {
		if waiting := run.Waiting(); run.Ended || len(waiting) != 1 || waiting[0] != id || len(run.Children) != i+1 {
			t.Fatalf("waiting for %v, %d children", waiting, len(run.Children))
		}
		if err := run.Children[i].Post("reply", map[string]any{"text": "answer " + id}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []any{"answer a", "answer b"}; !run.Ended || !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("result %v", run.Result)
	}
	if before != 3 || session.State()["count"] != int64(1) {
		t.Errorf("run %d times, count %v", before, session.State()["count"])
	}
	if want := []wefttest.Event{{Type: "ask", Body: object{"n": int64(0)}}, {Type: "ask", Body: object{"n": int64(1)}}}; !reflect.DeepEqual(run.Stream, want) {
		t.Errorf("stream %v", run.Stream)
	}
}

func TestAChildsStream(t *testing.T) {
	session := family(t, func(ctx *Context[tally]) (any, error) {
		for n, options := range [][]RunOption{{}, {WithStream()}} {
			if _, err := Run[any](ctx, "test", kid{Mode: "show", N: n}, options...); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	run, err := session.Run(nil)
	if want := []wefttest.Event{{Type: "third", Body: object{"i": int64(1)}}}; err != nil || !reflect.DeepEqual(run.Stream, want) {
		t.Errorf("stream %v (%v)", run.Stream, err)
	}
}

// Of a stop event of its own the child's whole event is the result.
// The start event's type is the struct's if that is an event.
