package engine

import (
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// callsManifest is a workflow whose first step calls the others.
const callsManifest = `{"abi": 1, "workflow": "calls", "events": {"Ask": {}, "Say": {}, "Odd": {}}, "steps": [
  {"name": "drive", "accepts": ["StartEvent"], "emits": ["Ask", "StopEvent"], "waits": ["Say"], "workers": 1},
  {"name": "p.f", "accepts": ["Ask"], "emits": ["Say"], "workers": 1},
  {"name": "p.g", "accepts": ["Odd"], "emits": ["Say"]},
  {"name": "p.h", "accepts": ["Ask"], "emits": ["Odd"]},
  {"name": "caught", "accepts": ["StepFailedEvent"], "emits": ["Say"], "catches": ["p.f"]}]}`

// callMachine drives a session whose workflow correlates.
func callMachine(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t, callsManifest)
	g, problems := Correlated(mustGraph(t, callsManifest).Manifest(), &Correlation{
		Field: "call", Call: "Ask", Answer: "Say", Steps: map[string]string{"p.f": "f", "p.g": "g", "p.h": "h"},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	m.s = New(m.s.Key(), func(string) (*Graph, error) { return g, nil })
	return m
}

func said(text string) abi.Raw {
	raw, err := abi.EncodeValue(map[string]any{"call": text})
	if err != nil {
		panic(err)
	}
	return raw
}

// ask makes the driver call a step and wait for the answer. It returns the invocation of
// the called step.
func (m *machine) ask(driver, n uint64, step, call string, timeout int64) uint64 {
	asked := m.opened(m.reduce(Call{Invocation: driver, Attempt: 1, N: n, Request: SendEvent{Event: abi.Event{Type: "Ask", Body: said(call)}, Step: step}}))
	m.reduce(Call{Invocation: driver, Attempt: 1, N: n + 1, Request: WaitForEvent{ID: call, Type: "Say", Requirements: said(call), Timeout: timeout}})
	return asked
}

// The answer has the field of the call, even if the step has set another value.
func TestAnswersHaveTheCallsField(t *testing.T) {
	m := callMachine(t)
	driver := m.start()
	f := m.ask(driver, 1, "p.f", "one", 0)
	res := m.reduce(Finish{Invocation: f, Attempt: 1, Output: abi.StepOutput{Events: []abi.Event{{Type: "Say", Body: said("forged")}}}})
	if got := showRaw(res.Entry.Finish.Events[0].Body); got != `{"call":"one"}` {
		t.Errorf("the answer is %s", got)
	}
	if inv, ok := m.s.Invocation(driver); !ok || inv.Step != "drive" || m.opened(res) != driver {
		t.Error("the driver does not go on")
	}
	recoded(t, res.Entry)
}

// The failure of a step carries the field, and a step that returns nothing has failed.
func TestFailuresHaveTheCallsField(t *testing.T) {
	m := callMachine(t)
	f := m.ask(m.start(), 1, "p.f", "one", 0)
	caught := m.opened(m.reduce(Finish{Invocation: f, Attempt: 1}))
	inv, _ := m.s.Invocation(caught)
	if got := showRaw(inv.Trigger[0].Body); inv.Step != "caught" || !strings.HasPrefix(got, `{"call":"one",`) || !strings.Contains(got, "function f returned nothing") {
		t.Errorf("%s is invoked with %s", inv.Step, got)
	}
	if _, err := abi.DecodeValue(inv.Trigger[0].Body); err != nil {
		t.Error(err)
	}
}

// Steps of one plugin name each other as the plugin does.
func TestStepsNameTheirSiblings(t *testing.T) {
	m := callMachine(t)
	h := m.ask(m.start(), 1, "p.h", "one", 0)
	g := m.opened(m.reduce(Call{Invocation: h, Attempt: 1, N: 1, Request: SendEvent{Event: abi.Event{Type: "Odd"}, Step: "g"}}))
	inv, _ := m.s.Invocation(g)
	if inv.Step != "p.g" || showRaw(inv.Trigger[0].Body) != `{"call":"one"}` {
		t.Errorf("%s with %s", inv.Step, showRaw(inv.Trigger[0].Body))
	}
	if gr := m.s.runs["r1"].graph; gr.OwnName("p.g") != "g" || gr.OwnName("drive") != "drive" {
		t.Error("names")
	}
}

// When the wait for an answer ends, so do the invocations that work on the answer,
// running or queued.
func TestLateAnswersAreWithdrawn(t *testing.T) {
	m := callMachine(t)
	driver := m.start()
	first := m.ask(driver, 1, "p.f", "one", 10)
	res, err := m.s.Reduce(m.s.Now()+100, Timer{})
	if err != nil {
		t.Fatal(err)
	}
	abandoned := false
	for _, c := range res.Commands {
		a, ok := c.(Abandon)
		abandoned = abandoned || ok && a.Invocation == first
	}
	if _, there := m.s.Invocation(first); there || !abandoned {
		t.Errorf("it is still there: %v", res.Commands)
	}
	if _, err := m.s.Reduce(m.s.Now()+1, Finish{Invocation: first, Attempt: 1, Output: one("Say")}); err == nil {
		t.Error("its answer is taken")
	}
	again := m.ask(driver, 3, "p.f", "two", 0)
	if again == first {
		t.Error("the worker was not given back")
	}
	m.reduce(Finish{Invocation: again, Attempt: 1, Output: one("Say")})
	if r := m.s.runs["r1"]; r.inbox.size != 0 || r.alive != 1 {
		t.Errorf("%d events are kept, %d invocations are alive", r.inbox.size, r.alive)
	}
}

// Clients may send neither calls nor answers.
func TestClientsDoNotAnswerCalls(t *testing.T) {
	m := callMachine(t)
	m.start()
	for _, typ := range []string{"Ask", "Say"} {
		if _, err := m.s.Reduce(m.s.Now(), PostEvent{RunID: "r1", Event: abi.Event{Type: typ}}); host.CodeOf(err) != host.CodeInvalidArgument {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
