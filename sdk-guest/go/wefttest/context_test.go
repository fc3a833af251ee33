package wefttest_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// inStep runs do as the only step of a workflow and returns the run.
func inStep[S any](t *testing.T, do func(*Context[S]) (any, error), options ...StepOption) (*wefttest.Session, *wefttest.Run, error) {
	t.Helper()
	session := define(t, Step("only", func(ctx *Context[S], _ start) (Stop, error) {
		v, err := do(ctx)
		return Result(v), err
	}, options...))
	run, err := session.Run(nil)
	return session, run, err
}

func TestState(t *testing.T) {
	session, run, err := inStep(t, func(ctx *Context[Untyped]) (any, error) {
		var n, missing int
		var list []string
		if err := ctx.Set("a.b", map[string]any{"n": 1}); err != nil {
			return nil, err
		}
		if err := ctx.Get("a.b.n", &n); err != nil || n != 1 {
			t.Errorf("get: %d (%v)", n, err)
		}
		if v, err := ctx.Increment("a.b.n", 4); err != nil || v != 5 {
			t.Errorf("increment: %d (%v)", v, err)
		}
		if v, err := ctx.IncrementFloat("rate", 0.5); err != nil || v != 0.5 {
			t.Errorf("increment: %v (%v)", v, err)
		}
		for want := 1; want <= 2; want++ {
			if got, err := ctx.Append("log", "line"); err != nil || got != want {
				t.Errorf("append: %d (%v)", got, err)
			}
		}
		if err := ctx.Merge("a", map[string]any{"c": true}); err != nil {
			t.Error(err)
		}
		if err := ctx.GetOr("nothing", &missing, 7); err != nil || missing != 7 {
			t.Errorf("default: %d (%v)", missing, err)
		}
		if err := ctx.GetOr("log", &list, []string{}); err != nil || len(list) != 2 {
			t.Errorf("list: %v (%v)", list, err)
		}
		err := ctx.Get("nothing", &missing)
		if CodeOf(err) != CodeNotFound || !strings.Contains(err.Error(), `get "nothing"`) || !strings.Contains(err.Error(), "GetOr") {
			t.Errorf("a missing path: %v", err)
		}
		if err := ctx.Get("log", &missing); err == nil || !strings.Contains(err.Error(), "a list where an integer is expected") {
			t.Errorf("a mistyped target: %v", err)
		}
		if err := ctx.Get("log", list); err == nil || !strings.Contains(err.Error(), "pass &v") {
			t.Errorf("no pointer: %v", err)
		}
		was, err := ctx.Delete("a.c")
		again, err2 := ctx.Delete("a.c")
		if !was || again || err != nil || err2 != nil {
			t.Errorf("delete: %v, %v (%v, %v)", was, again, err, err2)
		}
		return ctx.State()
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"b": map[string]any{"n": int64(5)}}, "rate": 0.5, "log": []any{"line", "line"}}
	if !reflect.DeepEqual(run.Result, any(want)) || !reflect.DeepEqual(session.State(), want) {
		t.Errorf("state %v, result %v", session.State(), run.Result)
	}
}

func TestBatchIsOneEdit(t *testing.T) {
	session, _, err := inStep(t, func(ctx *Context[Untyped]) (any, error) {
		got, err := ctx.Batch().Set("n", 1).Increment("n", 2).Append("l", "x").Delete("no").Test("n", 3).Do()
		if want := []any{nil, int64(3), int64(1), false, nil}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("results %v (%v)", got, err)
		}
		if _, err = ctx.Batch().Set("n", 100).Test("n", 3).Do(); CodeOf(err) != CodeConflict {
			t.Errorf("a failed test: %v", err)
		}
		if _, err = ctx.Batch().Set("n", make(chan int)).Do(); err == nil || !strings.Contains(err.Error(), "cannot be sent") {
			t.Errorf("a channel: %v", err)
		}
		if err := errors.Join(ctx.Test("n", 3), ctx.Test("l.-1", "x")); err != nil {
			t.Errorf("test: %v", err)
		}
		if err := ctx.Test("n", 4); CodeOf(err) != CodeConflict {
			t.Errorf("a failed test: %v", err)
		}
		got, err = ctx.Batch().IncrementFloat("f", 0.5).Merge("m", map[string]int{"a": 1}).Set("l.-1", "y").Delete("l.0").Clear().Set("n", 3).Do()
		if want := []any{0.5, nil, nil, true, nil, nil}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("results %v (%v)", got, err)
		}
		_, err = ctx.Batch().Do()
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := session.State(); !reflect.DeepEqual(got, map[string]any{"n": int64(3)}) {
		t.Errorf("state %v", got)
	}
}

