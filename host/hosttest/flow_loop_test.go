package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
)

// Several invocations run a loop of many iterations. The outputs, the state, the events
// and the passed values are those of one loop.
func TestFlowLongLoops(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	for i, tt := range []struct {
		name, loop string
		want       string // the result, or part of the error
		count      int
	}{
		{"to its end", `"max_iterations": 330, "steps": [{"name": "n", "function": "kit.count"}]`, "330", 330},
		{"to its condition", `"max_iterations": 9999, "end_condition": "current_iteration == 215 && step_outputs.n == 215", "steps": [{"name": "n", "function": "kit.count"}]`, "215", 215},
		{"grows", `"max_iterations": 233, "forward_output": true, "end_condition": "size(last_step_content) == 211", "steps": [{"name": "a", "function": "kit.a"}]`, `"x` + strings.Repeat("a", 210) + `"`, 0},
		{"a condition that fails late", `"max_iterations": 500, "end_condition": "1 / (current_iteration - 222) == 7", "steps": [{"name": "n", "function": "kit.count"}]`, `node l: "1 / (current_iteration - 222) == 7": the expression failed: division by zero`, 222},
		{"a step that fails late", `"max_iterations": 500, "steps": [{"name": "n", "function": "kit.count"}, {"name": "r", "type": "router", "selector": "session_state.count < 150 ? [] : ['x']", "choices": [{"name": "x", "function": "kit.fail"}]}]`, "node l/r/x: asked to fail", 150},
		{"within another", `"max_iterations": 2, "steps": [{"name": "i", "type": "loop", "max_iterations": 120, "steps": [{"name": "n", "function": "kit.count"}]}]`, "240", 240},
	} {
		workflow := fmt.Sprint("loop-", i)
		putFlow(t, h, workflow, json.RawMessage(`{"steps": [{"name": "l", "type": "loop", `+tt.loop+`}]}`))
		run := h.Run(t, workflow, in(workflow, fields{"input": "x"}))
		if run.Status == "completed" && string(run.Result.Value.Result) != tt.want || run.Status != "completed" && !strings.Contains(run.Error, tt.want) {
			t.Errorf("%s: %s %s %s\nwant %s", tt.name, run.Status, run.Error, run.Result.Value.Result, tt.want)
		}
		if n := sessionState(t, h, workflow)["count"]; tt.count > 0 && n != float64(tt.count) {
			t.Errorf("%s: %v calls, want %d", tt.name, n, tt.count)
		}
		if strings.Contains(tt.loop, `"name": "i"`) || run.Status != "completed" {
			continue
		}
		iteration := 0
		for _, e := range h.Events(t, run.HandlerID, "", nil) {
			if e.Type == "LoopIterationStarted" {
				if iteration++; told(e)["iteration"] != float64(iteration) {
					t.Fatalf("%s: iteration %v where %d was to be", tt.name, told(e)["iteration"], iteration)
				}
			}
		}
	}
}

// People are asked between iterations of any stretch, over a kill.
func TestFlowLongLoopOverKills(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "kit", hosttest.BuildPlugin(t, "flowkit"))
	putFlow(t, &p.Host, "f", json.RawMessage(`{"steps": [{"name": "l", "type": "loop", "max_iterations": 260, "steps": [{"name": "n", "function": "kit.count"},
		{"name": "q", "type": "condition", "evaluator": "previous_step_content == 255", "steps": [{"name": "a", "function": "kit.a", "review": {"confirm": true}}]}]}]}`))
	run := p.RunNoWait(t, "f", in("s", fields{"input": "x"}))
	asked := question(t, &p.Host, run.HandlerID, 1)
	if n := sessionState(t, &p.Host, "s")["count"]; n != 255.0 {
		t.Errorf("it has counted to %v", n)
	}
	p = kill(t, p, data)
	says(t, &p.Host, run.HandlerID, asked, fields{"approved": true})
	p.Events(t, run.HandlerID, "", nil)
	if n := sessionState(t, &p.Host, "s")["count"]; n != 260.0 {
		t.Errorf("it has counted to %v", n)
	}
	clean(t, data)
}

