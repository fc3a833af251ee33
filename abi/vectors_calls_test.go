package abi_test

import (
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
)

// empty stands for the content of a request that has none.
type empty struct{}

var callVectors = []vector{
	{"state_get-root", abi.StateGet{}},
	{"state_get-path", abi.StateGet{Path: "questions.0.answer"}},
	{"state_get-default", abi.StateGet{Path: "count", Default: mustValue(0)}},
	{"state_get-default-null", abi.StateGet{Path: "count", Default: abi.Null}},
	{"state_get-segments-64", abi.StateGet{Path: strings.Repeat("a.", abi.MaxPathSegments-1) + "a"}},
	{"state_get-path-4096", abi.StateGet{Path: strings.Repeat("p", abi.MaxPath)}},

	{"state_edit-all-ops", []abi.Edit{
		{Op: abi.OpSet, Path: "a.b", Value: mustValue(object{"x": 1})},
		{Op: abi.OpDelete, Path: "a.c"},
		{Op: abi.OpAppend, Path: "log", Value: mustValue("line")},
		{Op: abi.OpIncrement, Path: "count", Value: mustValue(-1)},
		{Op: abi.OpMerge, Path: "", Value: mustValue(object{"m": object{"n": nil}})},
		{Op: abi.OpTest, Path: "a.b.x", Value: mustValue(1)},
		{Op: abi.OpClear},
	}},
	{"state_edit-one", []abi.Edit{{Op: abi.OpSet, Path: "", Value: emptyBody}}},
	{"state_edit-increment-float", []abi.Edit{{Op: abi.OpIncrement, Path: "total", Value: mustValue(0.5)}}},
	{"state_edit-list-indices", []abi.Edit{
		{Op: abi.OpSet, Path: "results.-1", Value: abi.Null}, {Op: abi.OpDelete, Path: "results.0"},
	}},

	{"state_begin-root", abi.StateBegin{}},
	{"state_begin-path", abi.StateBegin{Path: "players.3"}},
	{"state_commit-map", abi.StateCommit{Value: mustValue(object{"count": 2})}},
	{"state_commit-null", abi.StateCommit{Value: abi.Null}},
	{"state_abort-empty", empty{}},
	{"now-empty", empty{}},

	{"send_event-all", abi.SendEvent{Event: abi.Event{Type: "ItemEvent", Body: itemBody}}},
	{"send_event-step", abi.SendEvent{Event: abi.Event{Type: "ItemEvent", Body: itemBody}, Step: "process_item"}},
	{"collect_events-minimal", abi.CollectEvents{Event: itemEvent(0), Expected: []string{"ItemEvent", "ItemEvent"}}},
	{"collect_events-buffer", abi.CollectEvents{Event: itemEvent(0), Expected: []string{"C", "A", "B"}, Buffer: "abc"}},
	{"collect_events-none-expected", abi.CollectEvents{Event: itemEvent(0)}},

	{"wait_for_event-minimal", abi.WaitForEvent{Type: "HumanResponseEvent"}},
	{"wait_for_event-full", abi.WaitForEvent{
		Type: "HumanResponseEvent", Requirements: mustValue(object{"role": "manager"}),
		WaiterEvent: &abi.Event{Type: "InputRequiredEvent", Body: mustValue(object{"prefix": "manager, approve it?"})},
		WaiterID:    "manager", Timeout: 24 * time.Hour, Broadcast: true,
	}},
	{"wait_for_event-requirements-empty", abi.WaitForEvent{Type: "AnswerEvent", Requirements: emptyBody}},

	{"write_event_to_stream-one", abi.WriteStream{Event: abi.Event{Type: "ProgressEvent", Body: mustValue(object{"i": 0})}}},

	{"run_workflow-minimal", abi.RunWorkflow{Workflow: "accumulator", Event: abi.Event{Type: "StartEvent", Body: emptyBody}}},
	{"run_workflow-full", abi.RunWorkflow{
		Workflow: "accumulator", Event: abi.Event{Type: "StartEvent", Body: emptyBody}, ID: "first-half",
		Session: &abi.ChildSession{Shared: true, ID: "s-2"}, IncludeStream: true,
	}},
	{"run_workflow-shared", abi.RunWorkflow{Workflow: "a", Event: abi.Event{Type: "StartEvent", Body: emptyBody}, Session: &abi.ChildSession{Shared: true}}},
	{"run_workflow-session-empty", abi.RunWorkflow{Workflow: "0.a_b-c", Event: abi.Event{Type: "StartEvent", Body: emptyBody}, Session: &abi.ChildSession{}}},

	{"call_resource-map", abi.CallResource{Resource: "llm", Method: "POST", Payload: mustValue(object{"prompt": "a joke", "n": 1})}},
	{"call_resource-null", abi.CallResource{Resource: "clock", Method: "", Payload: abi.Null}},
	{"call_resource-http", abi.CallResource{Resource: "crm", Method: "request", Payload: mustValue(object{
		"method": "POST", "path": "things", "query": object{"q": "a b"}, "headers": object{"Accept": "text/plain"},
		"body": []byte("a,b"), "timeout": int64(5_000_000_000), "expect_success": true,
	})}},
	{"sleep-zero", abi.Sleep{}},
	{"sleep-day", abi.Sleep{Duration: 24 * time.Hour}},
	{"random-zero", abi.Random{}},
	{"random-max", abi.Random{N: abi.MaxRandomBytes}},
	{"log-debug", abi.Log{Level: -4, Message: "entering"}},
	{"log-info", abi.Log{Level: 0, Message: ""}},
	{"log-warn-attrs", abi.Log{Level: 4, Message: "slow", Attrs: mustValue(object{"seconds": 1.5, "step": "count"})}},
	{"log-error", abi.Log{Level: 8, Message: "line\nline", Attrs: emptyBody}},
}
