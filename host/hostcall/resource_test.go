package hostcall_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
)

const asksOutside = `{"abi": 1, "workflow": "w", "events": {}, "resources": [{"name": "crm", "kind": "http"}],
	"steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`

// A guest that calls a resource is unwound, and continues by replay with the answer. Each
// call is made once, and equal calls are counted, across a crash too.
func TestCallsOfResourcesReplay(t *testing.T) {
	w := newWorldOf(t, asksOutside)
	a := w.attempt(engine.AttemptOpen{}, nil)
	call := func(payload any) (string, abi.Status, error) {
		resp, status, _, err := a.Call(abi.ImportResource, value([]any{"crm", "add", payload}), 0)
		return abi.Diag(resp), status, err
	}
	var keys []string
	for round := range 4 {
		if round == 2 {
			open, record := w.crash()
			a = w.attempt(open, record)
		} else {
			a.Restart()
		}
		var got []string
		var err error
		for _, payload := range []any{1, 1, 2} {
			var answer string
			if answer, _, err = call(payload); err != nil {
				break
			}
			got = append(got, answer)
		}
		if want := []string{"1001", "1002", "1003"}[:round]; !slices.Equal(got, want) {
			t.Fatalf("round %d: the guest has the answers %v, want %v", round, got, want)
		}
		if round == 3 {
			break
		}
		if !errors.Is(err, hostcall.ErrSuspended) {
			t.Fatalf("round %d: %v", round, err)
		}
		out, ok := w.eng.OutCall(w.invID)
		if !ok || slices.Contains(keys, out.Key) {
			t.Fatalf("round %d: %+v, %t; keys %v", round, out, ok, keys)
		}
		keys = append(keys, out.Key)
		res, err := w.reduce(engine.ResourceAnswered{Invocation: w.invID, Attempt: 1, N: out.N, Value: value(1001 + round)})
		if err != nil {
			t.Fatal(err)
		}
		w.keep(res.Entry)
	}
}

// An error of a resource is the guest's answer. So is the error of an invalid call.
func TestResourceErrorsAreAnswers(t *testing.T) {
	w := newWorldOf(t, asksOutside)
	a := w.attempt(engine.AttemptOpen{}, nil)
	ask := func(req any) (abi.Status, error) {
		_, status, _, err := a.Call(abi.ImportResource, value(req), 0)
		return status, err
	}
	if status, err := ask([]any{"crm"}); err != nil || status != abi.StatusInvalidMessage {
		t.Errorf("half a request: %d, %v", status, err)
	}
	if status, err := ask([]any{"other", "add", nil}); err != nil || status != abi.StatusFailedPrecondition {
		t.Errorf("a resource that the plugin does not ask for: %d, %v", status, err)
	}
	if _, err := ask([]any{"crm", "add", nil}); !errors.Is(err, hostcall.ErrSuspended) {
		t.Fatal(err)
	}
	if _, err := w.reduce(engine.ResourceAnswered{Invocation: w.invID, Attempt: 1, N: 3, Err: &abi.Error{Code: "unavailable", Message: "no route"}}); err != nil {
		t.Fatal(err)
	}
	a.Restart()
	for i, req := range []any{[]any{"crm"}, []any{"other", "add", nil}} {
		if _, err := ask(req); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if status, err := ask([]any{"crm", "add", nil}); err != nil || status != abi.StatusUnavailable {
		t.Errorf("the error: %d, %v", status, err)
	}
}
