package abi_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
)

type encodable interface{ Encode() ([]byte, error) }

// edits and the like give the messages that are slices an Encode method.
type (
	edits   []abi.Edit
	events  []abi.Event
	results []abi.Raw
)

func (m edits) Encode() ([]byte, error)   { return abi.EncodeEdits(m) }
func (m events) Encode() ([]byte, error)  { return abi.EncodeEvents(m) }
func (m results) Encode() ([]byte, error) { return abi.EncodeResults(m) }

// What would be refused at the other end is refused here.
func TestEncodersKeepTheRules(t *testing.T) {
	start := abi.Event{Type: "StartEvent"}
	step := func(change func(*abi.StepDecl)) encodable {
		return manifestWith(func(m *abi.Manifest) { change(&m.Steps[0]) })
	}
	wait := func(w abi.WaitRule) encodable { return retrying(abi.RetryPolicy{Wait: &w}) }
	when := func(c abi.Condition) encodable { return retrying(abi.RetryPolicy{When: &c}) }
	cyclic := &abi.Condition{}
	cyclic.Not = cyclic
	deep := abi.Condition{Never: true}
	for range abi.MaxMessageDepth {
		deep = abi.Condition{Not: new(deep)}
	}
	for _, c := range []struct {
		message encodable
		want    string
	}{
		{abi.Event{}, "type: must be 1 to 256 bytes long, not 0"},
		{abi.Event{Type: "\xff"}, "type: text is not valid UTF-8"},
		{abi.Event{Type: "E", Body: abi.Null}, "body: must be a map, not a simple value"},
		{abi.Event{Type: "E", Body: abi.Raw{}}, "body: is missing"},
		{abi.Error{Code: "c", Message: "\xff"}, "message: text is not valid UTF-8"},
		{abi.Error{Data: abi.Raw{}}, "data: is missing"},
		{abi.StepInput{Step: "s", Run: plainRun}, "trigger: must be exactly one event"},
		{abi.StepInput{Step: "s", Run: plainRun, Trigger: itemEvents(2)}, "trigger: must be exactly one event"},
		{abi.StepInput{Step: "s", Run: plainRun, Trigger: []abi.Event{start, {}}, List: true}, "trigger.1.type: must be 1 to 256"},
		{abi.StepInput{Trigger: itemEvents(1), Run: plainRun}, "step: must be 1 to 128"},
		{abi.StepInput{Step: "s", Trigger: itemEvents(1)}, "run.workflow: must match"},
		{abi.StepInput{Step: "s", Trigger: itemEvents(1), Run: plainRun, Config: abi.Null}, "config: must be a map"},
		{abi.StepOutput{Events: itemEvents(2)}, "events: must be exactly one event unless it is a list"},
		{abi.StepOutput{Events: itemEvents(1), Err: &flakyErr}, "an error excludes events"},
		{abi.StepOutput{List: true, Err: &flakyErr}, "an error excludes events"},
		{abi.StateGet{Path: strings.Repeat("p", 4097)}, "path: must be 0 to 4096"},
		{abi.StateGet{Path: strings.Repeat(".", 64)}, "path: has 65 segments"},
		{abi.StateBegin{Path: strings.Repeat(".", 64)}, "path: has 65 segments"},
		{abi.StateCommit{}, "value: is missing"},
		{abi.SendEvent{Event: start, Step: strings.Repeat("s", 129)}, "step: must be 1 to 128"},
		{abi.SendEvent{}, "event.type: must be 1 to 256"},
		{abi.CollectEvents{Event: start, Expected: []string{""}}, "expected.0: must be 1 to 256"},
		{abi.CollectEvents{Event: start, Buffer: strings.Repeat("b", 129)}, "buffer: must be 1 to 128"},
		{abi.WaitForEvent{}, "type: must be 1 to 256"},
		{abi.WaitForEvent{Type: "E", Timeout: -1}, "timeout: must not be negative"},
		{abi.WaitForEvent{Type: "E", Requirements: abi.Null}, "requirements: must be a map"},
		{abi.WaitForEvent{Type: "E", WaiterEvent: &abi.Event{}}, "waiter_event.type: must be"},
		{abi.WriteStream{}, "event.type: must be"},
		{abi.RunWorkflow{Event: start, Workflow: "A"}, "workflow: must match"},
		{abi.RunWorkflow{Event: start, Workflow: "a", Session: &abi.ChildSession{ID: "\xff"}}, "session.id: text is not valid UTF-8"},
		{abi.CallResource{Method: "m", Payload: abi.Null}, "resource: must be 1 to 128"},
		{abi.CallResource{Resource: "r"}, "payload: is missing"},
		{abi.Sleep{Duration: -1}, "duration: must not be negative"},
		{abi.Random{N: 4097}, "n: must be 0 to 4096"},
		{abi.Log{Level: 2}, "level: must be -4, 0, 4 or 8"},
		{abi.Log{Attrs: abi.Null}, "attrs: must be a map"},

		{edits{}, "has 0 items, needs at least 1"},
		{edits{{Op: abi.OpClear}, {Op: "rename"}}, `1.op: unknown operation "rename"`},
		{edits{{Op: abi.OpSet, Path: "a"}}, "0.value: is missing"},
		{edits{{Op: abi.OpDelete, Path: "a", Value: abi.Null}}, "0.value: must be absent"},
		{edits{{Op: abi.OpClear, Path: "a"}}, "0.path: must be absent"},
		{edits{{Op: abi.OpIncrement, Value: abi.Null}}, "0.value: must be a number"},
		{edits{{Op: abi.OpMerge, Value: abi.Null}}, "0.value: must be a map"},
		{events{start, {}}, "1.type: must be"},
		{results{}, "has 0 items, needs at least 1"},
		{results{nil, {}}, "1: is missing"},

		{abi.Manifest{}, "abi: version 0 is not served"},
		{manifestWith(func(m *abi.Manifest) { m.Steps = nil }), "steps: has 0 items"},
		{manifestWith(func(m *abi.Manifest) { m.Workflow = "" }), "workflow: must match"},
		{manifestWith(func(m *abi.Manifest) { m.Timeout = new(-time.Second) }), "timeout: must not be negative"},
		{manifestWith(func(m *abi.Manifest) { m.State = &abi.StateDecl{Default: abi.Null} }), "state.default: must be a map"},
		{manifestWith(func(m *abi.Manifest) { m.Resources = []abi.ResourceDecl{{}} }), "resources.0.name: must be 1 to 128"},
		{manifestWith(func(m *abi.Manifest) { m.Events = map[string]abi.EventDecl{"E": {Kind: "odd"}} }), `events.E.kind: unknown kind "odd"`},
		{manifestWith(func(m *abi.Manifest) { m.Events = map[string]abi.EventDecl{"": {}} }), `events."": must be 1 to 256`},
		{manifestWith(func(m *abi.Manifest) {
			m.Events = map[string]abi.EventDecl{"E": {Schema: abi.Raw{0xa1, 0x61, 'a'}}}
		}), "unexpected end of data"},
		{step(func(s *abi.StepDecl) { s.Name = "timeout" }), `steps.0.name: "timeout" is reserved`},
		{step(func(s *abi.StepDecl) { s.Accepts = nil }), "steps.0.accepts: has 0 items"},
		{step(func(s *abi.StepDecl) { s.Accepts[0].Types = nil }), "steps.0.accepts.0.types: must be exactly one"},
		{step(func(s *abi.StepDecl) { s.Accepts[0].Take = 1 }), "steps.0.accepts.0.take: is for lists only"},
		{step(func(s *abi.StepDecl) { s.Accepts[0].Kind = 9 }), "steps.0.accepts.0.kind: unknown kind of slot"},
		{step(func(s *abi.StepDecl) { s.Accepts[0] = abi.Slot{Kind: abi.SlotAny} }), "steps.0.accepts.0.types: has 0 items"},
		{step(func(s *abi.StepDecl) {
			s.Accepts[0] = abi.Slot{Kind: abi.SlotList, Types: []string{"E"}, Take: 1 << 32}
		}), "take: must be 1 to 4294967295"},
		{step(func(s *abi.StepDecl) { s.Emits[0].Types = []string{"A", "B"} }), "steps.0.emits.0.types: must be exactly one"},
		{step(func(s *abi.StepDecl) { s.Workers = 1001 }), "steps.0.workers: must be 1 to 1000"},
		{step(func(s *abi.StepDecl) { s.Workers = -1 }), "steps.0.workers: must be 1 to 1000"},
		{step(func(s *abi.StepDecl) { s.Timeout = -1 }), "steps.0.timeout: must not be negative"},
		{step(func(s *abi.StepDecl) { s.CatchesAll, s.Catches = true, []string{"a"} }), "steps.0.catches: must be names or"},
		{step(func(s *abi.StepDecl) { s.Waits = []string{""} }), "steps.0.waits.0: must be"},
		{when(abi.Condition{}), "steps.0.retry.when: must have exactly one part set"},
		{when(abi.Condition{Always: true, Never: true}), "retry.when: must be one of always and never, not both"},
		{when(abi.Condition{Any: []abi.Condition{{Never: true}, {}}}), "retry.when.any.1: must have exactly one part"},
		{when(*cyclic), "nested too deep"},
		{when(deep), "nested too deep"},
		{wait(abi.WaitRule{}), "retry.wait: must have exactly one part"},
		{wait(abi.WaitRule{Fixed: new(time.Duration(-1))}), "retry.wait.fixed: must not be negative"},
		{wait(abi.WaitRule{Incrementing: &[3]time.Duration{0, -1}}), "retry.wait.incrementing.1: must not be negative"},
		{wait(abi.WaitRule{Random: &[2]time.Duration{2, 1}}), "retry.wait.random: max must not be less than min"},
		{wait(abi.WaitRule{Exponential: &abi.ExponentialRule{Base: math.NaN()}}), "retry.wait.exponential.base: must be finite and greater than 0"},
		{wait(abi.WaitRule{ExponentialJitter: &abi.JitterRule{Base: math.Inf(1)}}), "exponential_jitter.base: must be finite"},
		{wait(abi.WaitRule{Sum: []abi.WaitRule{{}}}), "retry.wait.sum.0: must have exactly one part"},
		{retrying(abi.RetryPolicy{Stop: &abi.StopRule{}}), "retry.stop: must have exactly one part"},
	} {
		b, err := c.message.Encode()
		if err == nil {
			t.Errorf("%T was encoded, want %q: %s", c.message, c.want, abi.Diag(b))
			continue
		}
		var fault *abi.DataError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q", c.message, err, c.want)
		}
	}
}