// A run of a flow is forked where it rests: after a function, and while people are asked.
// The fork continues independently, with the state at that point.
func TestFlowForks(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	putFlow(t, h, "f", json.RawMessage(`{"steps": [{"name": "a", "function": "kit.count"},
		{"name": "p", "type": "parallel", "steps": [{"name": "x", "function": "kit.count"}, {"name": "y", "function": "kit.count"}]},
		{"name": "n", "function": "kit.count", "review": {"confirm": true, "timeout": "1h"}}, {"name": "z", "function": "kit.count"}]}`))
	run := h.RunNoWait(t, "f", in("s", fields{"input": "x"}))
	asked := question(t, h, run.HandlerID, 1)
	_, out := h.Do(t, http.MethodGet, "/handlers/"+run.HandlerID+"/journal", nil)
	var journal struct {
		Entries []struct {
			Seq      uint64
			Forkable bool
		}
	}
	if err := json.Unmarshal(out, &journal); err != nil {
		t.Fatal(err)
	}
	forks := 0
	for _, e := range journal.Entries {
		if !e.Forkable {
			continue
		}
		status, out := h.Do(t, http.MethodPost, "/handlers/"+run.HandlerID+"/fork", map[string]any{"at": e.Seq})
		var fork struct {
			HandlerID string `json:"handler_id"`
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal(out, &fork); err != nil || status != http.StatusOK {
			t.Fatalf("fork at %d: %d %s", e.Seq, status, out)
		}
		forks++
		mine := asked // the fork does not repeat the earlier question
		if _, out := h.Do(t, http.MethodGet, "/handlers/"+fork.HandlerID, nil); !strings.Contains(string(out), fmt.Sprintf(`"waiter_id":%q`, asked["review"])) {
			mine = question(t, h, fork.HandlerID, 1)
		}
		says(t, h, fork.HandlerID, mine, fields{"approved": true})
		h.Events(t, fork.HandlerID, "", nil)
		_, out = h.Do(t, http.MethodGet, "/handlers/"+fork.HandlerID, nil)
		if rec := record(t, out); rec.Status != "completed" || string(rec.Result.Value.Result) != "5" {
			t.Errorf("the fork at %d: %s", e.Seq, out)
		}
		if n := sessionState(t, h, fork.SessionID)["count"]; n != 5.0 {
			t.Errorf("the fork at %d has counted to %v", e.Seq, n)
		}
	}
	if forks < 3 {
		t.Errorf("%d forks of %d entries", forks, len(journal.Entries))
	}
	if n := sessionState(t, h, "s")["count"]; n != 3.0 {
		t.Errorf("the forks have changed the run they are of: %v", n)
	}
	says(t, h, run.HandlerID, asked, fields{"approved": false})
	h.Events(t, run.HandlerID, "", nil)
	if n := sessionState(t, h, "s")["count"]; n != 4.0 {
		t.Errorf("the run itself has counted to %v", n)
	}
}

// An expression that costs too much fails its node in bounded time, and nothing else.
func TestFlowExpressionsThatCostTooMuch(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	const dear = `"input.all(x, input.all(y, input.all(z, x + y + z >= 0)))"`
	steps := map[string]string{
		"evaluator":     `{"name": "c", "type": "condition", "evaluator": ` + dear + `, "steps": [{"name": "a", "function": "kit.count"}]}`,
		"selector":      `{"name": "c", "type": "router", "selector": "` + strings.Trim(dear, `"`) + ` ? 'a' : 'a'", "choices": [{"name": "a", "function": "kit.count"}]}`,
		"end_condition": `{"name": "c", "type": "loop", "end_condition": ` + dear + `, "steps": [{"name": "a", "function": "kit.echo"}]}`,
	}
	list := make([]int, 1000)
	for what, step := range steps {
		putFlow(t, h, "dear", json.RawMessage(`{"steps": [{"name": "n", "function": "kit.count"}, `+step+`]}`))
		run := h.Run(t, "dear", in(what, fields{"input": list}))
		if !strings.Contains(run.Error, "node c: ") || !strings.Contains(run.Error, "cost limit exceeded: the work takes more than") {
			t.Errorf("%s: %s %s", what, run.Status, run.Error)
		}
		if n := sessionState(t, h, what)["count"]; n != 1.0 {
			t.Errorf("%s: counted to %v", what, n)
		}
	}
}

// An expression holds a core no longer than an invocation may: it is ended while it runs.
func TestFlowExpressionsEndWithTheirTime(t *testing.T) {
	limits, err := limit.Parse([]byte(`{"plugins": {"slow": {"wall_time": "1ms"}}}`)) // by the workflow's name
	if err != nil {
		t.Fatal(err)
	}
	h := flowHost(t, hosttest.Config{Limits: limits})
	// 160,000 comparisons take some 20 ms, far less than what one evaluation may cost.
	putFlow(t, h, "slow", json.RawMessage(`{"steps": [{"name": "c", "type": "condition", "evaluator": "input.all(x, input.all(y, x + y >= 0))", "steps": [{"name": "a", "function": "kit.count"}]}]}`))
	run := h.Run(t, "slow", in("s", fields{"input": make([]int, 400)}))
	if run.Status != "failed" || !strings.Contains(run.Error, "the flow held a core for more than 1ms") {
		t.Errorf("%s: %s", run.Status, run.Error)
	}
}
