package hostcall_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/limit"
)

// TestRehearsal: a guest that makes the calls of the record, and the call in which the
// attempt waits, does not depart. Any other guest is reported with its call.
func TestRehearsal(t *testing.T) {
	enc := func(v any) []byte {
		b, err := abi.EncodeValue(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	type ask struct {
		im  abi.Import
		req any
	}
	get, other := ask{abi.ImportStateGet, []any{"x"}}, ask{abi.ImportStateGet, []any{"y"}}
	wait := ask{abi.ImportWait, map[string]any{"type": "Answer"}}
	named := ask{abi.ImportWait, map[string]any{"type": "Answer", "waiter_id": "boss"}}
	child := ask{abi.ImportRunWorkflow, map[string]any{"workflow": "kid", "event": []any{"StartEvent", map[string]any{}}, "id": "once"}}
	call := ask{abi.ImportResource, []any{"web", "get", map[string]any{"n": 1}}}
	sleep := ask{abi.ImportSleep, []any{5}}
	record := []engine.CallRecord{{N: 1, Import: get.im, Request: enc(get.req), Response: enc(7), Clock: 5}}
	forAnswer := &engine.Pending{N: 2, Import: abi.ImportWait, Waiter: "Answer #1", Type: "Answer"}
	forKid := &engine.Pending{N: 2, Import: abi.ImportRunWorkflow, Workflow: "kid", Child: "once"}
	forWeb := &engine.Pending{N: 2, Import: abi.ImportResource, Resource: "web", Method: "get", Payload: enc(map[string]any{"n": 1})}
	trap := &abi.Error{Code: host.RunTrap, Message: "unreachable"}
	for _, c := range []struct {
		what    string
		pending *engine.Pending
		asks    []ask
		res     host.InvocationResult
		call    uint64 // at which it departs; 0: it does not
		im      abi.Import
		says    string
	}{
		{what: "the same, and more", asks: []ask{get, other}},
		{what: "the same, and the end", asks: []ask{get}},
		{what: "the same, and a trap", asks: []ask{get}, res: host.InvocationResult{Err: trap}},
		{what: "another request", asks: []ask{other}, call: 1, im: get.im, says: `now it is state_get ["y"]`},
		{what: "another call", asks: []ask{sleep}, call: 1, im: get.im, says: "now it is sleep"},
		{what: "nothing", call: 1, im: get.im, says: "it ended after call 0, where the record has state_get as call 1"},
		{what: "a trap", res: host.InvocationResult{Err: trap}, call: 1, im: get.im, says: "it failed (trap: unreachable) after call 0"},
		{what: "the wait", pending: forAnswer, asks: []ask{get, wait}},
		{what: "another wait", pending: forAnswer, asks: []ask{get, named}, call: 2, im: abi.ImportWait, says: `for Answer by the waiter id "Answer #1"`},
		{what: "no wait", pending: forAnswer, asks: []ask{get}, call: 2, im: abi.ImportWait, says: "it ended after call 1, where the record has wait_for_event as call 2"},
		{what: "a sleep", pending: forAnswer, asks: []ask{get, sleep}, call: 2, im: abi.ImportWait, says: "now it is sleep"},
		{what: "the child", pending: forKid, asks: []ask{get, child}},
		{what: "a child of another name", pending: &engine.Pending{N: 2, Import: abi.ImportRunWorkflow, Workflow: "kid", Child: "twice"}, asks: []ask{get, child}, call: 2, im: abi.ImportRunWorkflow, says: `of kid by the id "twice"`},
		{what: "another child", pending: &engine.Pending{N: 2, Import: abi.ImportRunWorkflow, Workflow: "dog", Child: "once"}, asks: []ask{get, child}, call: 2, im: abi.ImportRunWorkflow, says: "of dog"},
		{what: "the resource", pending: forWeb, asks: []ask{get, call}},
		{what: "another resource", pending: &engine.Pending{N: 2, Import: abi.ImportResource, Resource: "db", Method: "get", Payload: forWeb.Payload}, asks: []ask{get, call}, call: 2, im: abi.ImportResource, says: "of db, get"},
		{what: "another payload", pending: &engine.Pending{N: 2, Import: abi.ImportResource, Resource: "web", Method: "get", Payload: enc(2)}, asks: []ask{get, call}, call: 2, im: abi.ImportResource, says: "of web, get"},
		{what: "the sleep", pending: &engine.Pending{N: 2, Import: abi.ImportSleep}, asks: []ask{get, sleep}},
	} {
		r := hostcall.NewRehearsal(engine.AttemptOpen{Limits: limit.Default()}, record, c.pending)
		var err error
		for _, a := range c.asks {
			if _, _, _, err = r.Call(a.im, enc(a.req), 0); err != nil {
				break
			}
			r.Print(1, []byte("x"))
		}
		d, fault := r.Departs(c.res, err)
		switch {
		case fault != nil:
			t.Errorf("%s: %v", c.what, fault)
		case c.call == 0 && d != nil:
			t.Errorf("%s departs: %+v", c.what, d)
		case c.call != 0 && (d == nil || d.Call != c.call || d.Import != string(c.im) || d.Code != host.BlockedReplayMismatch || !strings.Contains(d.Message, c.says)):
			t.Errorf("%s: %+v, want call %d with %q", c.what, d, c.call, c.says)
		}
	}
	if _, err := hostcall.NewRehearsal(engine.AttemptOpen{}, record, nil).Departs(host.InvocationResult{}, errors.New("no sandbox")); err == nil {
		t.Error("a fault of the host is none of the guest's")
	}
}
