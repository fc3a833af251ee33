package abi_test

import (
	"math"
	"strings"

	"github.com/weftrun/weft/abi"
)

var (
	emptyBody = abi.EmptyMap
	itemBody  = mustValue(object{"item": "milk", "index": 0})
	flakyErr  = abi.Error{Code: "flaky", Message: "flaky: attempt 1 of 3", Retryable: new(true), Data: mustValue(object{"attempt": 1})}
	plainRun  = abi.RunInfo{
		Tenant: "default", Workflow: "accumulator", RunID: "01JD3N4V7Q", SessionID: "s-1",
		Invocation: 1, Attempt: 1, Clock: 1795219200000000000,
	}
)

// runWith returns the plain run after a change.
func runWith(change func(*abi.RunInfo)) abi.RunInfo {
	r := plainRun
	change(&r)
	return r
}

func itemEvent(i int) abi.Event {
	return abi.Event{Type: "ItemEvent", Body: mustValue(object{"index": i, "item": "x"}), ID: uint64(i + 1)}
}

func itemEvents(n int) []abi.Event {
	events := make([]abi.Event, n)
	for i := range events {
		events[i] = itemEvent(i)
	}
	return events
}

var stepVectors = []vector{
	{"event-minimal", abi.Event{Type: "StartEvent", Body: emptyBody}},
	{"event-id", abi.Event{Type: "ItemEvent", Body: itemBody, ID: 7}},
	{"event-id-max", abi.Event{Type: "ItemEvent", Body: itemBody, ID: math.MaxUint64}},
	{"event-type-long", abi.Event{Type: strings.Repeat("E", abi.MaxTypeName), Body: emptyBody}},
	{"event-type-unicode", abi.Event{Type: "Événement漢字", Body: mustValue(object{"clé": "ü"})}},
	{"event-body-deep", abi.Event{Type: "E", Body: mustValue(object{"k": nest(nil, abi.MaxValueDepth-1)})}},

	{"error-minimal", abi.Error{Code: "flaky", Message: ""}},
	{"error-full", flakyErr},
	{"error-not-retryable", abi.Error{Code: "invalid_message", Message: "steps.0.name: is missing", Retryable: new(false)}},
	{"error-data-null", abi.Error{Code: "internal", Message: "no details", Data: abi.Null}},

	{"step-input-one", abi.StepInput{Step: "start", Trigger: []abi.Event{{Type: "StartEvent", Body: mustValue(object{"items": list{"milk"}}), ID: 1}}, Run: plainRun}},
	{"step-input-list", abi.StepInput{Step: "finalize", Trigger: itemEvents(3), List: true, Run: plainRun}},
	{"step-input-list-empty", abi.StepInput{Step: "finalize", List: true, Run: plainRun}},
	{"step-input-list-30", abi.StepInput{Step: "finalize", Trigger: itemEvents(30), List: true, Run: plainRun}},
	{"step-input-config", abi.StepInput{Step: "start", Trigger: itemEvents(1), Run: plainRun, Config: mustValue(object{"model": "small", "temperature": 0.5})}},
	{"step-input-config-empty", abi.StepInput{Step: "start", Trigger: itemEvents(1), Run: plainRun, Config: emptyBody}},
	{"step-input-retried", abi.StepInput{Step: "attempt", Trigger: itemEvents(1), Run: runWith(func(r *abi.RunInfo) {
		r.Attempt, r.LastError, r.Invocation = 2, &flakyErr, 1<<40
	})}},
	{"step-input-clock-before-1970", abi.StepInput{Step: strings.Repeat("s", abi.MaxName), Trigger: itemEvents(1), Run: runWith(func(r *abi.RunInfo) {
		r.Clock, r.Tenant, r.RunID, r.SessionID, r.Workflow = -1, "", "", "", strings.Repeat("w", abi.MaxWorkflowName)
	})}},

	{"step-output-nothing", abi.StepOutput{}},
	{"step-output-event", abi.StepOutput{Events: []abi.Event{{Type: "StopEvent", Body: mustValue(object{"result": 42})}}}},
	{"step-output-list", abi.StepOutput{Events: itemEvents(2), List: true}},
	{"step-output-list-one", abi.StepOutput{Events: itemEvents(1), List: true}},
	{"step-output-list-empty", abi.StepOutput{List: true}},
	{"step-output-error", abi.StepOutput{Err: &abi.Error{Code: "flaky", Message: "asked to fail"}}},
	{"step-output-error-full", abi.StepOutput{Err: &flakyErr}},
}
