package weft

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// define makes the test's workflow the process's one.
func define(t *testing.T, options ...Option) {
	t.Helper()
	t.Cleanup(boundary.Aside())
	Define("test", options...)
}

type (
	start struct {
		Start
		N int `weft:",omitempty"`
	}
	first  struct{ I int }
	second struct{ I int }
	third  struct{ I int }
	tally  struct {
		Count int
		Log   []string
	}
	untypedContext = Context[Untyped]
)

func stopAt[E any](*untypedContext, E) (Stop, error) { return Stop{}, nil }

func TestManifest(t *testing.T) {
	type Custom struct {
		Stop  `weft:"DoneEvent" doc:"the end"`
		Total int
	}
	type Ask struct {
		InputRequired
		Prefix string
	}
	type pair struct {
		Join
		A first
		B second
	}
	state := tally{Count: 5}
	define(t, Version("1.2"), Doc("a test"), Timeout(0), State(state),
		Step("begin", func(*Context[tally], start) ([]first, error) { return nil, nil },
			Doc("begins"), Timeout(time.Second), Emits(Ask{}), Streams(third{})),
		Step("either", func(*Context[tally], Event) (Event, error) { return nil, nil },
			Accepts(first{}, second{}), Emits(second{}, Custom{}, []third{}), Workers(8)),
		Step("both", func(*Context[tally], pair) (*second, error) { return nil, nil },
			Retry(Fixed(time.Second), Attempts(5), OnCodes("flaky"))),
		Step("all", func(*Context[tally], []third) (Nothing, error) { return Nothing{}, nil }, Take(2)),
		Step("any", func(*untypedContext, []Event) ([]Event, error) { return nil, nil },
			Accepts(first{}, third{}), Emits([]first{}, []second{})))
	m, err := defined.manifest()
	if err != nil {
		t.Fatal(err)
	}
	var got any
	b, err := codec.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := codec.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	i := object{"type": "integer"}
	event := func(name string) object {
		return object{"schema": object{"title": name, "type": "object", "properties": object{"i": i}, "required": []any{"i"}}}
	}
	want := object{
		"abi": int64(1), "workflow": "test", "version": "1.2", "description": "a test", "timeout": int64(0),
		"state": object{
			"default": object{"count": int64(5), "log": []any{}},
			"schema": object{"title": "tally", "type": "object", "required": []any{"log", "count"},
				"properties": object{"count": i, "log": object{"type": "array", "items": object{"type": "string"}}}},
		},
		"steps": []any{
			object{"name": "begin", "accepts": []any{"start"}, "emits": []any{"Ask", []any{"list", []any{"first"}}},
				"description": "begins", "timeout": int64(time.Second)},
			object{"name": "either", "accepts": []any{[]any{"any", []any{"first", "second"}}},
				"emits": []any{"second", "DoneEvent", []any{"list", []any{"third"}}}, "workers": int64(8)},
			object{"name": "both", "accepts": []any{"first", "second"}, "emits": []any{"second"}, "retry": object{
				"wait": object{"fixed": int64(time.Second)}, "stop": object{"attempts": int64(5)}, "when": object{"code": []any{"flaky"}}}},
			object{"name": "all", "accepts": []any{[]any{"list", []any{"third"}, int64(2)}}},
			object{"name": "any", "accepts": []any{[]any{"list", []any{"first", "third"}}}, "emits": []any{[]any{"list", []any{"first", "second"}}}},
		},
		"events": object{
			"start": object{"kind": "start", "extends": "StartEvent",
				"schema": object{"title": "start", "type": "object", "properties": object{"n": i}}},
			"Ask": object{"kind": "input_required", "extends": "InputRequiredEvent", "schema": object{"title": "Ask",
				"type": "object", "properties": object{"prefix": object{"type": "string"}}, "required": []any{"prefix"}}},
			"DoneEvent": object{"kind": "stop", "extends": "StopEvent", "description": "the end", "schema": object{"title": "DoneEvent",
				"type": "object", "properties": object{"total": i}, "required": []any{"total"}}},
			"first": event("first"), "second": event("second"), "third": event("third"),
		},
	}
	for key := range want {
		if !reflect.DeepEqual(got.(object)[key], want[key]) {
			t.Errorf("%s:\ngot  %v\nwant %v", key, got.(object)[key], want[key])
		}
	}
	if len(got.(object)) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestFaultsOfADefinition(t *testing.T) {
	type other struct{ X int }
	type alone struct {
		Join
		A first
	}
	type pairs[T any] struct{ A T }
	ok := Step("ok", stopAt[start])
	for _, test := range []struct {
		want    string
		options []Option
	}{
		{"there twice", []Option{ok, ok}},
		{"two types of state, tally and other", []Option{ok,
			Step("a", func(*Context[tally], first) (Stop, error) { return Stop{}, nil }),
			Step("b", func(*Context[other], first) (Stop, error) { return Stop{}, nil })}},
		{"int cannot be the state's type", []Option{Step("a", func(*Context[int], first) (Stop, error) { return Stop{}, nil })}},
		{"weft.Accepts(", []Option{Step("a", func(*untypedContext, Event) (Stop, error) { return Stop{}, nil })}},
		{"remove the option", []Option{Step("a", stopAt[first], Accepts(second{}))}},
		{"weft.Emits(FirstEvent", []Option{Step("a", func(*untypedContext, first) (Event, error) { return nil, nil })}},
		{"weft.Emits([]FirstEvent", []Option{Step("a", func(*untypedContext, first) ([]Event, error) { return nil, nil })}},
		{"Take needs a step that takes a list", []Option{Step("a", stopAt[first], Take(1))}},
		{"workers must be", []Option{Step("a", stopAt[first], Workers(0))}},
		{"take must be", []Option{Step("a", stopAt[[]first], Take(0))}},
		{"above 0", []Option{Step("a", stopAt[first], Timeout(0))}},
		{"*first is not an event type: use the struct itself", []Option{Step("a", stopAt[*first])}},
		{"error is not an event type: use weft.Event and list", []Option{Step("a", func(*untypedContext, first) (error, error) { return nil, nil })}},
		{"error is not an event type: use weft.Event and list", []Option{Step("a", stopAt[[]error])}},
		{"nil is not an event type: list events by empty values", []Option{Step("a", stopAt[Event], Accepts(nil))}},
		{"nil is not an event type: list events by empty values", []Option{Step("a", stopAt[first], Emits(nil))}},
		{"string is not an event type: define a struct", []Option{Step("a", stopAt[string])}},
		{"two fields or more", []Option{Step("a", stopAt[alone])}},
		{"no plain name", []Option{Step("a", stopAt[pairs[int]])}},
		{"no plain name", []Option{Step("a", stopAt[struct{ X int }])}},
		{"cannot be sent", []Option{Step("a", stopAt[struct{ C chan int }])}},
		{"two event types are named first", []Option{Step("a", stopAt[first]), Step("b", stopAt[struct {
			_ struct{} `weft:"first"`
		}])}},
		{"two rules for how long to wait: keep one, or join them by Sum or Chain", []Option{Step("a", stopAt[first], Retry(Fixed(1), Fixed(2)))}},
		{"Not takes a condition", []Option{Step("a", stopAt[first], Retry(Not(Attempts(1))))}},
		{"Sum cannot hold a rule for \"stop\" here", []Option{Step("a", stopAt[first], Retry(Sum(Fixed(1), Forever())))}},
		{"AnyOf cannot hold a rule for \"wait\" here", []Option{Step("a", stopAt[first], Retry(AnyOf(Fixed(1))))}},
		{"AllOf cannot hold a rule for \"when\" here", []Option{Step("a", stopAt[first], Retry(AllOf(Attempts(1), Never())))}},
		{"Chain is empty: give it rules", []Option{Step("a", stopAt[first], Retry(Not(Never()), Sum(Chain())))}},
		{"NaN or infinite", []Option{Step("a", stopAt[first], Retry(Chain(Exponential(1, math.Inf(1), 2))))}},
		{"an atomic step cannot wait", []Option{Step("a", stopAt[first], Atomic(), Waits(second{}))}},
	} {
		t.Run(test.want, func(t *testing.T) {
			defer func() {
				got, _ := recover().(string)
				if !strings.HasPrefix(got, `weft: workflow "test": `) || !strings.Contains(got, test.want) {
					t.Errorf("panics with %q", got)
				}
			}()
			define(t, test.options...)
		})
	}
	t.Run("a second workflow", func(t *testing.T) {
		define(t, ok)
		defer func() {
			if got, _ := recover().(string); !strings.Contains(got, `a module holds one workflow, and "test" is there already`) {
				t.Errorf("panics with %q", got)
			}
		}()
		Define("another", ok)
	})
}

// All errors are reported at once, with the step that they concern.
func TestAllFaultsOfADefinition(t *testing.T) {
	defer func() {
		got, _ := recover().(string)
		want := `weft: workflow "test": 4 faults:
- step "a": workers must be 1 to 1000
- step "a": a step's timeout must be above 0: leave it out for none
- step "b": string is not an event type: define a struct with a field for it
- two types of state, tally and start: give all steps a context of the one type (weft.Untyped fits any)`
		if got != want {
			t.Errorf("panics with %s\nwant        %s", got, want)
		}
	}()
	define(t,
		Step("a", stopAt[first], Workers(0), Timeout(0)),
		Step("b", stopAt[string]),
		Step("c", func(*Context[tally], first) (Stop, error) { return Stop{}, nil }),
		Step("d", func(*Context[start], first) (Stop, error) { return Stop{}, nil }))
}
