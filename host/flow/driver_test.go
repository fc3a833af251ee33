package flow

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// theater plays the host: it answers calls as functions would that add a letter, and
// notes them.
type theater struct {
	calls [][]byte
	cut   int // the call at which the invocation is unwound; 0: none
	last  map[string]any
	spent uint64
}

var errUnwound = errors.New("unwound")

// Call implements host.Calls.
func (th *theater) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	th.calls = append(th.calls, append([]byte(im+" "), req...))
	if len(th.calls) == th.cut {
		return nil, 0, 0, errUnwound
	}
	resp := []byte(abi.Null)
	var err error
	switch im {
	case abi.ImportStateGet, abi.ImportStateBegin:
		resp, err = abi.EncodeValue(map[string]any{"n": 2, "z": 1, "a": map[string]any{"y": 1, "x": 2}})
	case abi.ImportSendEvent:
		var m abi.SendEvent
		if m, err = abi.DecodeSendEvent(req); err != nil {
			break
		}
		var v any
		if v, err = abi.DecodeValue(m.Event.Body); err == nil {
			th.last = v.(map[string]any)
			th.last["step"] = m.Step
		}
	case abi.ImportWait:
		if th.last["step"] == "p.fail" {
			resp, err = event(map[string]any{FieldCall: th.last[FieldCall], "failed": "boom", "error": "no"})
		} else {
			resp, err = event(map[string]any{FieldCall: th.last[FieldCall], "content": fmt.Sprint(th.last["previous_step_content"], "!")})
		}
	}
	return resp, abi.StatusOK, clock + 1, err
}

func event(v map[string]any) ([]byte, error) {
	raw, err := body(v)
	if err != nil {
		return nil, err
	}
	return abi.Event{Type: TypeOutput, Body: raw}.Encode()
}

// Print implements host.Calls.
func (th *theater) Print(uint32, []byte) {}

// Checkpoint implements host.Token.
func (th *theater) Checkpoint(units uint64) error {
	th.spent += units
	return nil
}

// perform runs a flow's driver on a stage of its own.
func perform(tb testing.TB, d *Document, cut int, limits host.Limits) (*theater, host.InvocationResult, error) {
	tb.Helper()
	start, err := body(map[string]any{"input": "x", "session_state": map[string]any{"b": 1, "a": 2}})
	if err != nil {
		tb.Fatal(err)
	}
	in := abi.StepInput{Step: StepDrive, Trigger: []abi.Event{{Type: TypeStart, Body: start, ID: 1}},
		Run: abi.RunInfo{Tenant: "t", Workflow: "w", RunID: "r", SessionID: "s", Invocation: 7, Attempt: 1, Clock: time.Now().UnixNano()}}
	input, err := in.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	th := &theater{cut: cut}
	res, err := Run(d, host.Invocation{Input: input, Limits: limits.Complete(), Calls: th, Token: th}, nil)
	return th, res, err
}

// played is a flow with something of everything that waits for no branch.
const played = `{"session_state": {"c": {"d": 1}}, "steps": [
	{"name": "a", "function": "p.f", "retries": 2},
	{"name": "r", "type": "router", "selector": "session_state.map(k, k)[0] == 'a' ? ['g', 'h'] : ['h']", "multiple": true, "choices": [
		{"name": "g", "type": "steps", "steps": [{"name": "x", "function": "p.f"}]}, {"name": "h", "function": "p.f"}]},
	{"name": "l", "type": "loop", "max_iterations": 3, "end_condition": "session_state.exists(k, k == 'q')", "forward_output": true, "steps": [
		{"name": "y", "function": "p.f"}, {"name": "bad", "function": "p.fail", "on_error": "skip", "retries": 1}]},
	{"name": "c", "type": "condition", "evaluator": "{'b': 1, 'a': 2}.map(k, k) == ['a', 'b']", "steps": [{"name": "z", "function": "p.f"}]}]}`

