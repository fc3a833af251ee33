package wefttest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

type human struct {
	HumanResponse
	Text string
}

// Attempts follow each other at the times of the policy, by the session's clock. A retry
// does not repeat earlier collects and answered waits.
func TestRetriesTakeTheirTime(t *testing.T) {
	var at []time.Duration
	session := define(t, Step("try", func(ctx *untypedContext, _ start) (Stop, error) {
		info := ctx.RunInfo()
		at = append(at, time.Duration(info.Started().UnixNano()))
		if info.Attempt < 4 {
			return Stop{}, Errorf("busy", "attempt %d", info.Attempt)
		}
		return Result(info.LastError.Message), nil
	}, Retry(Exponential(time.Second, 2, time.Minute), Attempts(4), OnCodes("busy"))))
	began := session.Clock
	run, err := session.Run(nil)
	if err != nil || run.Result != "attempt 3" {
		t.Fatal(run, err)
	}
	for i := range at {
		at[i] -= time.Duration(began.UnixNano())
	}
	if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !reflect.DeepEqual(at, want) {
		t.Errorf("attempts at %v, want %v", at, want)
	}
	if took := session.Clock.Sub(began); took != 7*time.Second {
		t.Errorf("the clock went on by %s", took)
	}
}

// A wait does not time out while the test may answer it, but when the test lets the
// time pass.
func TestAWaitTimesOutByAdvance(t *testing.T) {
	session := define(t, Timeout(0), Step("ask", func(ctx *untypedContext, _ start) (Stop, error) {
		ev, err := Wait[human](ctx, For("boss"), Timeout(time.Hour))
		if CodeOf(err) == CodeTimeout {
			return Result("nobody"), nil
		}
		return Result(ev.Text), err
	}, Waits(human{})))
	for _, test := range []struct {
		pass time.Duration
		want any
	}{{time.Hour - 1, nil}, {time.Hour, "nobody"}, {24 * time.Hour, "nobody"}} {
		run, err := session.Run(nil)
		if err != nil || run.Ended || !reflect.DeepEqual(run.Waiting(), []string{"boss"}) {
			t.Fatalf("%+v, waiting for %v (%v)", run, run.Waiting(), err)
		}
		if err := run.Advance(test.pass); err != nil || run.Result != test.want {
			t.Errorf("after %s: %v (%v)", test.pass, run.Result, err)
		}
		if test.want == nil {
			if err := run.Send(human{Text: "me"}); err != nil || run.Result != "me" {
				t.Errorf("answered: %v (%v)", run.Result, err)
			}
		}
	}
}

// A run times out, and a step that catches that cleans up.
func TestARunTimesOut(t *testing.T) {
	session := define(t, Timeout(time.Minute),
		Step("nap", func(ctx *untypedContext, _ start) (Stop, error) { return Result(1), ctx.Sleep(time.Hour) }),
		Step("tidy", func(ctx *untypedContext, ev StepFailed) (Nothing, error) {
			return Nothing{}, ctx.Set("tidied", ev.Exception.ExceptionType)
		}, Catches(TimedOut, Cancelled)))
	_, err := session.Run(nil)
	var failure *wefttest.Failure
	if !errors.As(err, &failure) || failure.Code != "timeout" || session.State()["tidied"] != "timeout" {
		t.Errorf("fails with %v, state %v", err, session.State())
	}
}

func TestCancel(t *testing.T) {
	session := define(t, Step("ask", func(ctx *untypedContext, _ start) (Stop, error) {
		_, err := Wait[human](ctx)
		return Result(nil), err
	}, Waits(human{})),
		Step("tidy", func(ctx *untypedContext, _ StepFailed) (Nothing, error) {
			return Nothing{}, ctx.Set("tidied", true)
		}, Catches(Cancelled)))
	run, err := session.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	var failure *wefttest.Failure
	if err := run.Cancel(); !errors.As(err, &failure) || failure.Code != "cancelled" || session.State()["tidied"] != true {
		t.Errorf("cancelled: %v, state %v", err, session.State())
	}
}

// With a seed invocations meet; the same seed has them meet alike, and edits are not
// lost while careless reads and writes are.
func TestSeed(t *testing.T) {
	careless := false
	define(t,
		Step("fan", func(*untypedContext, start) ([]first, error) { return make([]first, 20), nil }),
		Step("add", func(ctx *untypedContext, _ first) (second, error) {
			if careless {
				var n int
				if err := ctx.GetOr("n", &n, 0); err != nil {
					return second{}, err
				}
				return second{}, ctx.Set("n", n+1)
			}
			return second{}, EditAt(ctx, "", func(s *struct {
				N int `weft:",omitempty"`
			}) error {
				s.N++
				return nil
			})
		}, Workers(8)),
		Step("sum", func(ctx *untypedContext, all []second) (Stop, error) {
			var n int
			err := ctx.Get("n", &n)
			return Result(n), err
		}))
	count := func(options ...wefttest.Option) any {
		run, err := wefttest.NewSession(options...).Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		return run.Result
	}
	lost := 0
	for seed := range uint64(5) {
		careless = false
		if n := count(wefttest.Seed(seed)); n != int64(20) {
			t.Errorf("seed %d: %v edits of 20", seed, n)
		}
		careless = true
		n := count(wefttest.Seed(seed))
		if n != int64(20) {
			lost++
		}
		if again := count(wefttest.Seed(seed)); again != n {
			t.Errorf("seed %d: once %v, once %v", seed, n, again)
		}
	}
	if n := count(); n != int64(20) || lost == 0 {
		t.Errorf("%v one after the other, lost with %d seeds", n, lost)
	}
}

// A step that depends on something else than what it is given is found out when it is
// replayed.
func TestAStepThatIsNotReplayedAlike(t *testing.T) {
	runs := 0
	session := define(t, Step("odd", func(ctx *untypedContext, _ start) (Stop, error) {
		runs++
		if err := ctx.Set("runs", runs); err != nil {
			return Stop{}, err
		}
		return Result(nil), ctx.Sleep(time.Second)
	}))
	if _, err := session.Run(nil); err == nil || !strings.Contains(err.Error(), "step odd makes other calls") {
		t.Errorf("runs with %v", err)
	}
}
