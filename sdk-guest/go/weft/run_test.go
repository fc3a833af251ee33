package weft

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

type kid struct {
	Start
	Mode string `weft:",omitempty"`
	N    int    `weft:",omitempty"`
}

func TestResultsOfChildren(t *testing.T) {
	type done struct {
		Stop
		Total int
	}
	host := &recorder{}
	withHost(t, host)
	ctx := &Context[Untyped]{&invocation{step: &step{}}}
	answer := func(name string, body any) {
		host.response, _ = codec.Append(nil, []any{name, body, 7})
	}
	answer("done", object{"total": 3, "more": nil})
	if got, err := Run[done](ctx, "w", nil); err != nil || got.Total != 3 {
		t.Errorf("%v (%v)", got, err)
	}
	answer("StopEvent", object{"a": 1, "result": []int{1, 2}})
	if got, err := Run[[]int](ctx, "w", nil); err != nil || !reflect.DeepEqual(got, []int{1, 2}) {
		t.Errorf("%v (%v)", got, err)
	}
	answer("StopEvent", object{})
	if got, err := Run[*int](ctx, "w", nil); err != nil || got != nil {
		t.Errorf("%v (%v)", got, err)
	}
	host.response = []byte{cbor.Null}
	if _, err := Run[any](ctx, "w", nil); err == nil {
		t.Error("null is not an event")
	}
}

func TestStartsOfChildren(t *testing.T) {
	define(t, Step("only", stopAt[start]), Step("other", stopAt[first]))
	host := &recorder{response: []byte{cbor.Null}}
	withHost(t, host)
	type Items struct{ Items []string }
	type named struct {
		_ struct{} `weft:"BeginEvent"`
		A int
	}
	ctx := &Context[Untyped]{&invocation{step: &step{}}}
	for want, starts := range map[string][]any{
		"StartEvent": {nil, Items{[]string{"a"}}, &Items{}, struct{ A int }{1}, map[string]string{"a": "b"}, map[string]any(nil)},
		"kid":        {kid{Mode: "x"}, &kid{}},
		"BeginEvent": {named{A: 1}},
		"first":      {first{I: 1}},
	} {
		for _, ev := range starts {
			host.name = ""
			_, _ = Run[any](ctx, "w", ev)
			var request struct{ Event []any }
			if err := codec.Unmarshal(host.request, &request); err != nil || host.name != "run_workflow" {
				t.Fatalf("%T: %v", ev, err)
			}
			if request.Event[0] != want || reflect.TypeOf(request.Event[1]) != reflect.TypeOf(object{}) {
				t.Errorf("%T is sent as %v, want %s", ev, request.Event, want)
			}
		}
	}
}
