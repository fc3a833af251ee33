package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// Branches that edit one state 10,000 times concurrently lose nothing.
func TestFlowBranchesShareTheState(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	var branches []string
	for i := range 10 {
		branches = append(branches, fmt.Sprintf(`{"name": "n%d", "function": "kit.many"}`, i))
	}
	putFlow(t, h, "f", json.RawMessage(`{"steps": [{"name": "p", "type": "parallel", "steps": [`+strings.Join(branches, ",")+`]}]}`))
	h.Result(t, "f", `{"start_event": {"input": 1000}, "session": "s"}`)
	if n := sessionState(t, h, "s")["count"]; n != float64(10_000) {
		t.Errorf("10,000 edits came to %v", n)
	}
}

// As many branches run concurrently as allowed, and no more.
func TestFlowConcurrency(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	putFlow(t, h, "f", json.RawMessage(`{"steps": [{"name": "p", "type": "parallel", "max_concurrency": 2, "steps": [
		{"name": "a", "function": "kit.a", "review": {"confirm": true}}, {"name": "b", "function": "kit.b", "review": {"confirm": true}},
		{"name": "c", "function": "kit.c"}, {"name": "d", "function": "kit.fail", "on_error": "skip"}]}]}`))
	run := h.RunNoWait(t, "f", start(fields{"input": "x"}))
	// Two branches ask before either is answered, so both are running.
	one, two := question(t, h, run.HandlerID, 1), question(t, h, run.HandlerID, 2)
	says(t, h, run.HandlerID, one, fields{"approved": true})
	says(t, h, run.HandlerID, two, fields{"approved": true})
	running, most := 0, 0
	for _, e := range h.Events(t, run.HandlerID, "", nil) {
		if told(e)["node"] == "p" {
			continue
		}
		switch e.Type {
		case "StepStarted":
			running++
			most = max(most, running)
		case "StepCompleted", "StepFailed":
			running--
		}
	}
	if running != 0 || most > 2 {
		t.Errorf("%d branches ran at once, want 2 at most; %d have not ended", most, running)
	}
}

// A function that answers after its timeout has no effect: nothing waits for the answer,
// nothing keeps it, and the next call of the function gets its own answer.
func TestFlowDropsLateAnswers(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	putFlow(t, h, "f", json.RawMessage(`{"steps": [
		{"name": "l", "type": "loop", "max_iterations": 50, "steps": [{"name": "s", "function": "kit.slow", "timeout": "1ms", "on_error": "skip"}]},
		{"name": "a", "function": "kit.echo"}]}`))
	run := h.Run(t, "f", start(fields{"input": 3600}))
	if run.Status != "completed" || string(run.Result.Value.Result) != "3600" {
		t.Errorf("the run: %+v", run)
	}
	started := h.RunNoWait(t, "f", start(fields{"input": 3600}))
	for _, typ := range []string{"StepOutput", "StepInput"} {
		status, out := h.Do(t, http.MethodPost, "/events/"+started.HandlerID, fmt.Sprintf(`{"event": {"type": %q, "value": {"call": "1.1.1"}}}`, typ))
		if status == http.StatusOK {
			t.Errorf("a client made a %s: %s", typ, out)
		}
	}
}

// A function is stopped at its timeout whatever it does: computing, waiting for a retry,
// sleeping, or queueing for a worker.
func TestFlowStopsWhatIsLate(t *testing.T) {
	h := flowHost(t, hosttest.Config{Tokens: 1})
	putFlow(t, h, "f", json.RawMessage(`{"steps": [
		{"name": "w", "function": "kit.stubborn", "timeout": "20ms", "on_error": "skip"},
		{"name": "s", "function": "kit.spin", "timeout": "20ms", "on_error": "skip"},
		{"name": "p", "type": "parallel", "steps": [
			{"name": "a", "function": "kit.alone", "timeout": "40ms", "on_error": "skip"},
			{"name": "b", "function": "kit.alone", "timeout": "20ms", "on_error": "skip"}]},
		{"name": "n", "function": "kit.alone", "timeout": "1m"}]}`))
	expect(t, h.Result(t, "f", start(fields{"input": 0})), `"late"`)
	run := h.RunNoWait(t, "f", start(fields{"input": 3600}))
	h.Events(t, run.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "StepStarted" && told(e)["node"] == "n" })
	_, out := h.Do(t, http.MethodGet, "/handlers/"+run.HandlerID, nil)
	if text := string(out); strings.Contains(text, "StepOutput") || strings.Contains(text, "kit.stubborn") {
		t.Errorf("what the run waits for: %s", text)
	}
}

