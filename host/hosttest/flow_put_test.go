package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// refusedFlow wants a flow to be refused with problems, given as CODE NODE.
func refusedFlow(t *testing.T, h *hosttest.Host, name, flow, want string) {
	t.Helper()
	status, out := h.Do(t, http.MethodPut, "/workflows/"+name, fmt.Sprintf(`{"flow": %s}`, flow))
	var answer struct {
		Problems []struct{ Code, Step string }
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range answer.Problems {
		got = append(got, p.Code+" "+p.Step)
	}
	if status != http.StatusUnprocessableEntity || strings.Join(got, "; ") != want {
		t.Errorf("put %s: %d %s\nwant %s", name, status, out, want)
	}
}

// One answer contains all problems of a flow: those of the document and those of the
// names in it.
func TestFlowProblemsTogether(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	put := func(name string, wasm []byte) {
		if status, out := h.Do(t, http.MethodPut, "/plugins/"+name, wasm); status != http.StatusCreated {
			t.Fatalf("upload %s: %d %s", name, status, out)
		}
	}
	put("counter", hosttest.Plugin(t, "counter-tinygo"))
	refusedFlow(t, h, "f", `{"steps": [
		{"name": "a", "function": "kit.nothing", "timeout": "soon"},
		{"name": "b", "function": "none.f"},
		{"name": "b", "function": "kit.a"},
		{"name": "c", "function": "counter.increment"},
		{"name": "d", "type": "loop", "end_condition": "kit.gone", "steps": [{"name": "e", "workflow": "nowhere"}]},
		{"name": "g", "type": "condition", "evaluator": "1 +", "steps": [{"name": "h", "function": "kit.a"}], "colour": true}]}`,
		"bad_duration a; duplicate_name b; invalid_expression g; unknown_field g; unknown_function a; unknown_plugin b; wrong_kind c; unknown_function d; unknown_workflow d/e")
	if status, _ := h.Do(t, http.MethodGet, "/workflows/f", nil); status != http.StatusNotFound {
		t.Errorf("a refused flow is there: %d", status)
	}
	if status, out := h.Do(t, http.MethodPut, "/workflows/counter", `{"flow": {"steps": [{"name": "a", "function": "kit.a"}]}}`); status != http.StatusConflict {
		t.Errorf("a flow by the name of a plugin's workflow: %d %s", status, out)
	}
	if status, out := h.Do(t, http.MethodPut, "/workflows/f", `{"flow": {"steps": [{"name": "a", "function": "kit.a"}]}, "plugins": ["kit"]}`); status != http.StatusBadRequest {
		t.Errorf("a flow with plugins: %d %s", status, out)
	}
	if status, out := h.Do(t, http.MethodPut, "/workflows/f", `{"flow": [1]}`); status != http.StatusBadRequest {
		t.Errorf("a flow that is a list: %d %s", status, out)
	}
	putFlow(t, h, "one", json.RawMessage(`{"steps": [{"name": "a", "function": "kit.a"}]}`))
	putFlow(t, h, "two", json.RawMessage(`{"steps": [{"name": "w", "workflow": "one"}]}`))
	refusedFlow(t, h, "one", `{"steps": [{"name": "w", "workflow": "two"}]}`, "limit_exceeded w")
	refusedFlow(t, h, "one", `{"steps": [{"name": "w", "workflow": "one"}]}`, "limit_exceeded w")
}

// A flow is read back as it was put. It has versions, and a plugin's version that would
// break the flow is refused.
func TestFlowIsKept(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "kit", hosttest.BuildPlugin(t, "flowkit"))
	const flow = `{"description": "adds", "steps": [{"name": "a", "function": "kit.a"}, {"name": "if", "type": "condition", "evaluator": "input == 'x'", "steps": [{"name": "b", "function": "kit.b"}]}]}`
	putFlow(t, &p.Host, "f", json.RawMessage(flow))
	if status, out := p.Do(t, http.MethodPut, "/workflows/f", fmt.Sprintf(`{"flow": %s}`, flow)); status != http.StatusOK {
		t.Errorf("put again: %d %s", status, out)
	}
	p = kill(t, p, data)
	_, out := p.Do(t, http.MethodGet, "/workflows/f", nil)
	var about struct {
		Plugins  []string
		Flow     any
		Composed bool
	}
	var want any
	if err := json.Unmarshal([]byte(flow), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &about); err != nil || !reflect.DeepEqual(about.Flow, want) || !about.Composed || len(about.Plugins) != 1 {
		t.Errorf("get: %s", out)
	}
	expect(t, p.Result(t, "f", start(fields{"input": "x"})), `"xab"`)
	status, out := p.Do(t, http.MethodPut, "/plugins/kit", hosttest.BuildPlugin(t, "greet-part"))
	if status != http.StatusUnprocessableEntity || !strings.Contains(string(out), "in workflow f: node a") {
		t.Errorf("a version without the functions: %d %s", status, out)
	}
	if status, out := p.Do(t, http.MethodDelete, "/plugins/kit", nil); status != http.StatusConflict {
		t.Errorf("delete the plugin: %d %s", status, out)
	}
	_, out = p.Do(t, http.MethodGet, "/workflows/f/representation", nil)
	for _, node := range []string{`"id":"a"`, `"id":"if/b"`, `"source":"a","target":"if"`, `"source":"if","target":"StopEvent"`} {
		if !strings.Contains(string(out), node) {
			t.Errorf("the drawing has no %s: %s", node, out)
		}
	}
	if status, out := p.Do(t, http.MethodDelete, "/workflows/f", nil); status != http.StatusNoContent {
		t.Errorf("delete: %d %s", status, out)
	}
	clean(t, data)
}