func TestClear(t *testing.T) {
	session := define(t, State(tally{Count: 5}), Step("only", func(ctx *Context[tally], _ start) (Stop, error) {
		return Result(nil), errors.Join(ctx.Set("count", 9), ctx.Set("more", 1), ctx.Clear())
	}))
	_, err := session.Run(nil)
	if want := map[string]any{"count": int64(5), "log": []any{}}; err != nil || !reflect.DeepEqual(session.State(), want) {
		t.Errorf("state %v (%v)", session.State(), err)
	}
}

func TestEditKeepsWhatItDoesNotDeclare(t *testing.T) {
	session, _, err := inStep(t, func(ctx *Context[tally]) (any, error) {
		if err := ctx.Set("foreign", []any{"keep"}); err != nil {
			return nil, err
		}
		err := ctx.Edit(func(s *tally) error {
			s.Count++
			s.Log = append(s.Log, "one")
			return nil
		})
		if err != nil {
			return nil, err
		}
		return nil, EditAt(ctx, "log", func(log *[]string) error {
			*log = append(*log, "two")
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"count": int64(1), "log": []any{"one", "two"}, "foreign": []any{"keep"}}
	if got := session.State(); !reflect.DeepEqual(got, want) {
		t.Errorf("state %v", got)
	}
}

func TestAFailedEditChangesNothing(t *testing.T) {
	boom := errors.New("boom")
	session, run, err := inStep(t, func(ctx *Context[tally]) (any, error) {
		for _, change := range []func(*tally) error{
			func(s *tally) error { s.Count = 9; return boom },
			func(s *tally) error { s.Count = 9; return ctx.Set("count", 10) },                        // only reads are allowed
			func(s *tally) error { s.Count = 9; return ctx.Edit(func(*tally) error { return nil }) }, // nor a nested edit
		} {
			if err := ctx.Edit(change); err == nil {
				t.Error("no error")
			}
		}
		if err := ctx.Edit(func(*tally) error { return boom }); !errors.Is(err, boom) {
			t.Errorf("the error is %v", err)
		}
		if err := EditAt(ctx, "absent", func(*int) error { return nil }); CodeOf(err) != CodeNotFound {
			t.Errorf("a missing path: %v", err)
		}
		if err := EditAt(ctx, "log", func(*int) error { return nil }); err == nil || !strings.Contains(err.Error(), "a list where an integer") {
			t.Errorf("a mistyped edit: %v", err)
		}
		return "open for more", ctx.Edit(func(s *tally) error { s.Count++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := session.State()["count"]; got != int64(1) || run.Result != "open for more" {
		t.Errorf("count is %v, result %v", got, run.Result)
	}
}

func TestSendAndStreamWantDeclaredTypes(t *testing.T) {
	session := define(t, Step("only", func(ctx *untypedContext, _ start) (Stop, error) {
		for want, err := range map[string]error{
			"second is not declared: add it to the step's options, weft.Emits(second{})":   ctx.Send(second{}),
			"second is not declared: add it to the step's options, weft.Streams(second{})": ctx.Stream(second{}),
			"*first is a pointer: use the event itself":                                    ctx.Send(&first{}),
			"pass an event, a struct, by value":                                            ctx.Stream(&third{}),
			"the event is nil":                                                             ctx.Send(nil),
			"only sends first to nowhere, which is not a step":                             ctx.SendTo("nowhere", first{}),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		return Result(nil), ctx.Stream(third{I: 3})
	}, Emits(first{}), Streams(third{})), Step("takes", func(*untypedContext, first) (Nothing, error) { return Nothing{}, nil }))
	run, err := session.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []wefttest.Event{{Type: "third", Body: map[string]any{"i": int64(3)}}}; !reflect.DeepEqual(run.Stream, want) {
		t.Errorf("stream %v", run.Stream)
	}
}

func TestRunInfo(t *testing.T) {
	session, run, err := inStep(t, func(ctx *Context[Untyped]) (any, error) {
		info := ctx.RunInfo()
		if info.Workflow != "test" || info.RunID != "run-1" || info.Attempt != 1 || info.LastError != nil {
			t.Errorf("%+v", info)
		}
		var config struct {
			Model string `default:"small"`
		}
		if err := ctx.Config(&config); err != nil || config.Model != "small" {
			t.Errorf("config %+v (%v)", config, err)
		}
		a, err := ctx.Random(16)
		if err != nil || len(a) != 16 {
			t.Errorf("random: %x (%v)", a, err)
		}
		if _, err := ctx.Random(5000); err == nil {
			t.Error("5000 bytes at once")
		}
		if !info.Started().Equal(ctx.Now()) {
			t.Errorf("started %v, now %v", info.Started(), ctx.Now())
		}
		return ctx.Now().Unix(), nil
	})
	if err != nil || run.Result != session.Clock.Unix() {
		t.Errorf("now %v (%v)", run.Result, err)
	}
}

func TestLog(t *testing.T) {
	_, run, err := inStep(t, func(ctx *Context[Untyped]) (any, error) {
		ctx.Debug("d")
		ctx.Info("i", "n", 1, "err", errors.New("e"))
		ctx.Warn("w", "odd")
		ctx.Error("e", 5, 6)
		ctx.Info("dropped", "c", make(chan int))
		return nil, nil
	})
	want := []wefttest.Record{
		{Level: -4, Message: "d"},
		{Level: 0, Message: "i", Attrs: map[string]any{"n": int64(1), "err": "e"}},
		{Level: 4, Message: "w", Attrs: map[string]any{"!badkey": "odd"}},
		{Level: 8, Message: "e", Attrs: map[string]any{"!badkey": "5"}},
	}
	if err != nil || !reflect.DeepEqual(run.Log, want) {
		t.Errorf("log %+v (%v)", run.Log, err)
	}
}

func TestFailures(t *testing.T) {
	for want, failure := range map[string]error{
		"error: plain":                  errors.New("plain"),
		"flaky: try 3 of \"x\"":         Errorf("flaky", "try %d of %q", 3, "x"),
		"error: no code":                &Error{Message: "no code"},
		"flaky: wrapped: flaky: inside": wrapped{Errorf("flaky", "inside")},
	} {
		_, _, err := inStep(t, func(*Context[Untyped]) (any, error) { return nil, failure })
		if err == nil || err.Error() != want {
			t.Errorf("fails with %v, want %s", err, want)
		}
	}
	_, _, err := inStep(t, func(*Context[Untyped]) (any, error) {
		e := Errorf("final", "no more").Final()
		e.Data = map[string]any{"at": 1}
		return nil, e
	})
	var failure *wefttest.Failure
	if !errors.As(err, &failure) || failure.Fields["retryable"] != false || !reflect.DeepEqual(failure.Fields["data"], any(map[string]any{"at": int64(1)})) {
		t.Errorf("%+v", failure)
	}
}

type wrapped struct{ inner error }

func (w wrapped) Error() string { return "wrapped: " + w.inner.Error() }
func (w wrapped) Unwrap() error { return w.inner }

func TestAPanicIsAFailure(t *testing.T) {
	for _, cause := range []any{"boom", errors.New("boom")} {
		_, _, err := inStep(t, func(*Context[Untyped]) (any, error) { panic(cause) })
		if err == nil || !strings.HasPrefix(err.Error(), "panic: boom (context_test.go:") {
			t.Errorf("fails with %v", err)
		}
	}
}

func TestResultsThatCannotBeSent(t *testing.T) {
	for want, result := range map[string]any{
		"a chan cannot be sent": make(chan int),
		"type Time cannot be sent: use a number of seconds, or text": time.Time{},
		"a float is NaN or infinite":                                 math.NaN(),
	} {
		_, _, err := inStep(t, func(*Context[Untyped]) (any, error) { return result, nil })
		if err == nil || !strings.Contains(err.Error(), `the result of step "only"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("fails with %v, want %s", err, want)
		}
	}
}

// A step costs few allocations: its input, its output and what it asks for.
// A step reads what the session, or a workflow's settings, configure for it.
func TestConfig(t *testing.T) {
	type config struct {
		Model string `default:"small"`
		Tries int    `default:"3"`
	}
	session := define(t, Step("run", func(ctx *Context[Untyped], _ start) (Stop, error) {
		var c config
		err := ctx.Config(&c)
		return Result(c), err
	}))
	for _, tt := range []struct {
		config any
		want   any // nil: an error
	}{
		{map[string]any{"model": "large"}, map[string]any{"model": "large", "tries": int64(3)}},
		{config{"tiny", 1}, map[string]any{"model": "tiny", "tries": int64(1)}},
		{map[string]any{"tries": "many"}, nil},
		{map[string]any{"tries": func() {}}, nil},
	} {
		session.Config = map[string]any{"run": tt.config, "other": 1}
		run, err := session.Run(nil)
		if tt.want == nil {
			if err == nil || !strings.Contains(err.Error(), "config") {
				t.Errorf("config %v: %v", tt.config, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(run.Result, tt.want) {
			t.Errorf("config %v: %v (%v)", tt.config, run.Result, err)
		}
	}
}