func TestNilBodyIsEmpty(t *testing.T) {
	b, err := abi.Event{Type: "E"}.Encode()
	if err != nil || abi.Diag(b) != `["E", {}]` {
		t.Errorf("%s (%v)", abi.Diag(b), err)
	}
}

func TestCollectResponse(t *testing.T) {
	for _, c := range []struct {
		events []abi.Event
		want   string
	}{
		{nil, "null"},
		{[]abi.Event{}, "[]"},
		{[]abi.Event{{Type: "A", Body: abi.EmptyMap, ID: 2}}, `[["A", {}, 2]]`},
	} {
		b, err := abi.EncodeEvents(c.events)
		if err != nil || abi.Diag(b) != c.want {
			t.Errorf("%s, want %s (%v)", abi.Diag(b), c.want, err)
		}
		back, err := abi.DecodeEvents(b)
		if err != nil || !reflect.DeepEqual(back, c.events) {
			t.Errorf("%#v, want %#v (%v)", back, c.events, err)
		}
	}
	if _, err := abi.DecodeEvents(unhex(t, "81 82 60 a0")); err == nil || !strings.Contains(err.Error(), "0.type: must be 1 to 256") {
		t.Errorf("%v", err)
	}
}

func TestEditResponse(t *testing.T) {
	b, err := abi.EncodeResults([]abi.Raw{nil, mustValue(3)})
	if err != nil || abi.Diag(b) != "[null, 3]" {
		t.Errorf("%s (%v)", abi.Diag(b), err)
	}
	back, err := abi.DecodeResults(b)
	if err != nil || !reflect.DeepEqual(back, []abi.Raw{abi.Null, mustValue(3)}) {
		t.Errorf("%v (%v)", back, err)
	}
	if _, err := abi.DecodeResults([]byte{0x80}); err == nil {
		t.Error("no results were accepted")
	}
}

// Raws of a decoded message must not reach into their neighbours.
func TestDecodedRawsHaveNoRoomToGrow(t *testing.T) {
	b, err := abi.StepOutput{Events: itemEvents(2), List: true}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.DecodeStepOutput(b)
	if err != nil {
		t.Fatal(err)
	}
	if body := m.Events[0].Body; cap(body) != len(body) {
		t.Errorf("capacity %d for %d bytes", cap(body), len(body))
	}
}