// The events that a flow publishes about its nodes.
func TestFlowEvents(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	putFlow(t, h, "f", json.RawMessage(`{"steps": [
		{"name": "g", "type": "steps", "steps": [{"name": "a", "function": "kit.a"}]},
		{"name": "l", "type": "loop", "max_iterations": 2, "steps": [{"name": "b", "function": "kit.b"}]},
		{"name": "f", "function": "kit.fail"}]}`))
	run := h.Run(t, "f", start(fields{"input": "x"}))
	var got []string
	for _, e := range h.Events(t, run.HandlerID, "", nil) {
		got = append(got, strings.TrimSpace(fmt.Sprint(e.Type, " ", told(e)["node"], " ", told(e)["iteration"])))
	}
	want := []string{
		"StepStarted g <nil>", "StepStarted g/a <nil>", "StepCompleted g/a <nil>", "StepCompleted g <nil>",
		"StepStarted l <nil>", "LoopIterationStarted l 1", "StepStarted l/b <nil>", "StepCompleted l/b <nil>", "LoopIterationCompleted l 1",
		"LoopIterationStarted l 2", "StepStarted l/b <nil>", "StepCompleted l/b <nil>", "LoopIterationCompleted l 2", "StepCompleted l <nil>",
		"StepStarted f <nil>", "StepFailed f <nil>", "WorkflowFailedEvent <nil> <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A failure names each place on its path once: a flow in a flow in a flow.
func TestNestedFlowFailuresNameEachPlaceOnce(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	putFlow(t, h, "c", json.RawMessage(`{"steps": [{"name": "work", "function": "kit.fail"}]}`))
	putFlow(t, h, "b", json.RawMessage(`{"steps": [{"name": "p", "type": "parallel", "steps": [{"name": "inner", "workflow": "c"}]}]}`))
	putFlow(t, h, "a", json.RawMessage(`{"steps": [{"name": "outer", "workflow": "b"}]}`))
	failed := func(workflow string) string {
		_, out := h.Do(t, http.MethodPost, "/workflows/"+workflow+"/run", start(fields{"input": "x"}))
		var rec struct{ Error string }
		if err := json.Unmarshal(out, &rec); err != nil || rec.Error == "" {
			t.Fatalf("%s: %v: %s", workflow, err, out)
		}
		return rec.Error
	}
	_, cause, _ := strings.Cut(failed("c"), "node work: ")
	want := regexp.MustCompile(`^node outer: workflow b: the child run \(handler \w+\) failed: ` +
		`node p/inner: workflow c: the child run \(handler \w+\) failed: node work: ` + regexp.QuoteMeta(cause) + `$`)
	if got := failed("a"); cause == "" || !want.MatchString(got) {
		t.Errorf("the run's error is %q, want %s", got, want)
	}
}

// told returns the body of an event.
func told(e hosttest.Event) map[string]any {
	var v map[string]any
	_ = json.Unmarshal(e.Value, &v) // a body that is not an object gives nil
	return v
}

// question waits until a flow asks for the n-th time, and returns the question.
func question(t *testing.T, h *hosttest.Host, handler string, n int) map[string]any {
	t.Helper()
	var asked map[string]any
	h.Events(t, handler, "", func(e hosttest.Event) bool {
		if e.Type == "InputRequiredEvent" {
			if n--; n == 0 {
				asked = told(e)
			}
		}
		return n == 0
	})
	if asked == nil {
		t.Fatal("nobody was asked")
	}
	return asked
}

// says answers a question.
func says(t *testing.T, h *hosttest.Host, handler string, asked map[string]any, with fields) {
	t.Helper()
	with["review"] = asked["review"]
	status, out := h.Do(t, http.MethodPost, "/events/"+handler, map[string]any{"event": map[string]any{"type": "HumanResponseEvent", "value": with}})
	if status != http.StatusOK {
		t.Fatalf("answer: %d %s", status, out)
	}
}

// TestFlowReviews plays a list of people's answers.
func TestFlowReviews(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	for i, tt := range []struct {
		name, node string
		answers    []fields
		want       string
	}{
		{"confirmed", `"function": "kit.a", "review": {"confirm": "really?"}`, []fields{{"approved": true}}, `"xa"`},
		{"not confirmed", `"function": "kit.a", "review": {"confirm": true}`, []fields{{"approved": false}}, `"Skipped n"`},
		{"cancelled", `"function": "kit.a", "review": {"confirm": true, "on_reject": "cancel"}`, []fields{{"approved": false, "feedback": "not now"}}, "people said no to its review (confirm): not now"},
		{"else", `"type": "condition", "evaluator": true, "steps": [{"name": "a", "function": "kit.a"}], "else_steps": [{"name": "b", "function": "kit.b"}], "review": {"confirm": true, "on_reject": "else"}`, []fields{{"approved": false}}, `"xb"`},
		{"output taken", `"function": "kit.a", "review": {"output": true}`, []fields{{"approved": true}}, `"xa"`},
		{"output edited", `"function": "kit.a", "review": {"output": true}`, []fields{{"approved": true, "output": "mine"}}, `"mine"`},
		{"output made anew", `"function": "kit.count", "review": {"output": true, "on_reject": "retry"}`, []fields{{"approved": false}, {"approved": false}, {"approved": true}}, `3`},
		{"input", `"function": "kit.data", "review": {"input": {"message": "what?"}}`, []fields{{"input": "k"}}, `null`},
		{"iteration", `"type": "loop", "max_iterations": 9, "steps": [{"name": "a", "function": "kit.count"}], "review": {"iteration": true}`, []fields{{"approved": true}, {"approved": false}}, `2`},
		{"repaired", `"function": "kit.unsteady", "on_error": "pause"`, []fields{{"approved": true}, {"approved": true}}, `"steady"`},
		{"left out", `"function": "kit.fail", "on_error": "pause"`, []fields{{"approved": false}}, `null`},
		{"silence cancels", `"function": "kit.a", "review": {"confirm": true, "timeout": 0.01}`, nil, "nobody answered its review (confirm) within 10ms"},
		{"silence skips", `"function": "kit.a", "review": {"confirm": true, "timeout": 0.01, "on_timeout": "skip"}`, nil, `"Skipped n"`},
		{"silence approves", `"function": "kit.a", "review": {"confirm": true, "timeout": 0.01, "on_timeout": "approve"}`, nil, `"xa"`},
		{"an answer that is none", `"function": "kit.a", "review": {"confirm": true}`, []fields{{"approved": "perhaps"}, {}, {"approved": true}}, `"xa"`},
		{"given up", `"function": "kit.fail", "on_error": "pause"`, []fields{{"cancel": true}}, "node n: asked to fail"},
		{"input that does not fit", `"function": "kit.user", "review": {"input": {"message": "how many?", "schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}}}`,
			[]fields{{"input": fields{"n": "two"}}, {"input": fields{"n": 2}}}, `{"n":2}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			workflow := fmt.Sprint("review-", i)
			putFlow(t, h, workflow, json.RawMessage(`{"steps": [{"name": "n", `+tt.node+`}]}`))
			run := h.RunNoWait(t, workflow, start(fields{"input": "x"}))
			for n, answer := range tt.answers {
				asked := question(t, h, run.HandlerID, n+1)
				if asked["node"] != "n" {
					t.Errorf("asked %v", asked)
				}
				says(t, h, run.HandlerID, asked, answer)
			}
			h.Events(t, run.HandlerID, "", nil)
			_, out := h.Do(t, http.MethodGet, "/handlers/"+run.HandlerID, nil)
			rec := record(t, out)
			if rec.Status == "completed" {
				expect(t, string(rec.Result.Value.Result), tt.want)
			} else if !strings.Contains(rec.Error, tt.want) {
				t.Errorf("the run: %s\nwant %s", out, tt.want)
			}
		})
	}
}

// A question survives a kill, and its timeout continues.
func TestFlowReviewOverKills(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "kit", hosttest.BuildPlugin(t, "flowkit"))
	putFlow(t, &p.Host, "f", json.RawMessage(`{"steps": [{"name": "c", "function": "kit.count"}, {"name": "n", "function": "kit.a", "review": {"confirm": true, "timeout": "1h"}}]}`))
	run := p.RunNoWait(t, "f", start(fields{"input": "x"}))
	asked := question(t, &p.Host, run.HandlerID, 1)
	p = kill(t, p, data)
	says(t, &p.Host, run.HandlerID, asked, fields{"approved": true})
	p.Events(t, run.HandlerID, "", nil)
	_, out := p.Do(t, http.MethodGet, "/handlers/"+run.HandlerID, nil)
	expect(t, string(record(t, out).Result.Value.Result), `"1a"`)
	clean(t, data)
}

// A function that answers in a wrong shape fails its node, and nothing else. It cannot
// answer a call other than its own.
func TestFlowStrangeAnswers(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	if status, out := h.Do(t, http.MethodPut, "/plugins/strange", hosttest.BuildPlugin(t, "flowstrange")); status != http.StatusCreated {
		t.Fatalf("upload: %d %s", status, out)
	}
	putFlow(t, h, "f", json.RawMessage(`{"steps": [{"name": "p", "type": "parallel", "steps": [
		{"name": "s", "function": "strange.strange", "on_error": "skip"}, {"name": "n", "function": "kit.count"}]}, {"name": "e", "function": "kit.echo"}]}`))
	putFlow(t, h, "g", json.RawMessage(`{"steps": [{"name": "s", "function": "strange.strange"}]}`))
	for input, want := range map[string]string{"success": `"success" is neither`, "stop": `"stop" is neither`, "steps": `"steps" are not a list`, "good": ""} {
		expect(t, h.Result(t, "f", start(fields{"input": input})), fmt.Sprintf("%q", input))
		run := h.Run(t, "g", start(fields{"input": input}))
		if (want == "") != (run.Status == "completed") || !strings.Contains(run.Error, want) {
			t.Errorf("%s: %s %s, want %q", input, run.Status, run.Error, want)
		}
	}
}

// A function may let other steps of its plugin answer, by their events or by name. So may
// an atomic function.
func TestFlowHandsOn(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	putFlow(t, h, "f", json.RawMessage(`{"steps": [{"name": "p", "type": "parallel", "steps": [
		{"name": "a", "function": "kit.hand"}, {"name": "b", "function": "kit.hand_to"}, {"name": "c", "function": "kit.atomic"}, {"name": "d", "function": "kit.atomic"}]},
		{"name": "n", "function": "kit.names"}]}`))
	got := h.Result(t, "f", start(fields{"input": "x"}))
	for _, want := range []string{"a\\nx1taken", "b\\nx2taken", "c\\n", "d\\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %s", got, want)
		}
	}
	if run := h.Run(t, "f", start(fields{"input": "bad"})); !strings.Contains(run.Error, "node p/a: handed on and failed") {
		t.Errorf("the run: %+v", run)
	}
}