// The driver makes the same calls each time, burns the same, and stops at once where
// a call says so: that is what makes replay safe.
func TestDriverIsDeterministic(t *testing.T) {
	d, problems := parsed(t, played)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	first, want, err := perform(t, d, 0, host.Limits{})
	if err != nil || want.Code != 0 || want.Err != nil {
		t.Fatalf("%+v, %v: %s", want, err, abi.Diag(want.Output))
	}
	for range 20 {
		again, got, err := perform(t, d, 0, host.Limits{})
		if err != nil || !bytes.Equal(got.Output, want.Output) || got.Fuel != want.Fuel || again.spent != first.spent {
			t.Fatalf("%+v, %v\nwant %+v", got, err, want)
		}
		for i := range first.calls {
			if i >= len(again.calls) || !bytes.Equal(again.calls[i], first.calls[i]) {
				t.Fatalf("call %d differs", i+1)
			}
		}
	}
	for cut := 1; cut <= len(first.calls); cut++ {
		th, _, err := perform(t, d, cut, host.Limits{})
		if !errors.Is(err, errUnwound) || len(th.calls) != cut {
			t.Fatalf("cut at call %d: %d calls, %v", cut, len(th.calls), err)
		}
		for i := range th.calls {
			if !bytes.Equal(th.calls[i], first.calls[i]) {
				t.Fatalf("cut at call %d: call %d differs", cut, i+1)
			}
		}
	}
}

// Retries wait twice as long each time, up to a minute.
func TestDriverBacksOff(t *testing.T) {
	d, problems := parsed(t, `{"steps": [{"name": "bad", "function": "p.fail", "on_error": "skip", "retries": 5, "backoff": "10s"}, {"name": "a", "function": "p.f"}]}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	th, res, err := perform(t, d, 0, host.Limits{})
	if err != nil || res.Code != 0 || res.Err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	var waits []time.Duration
	for _, call := range th.calls {
		if req, ok := bytes.CutPrefix(call, []byte(abi.ImportSleep+" ")); ok {
			m, err := abi.DecodeSleep(req)
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, m.Duration)
		}
	}
	if got, want := fmt.Sprint(waits), "[10s 20s 40s 1m0s 1m0s]"; got != want {
		t.Errorf("it waits for %s, want %s", got, want)
	}
}

// A long loop is done in stretches; what an invocation does for one is bounded.
func TestDriverDoesLoopsInStretches(t *testing.T) {
	d, problems := parsed(t, `{"steps": [{"name": "l", "type": "loop", "max_iterations": 10000, "steps": [{"name": "a", "function": "p.f"}]}]}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	th, res, err := perform(t, d, 0, host.Limits{}) // where nobody does the other stretches
	if err != nil || res.Code != 1 || !strings.Contains(abi.Diag(res.Output), "its output cannot be read") && !strings.Contains(abi.Diag(res.Output), "no iterations") {
		t.Fatalf("%+v, %v: %s", res, err, abi.Diag(res.Output))
	}
	if waits := countCalls(th, abi.ImportWait); waits != stretchCalls+1 {
		t.Errorf("%d waits, want %d and one for the rest", waits, stretchCalls)
	}
	for _, from := range []int64{-1, 10000, 1 << 40} { // as no flow asks for
		if err := (&driver{}).stretched(d.Nodes()[0], &scope{}, from, map[string]any{}); err == nil {
			t.Errorf("iterations from %d on", from)
		}
	}
}

func countCalls(th *theater, im abi.Import) (n int) {
	for _, call := range th.calls {
		if bytes.HasPrefix(call, []byte(im+" ")) {
			n++
		}
	}
	return n
}

// A flow that burns its fuel ends by a named error.
func TestDriverBurnsFuel(t *testing.T) {
	d, _ := parsed(t, played)
	_, whole, _ := perform(t, d, 0, host.Limits{})
	for _, fuel := range []uint64{1, whole.Fuel / 2, whole.Fuel - 1} {
		_, res, err := perform(t, d, 0, host.Limits{Fuel: fuel})
		if err != nil || res.Err == nil || res.Err.Code != host.RunFuelExhausted {
			t.Errorf("with %d units: %+v, %v", fuel, res, err)
		}
	}
	if _, res, err := perform(t, d, 0, host.Limits{Fuel: whole.Fuel}); err != nil || res.Err != nil {
		t.Errorf("with enough: %+v, %v", res, err)
	}
}

// What people give is held against the schema, whatever its type.
func TestInputsFit(t *testing.T) {
	d, problems := parsed(t, `{"steps": [{"name": "a", "function": "p.f", "review": {"input": {"schema": {"type": "integer", "minimum": 3}}}}]}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	q := d.Nodes()[0].Review.Input
	for v, want := range map[any]bool{int64(3): true, int64(2): false, "x": false} {
		if err := q.fits(v); (err == nil) != want {
			t.Errorf("fits(%v): %v", v, err)
		}
	}
}