// Two plugins may have functions with the same name; each flow calls the right one.
func TestFlowOfTwoPlugins(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	if status, out := h.Do(t, http.MethodPut, "/plugins/other.kit", hosttest.BuildPlugin(t, "flowkit", "other")); status != http.StatusCreated {
		t.Fatalf("upload: %d %s", status, out)
	}
	putFlow(t, h, "f", json.RawMessage(`{"steps": [{"name": "a", "function": "kit.a"}, {"name": "b", "function": "other.kit.a"}, {"name": "c", "function": "kit.a"}]}`))
	expect(t, h.Result(t, "f", start(fields{"input": "x"})), `"xaOTHERa"`)
}

// A waiting run moves to a new version of its flow, if the new version would have done
// the same so far.
func TestFlowMigrates(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	flow := func(first, last string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"steps": [{"name": "a", "function": "kit.%s"},
			{"name": "n", "function": "kit.b", "review": {"confirm": true}}, {"name": "z", "function": "kit.%s"}]}`, first, last))
	}
	putFlow(t, h, "f", flow("a", "a"))
	run := h.RunNoWait(t, "f", start(fields{"input": "x"}))
	asked := question(t, h, run.HandlerID, 1)
	putFlow(t, h, "f", flow("c", "c"))
	if status, out := h.Do(t, http.MethodPost, "/workflows/f/migrate?dry_run=false", nil); status != http.StatusOK || !strings.Contains(string(out), `"moved":0`) {
		t.Errorf("to a flow that would have called another function: %d %s", status, out)
	}
	putFlow(t, h, "f", flow("a", "c"))
	if status, out := h.Do(t, http.MethodPost, "/workflows/f/migrate?dry_run=false", nil); status != http.StatusOK || !strings.Contains(string(out), `"moved":1`) {
		t.Errorf("to one that goes on otherwise: %d %s", status, out)
	}
	says(t, h, run.HandlerID, asked, fields{"approved": true})
	h.Events(t, run.HandlerID, "", nil)
	_, out := h.Do(t, http.MethodGet, "/handlers/"+run.HandlerID, nil)
	expect(t, string(record(t, out).Result.Value.Result), `"xabc"`)
}

// The initial state of a flow's sessions must match the state of its plugins.
func TestFlowStateFitsItsPlugins(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	h.Load(t, "tinygo", "shopping-list")
	refusedFlow(t, h, "f", `{"session_state": {"shopping_list": "milk"}, "steps": [{"name": "a", "function": "shopping-list.add_item"}]}`, "state_default ")
	putFlow(t, h, "f", json.RawMessage(`{"session_state": {"shopping_list": ["milk"], "more": 1}, "steps": [{"name": "a", "function": "shopping-list.list_items"}]}`))
	expect(t, h.Result(t, "f", start(fields{})), `"Shopping list:\n- milk"`)
	_, out := h.Do(t, http.MethodPost, "/workflows/f/run", `{"start_event": {"session_state": {"shopping_list": 7}}}`)
	if !strings.Contains(string(out), "shopping_list") || !strings.Contains(string(out), "failed") {
		t.Errorf("a start with another state: %s", out)
	}
}
