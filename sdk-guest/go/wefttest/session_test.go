package wefttest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// script is a guest whose steps are functions from the bodies of events to an
// output.
type script struct {
	manifest map[string]any
	steps    map[string]func(calls Calls, bodies []map[string]any) any
}

func (s script) Describe() ([]byte, error) { return codec.Append(nil, s.manifest) }

func (s script) Step(calls Calls, input []byte) ([]byte, int, error) {
	parts := decodeValue(input).([]any)
	events := parts[1].([]any)
	if len(events) > 0 {
		if _, one := events[0].(string); one {
			events = []any{events}
		}
	}
	var bodies []map[string]any
	for _, ev := range events {
		bodies = append(bodies, ev.([]any)[1].(map[string]any))
	}
	output, err := codec.Append(nil, []any{0, s.steps[parts[0].(string)](calls, bodies)})
	return output, 0, err
}

func event1(name string, n int) any { return []any{name, map[string]any{"n": n}} }

// nested fans out twice: each of 3 groups into as many items as its number, and
// items of odd groups are dropped on their way.
func nested() script {
	stepOf := func(name string, accepts, emits any) any {
		return map[string]any{"name": name, "accepts": []any{accepts}, "emits": []any{emits}}
	}
	list := func(name string) any { return []any{"list", []any{name}} }
	return script{
		manifest: map[string]any{"abi": 1, "workflow": "nested",
			"events": map[string]any{"Group": map[string]any{}, "Item": map[string]any{}, "Done": map[string]any{}, "Sum": map[string]any{}}, "steps": []any{
				stepOf("groups", "StartEvent", list("Group")), stepOf("items", "Group", list("Item")), stepOf("work", "Item", "Done"),
				stepOf("sum", list("Done"), "Sum"), stepOf("end", list("Sum"), "StopEvent"),
			}},
		steps: map[string]func(Calls, []map[string]any) any{
			"groups": func(Calls, []map[string]any) any {
				return []any{event1("Group", 1), event1("Group", 2), event1("Group", 0), event1("Group", 4)}
			},
			"items": func(_ Calls, in []map[string]any) any {
				var items []any
				for range in[0]["n"].(int64) {
					items = append(items, event1("Item", int(in[0]["n"].(int64))))
				}
				if items == nil {
					return []any{}
				}
				return items
			},
			"work": func(_ Calls, in []map[string]any) any {
				if in[0]["n"].(int64)%2 == 1 {
					return nil
				}
				return []any{"Done", in[0]}
			},
			"sum": func(_ Calls, in []map[string]any) any { return event1("Sum", len(in)) },
			"end": func(_ Calls, in []map[string]any) any {
				var sums []any
				for _, body := range in {
					sums = append(sums, body["n"])
				}
				return []any{"StopEvent", map[string]any{"result": sums}}
			},
		},
	}
}

// Streams within streams end one by one, the innermost first; empty ones too.
func TestNestedStreams(t *testing.T) {
	run, err := NewSessionOn(nested()).Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	sums, _ := run.Result.([]any)
	for _, n := range sums {
		total += n.(int64)
	}
	if len(sums) != 4 || total != 6 { // 0 of group 1, 2 of 2, 0 of 0, 4 of 4
		t.Errorf("sums %v", run.Result)
	}
	if err := run.Post("StartEvent", nil); err == nil {
		t.Error("an event after the end")
	}
}

// Calls that a host would refuse are refused with a code.
func TestRefusedCalls(t *testing.T) {
	var got []string
	call := func(calls Calls, name string, request ...any) {
		b, err := codec.Append(nil, request)
		if request == nil {
			b = []byte{0xff}
		}
		if err != nil {
			t.Fatal(err)
		}
		if status, response := calls.Call(name, b); status != 0 {
			e, _ := abi.DecodeError(response)
			got = append(got, e.Code)
		} else {
			got = append(got, "ok")
		}
	}
	guest := script{
		manifest: map[string]any{"abi": 1, "workflow": "calls", "events": map[string]any{}, "steps": []any{
			map[string]any{"name": "only", "accepts": []any{"StartEvent"}, "emits": []any{"StopEvent"}}}},
		steps: map[string]func(Calls, []map[string]any) any{"only": func(calls Calls, _ []map[string]any) any {
			call(calls, "state_get", "none")
			call(calls, "state_get", "none", nil)
			call(calls, "state_commit", 1)
			call(calls, "state_begin", "")
			call(calls, "state_begin", "")
			call(calls, "state_get", "")
			call(calls, "state_commit", map[string]any{"n": 1})
			call(calls, "state_edit", []any{"test", "n", 2})
			call(calls, "state_edit", []any{"append", "n", 2})
			call(calls, "send_event", []any{"Other", map[string]any{}})
			call(calls, "run_workflow", 1)
			call(calls, "call_resource", "llm", "ask", nil)
			call(calls, "log")
			return []any{"StopEvent", map[string]any{"result": nil}}
		}},
	}
	session := NewSessionOn(guest)
	if _, err := session.Run(nil); err != nil {
		t.Fatal(err)
	}
	want := "not_found ok failed_precondition ok failed_precondition ok ok conflict failed_precondition invalid_output invalid_message failed_precondition invalid_message"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if state := session.State(); !reflect.DeepEqual(state, map[string]any{"n": int64(1)}) {
		t.Errorf("state %v", state)
	}
	var n int
	if err := session.Read("n", &n); err != nil || n != 1 {
		t.Errorf("n is %d (%v)", n, err)
	}
}

// A copy of the state is not the state.
func TestStateIsACopy(t *testing.T) {
	session := NewSessionOn(nested())
	session.State()["x"] = 1
	if len(session.State()) != 0 {
		t.Error("the copy reaches the session")
	}
}
