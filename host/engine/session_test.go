package engine

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

func TestShowSeconds(t *testing.T) {
	for ns, want := range map[int64]string{
		45e9: "45.0s", 5e8: "0.5s", 1e9: "1.0s", 0: "0.0s", 1: "1e-09s", 100_000: "0.0001s", 90_000: "9e-05s",
		1_234_567_890: "1.23456789s", 86_400e9: "86400.0s", math.MaxInt64: "9223372036.854776s",
	} {
		if got := showSeconds(ns); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}

// TestBodiesAreCanonical: the code writes the runtime's events without the codec. The
// result must be what the codec would write.
func TestBodiesAreCanonical(t *testing.T) {
	g := mustGraph(t, chainManifest)
	long := strings.Repeat("x", 300)
	f := failure{step: long, err: &abi.Error{Code: "c", Message: strings.Repeat("m", 70_000)}, attempts: 1 << 40, elapsed: 3}
	inv := &invocation{step: g.steps[0], trigger: []abi.Event{{Type: "T", Body: abi.EmptyMap}}}
	bodies := map[string]abi.Raw{
		"state":        stateChangedBody("s", "running", "0", "In", ""),
		"state long":   stateChangedBody(long, "preparing", "<enqueued>", long, long),
		"unhandled":    unhandledBody(g, emission{event: abi.Event{Type: "Hop"}}, true),
		"unhandled 2":  unhandledBody(g, emission{event: abi.Event{Type: abi.TypeStepFailed}, step: long}, false),
		"timed out":    timedOutBody(45e9, []string{"a", long}),
		"timed out 2":  timedOutBody(1, nil),
		"failed":       f.body(nil),
		"step failed":  failedBody(f, inv),
		"small number": failure{err: &abi.Error{}, attempts: 200}.body(nil),
		"big number":   failure{err: &abi.Error{}, attempts: 70_000}.body(nil),
		"huge number":  failure{err: &abi.Error{}, attempts: math.MaxUint64}.body(nil),
		"two bytes":    failure{err: &abi.Error{}, attempts: 1000}.body(nil),
	}
	for name, b := range bodies {
		canonical, err := abi.Canonical(b, abi.MaxValueDepth)
		if err != nil || string(canonical) != string(b) {
			t.Errorf("%s: %v; %x", name, err, b)
		}
	}
	if got := showRaw(unhandledBody(g, emission{event: abi.Event{Type: abi.TypeHumanResponse}}, true)); !strings.Contains(got, `"workflows.events.HumanResponseEvent"`) {
		t.Errorf("base type: %s", got)
	}
}

// TestFailedBodyLeavesOutWhatIsTooDeep: an event of the greatest depth does not fit into
// another event.
func TestFailedBodyLeavesOutWhatIsTooDeep(t *testing.T) {
	g := mustGraph(t, chainManifest)
	deep := abi.Raw(strings.Repeat("\xa1\x61a", abi.MaxValueDepth-1) + "\xa0")
	if err := abi.CheckValue(deep, abi.MaxValueDepth); err != nil {
		t.Fatal(err)
	}
	inv := &invocation{step: g.steps[0], trigger: []abi.Event{{Type: "T", Body: deep}}}
	b := failedBody(failure{err: &abi.Error{}}, inv)
	if err := abi.CheckValue(b, abi.MaxValueDepth); err != nil {
		t.Error(err)
	}
	if got := showRaw(b); !strings.Contains(got, `"input_event":null`) {
		t.Error(got)
	}
}

// TestErrorsAreSanitized: the error of a failing step is stored and shown.
func TestErrorsAreSanitized(t *testing.T) {
	m := newMachine(t, chainManifest)
	at := m.start()
	res := m.finish(at, abi.StepOutput{Err: &abi.Error{Message: "bad \xff text " + strings.Repeat("x", 100_000)}})
	rec, ok := m.s.Record("r1")
	if !ok || rec.Status != host.StatusFailed {
		t.Fatalf("record %+v, %t", rec, ok)
	}
	if rec.ErrorCode != "internal" || !strings.HasPrefix(rec.Error, "bad \ufffd text x") || len(rec.Error) > maxMessage+10 {
		t.Errorf("code %q, message of %d bytes: %.20q", rec.ErrorCode, len(rec.Error), rec.Error)
	}
	if rec.ErrorStep == "" || rec.ErrorAttempt != 1 {
		t.Errorf("failed in step %q, attempt %d", rec.ErrorStep, rec.ErrorAttempt)
	}
	recoded(t, res.Entry)
}

// TestViews covers the methods that the scheduler reads.
func TestViews(t *testing.T) {
	m := newMachine(t, chainManifest)
	s := m.s
	if s.WakeAt() != host.WakeNever || s.NextTimer() != host.WakeNever || s.Active() != 0 || s.Seq() != 0 {
		t.Errorf("a new session: wake %d, next timer %d, active %d, seq %d", s.WakeAt(), s.NextTimer(), s.Active(), s.Seq())
	}
	if _, ok := s.Record(""); ok {
		t.Error("there is a record of no run")
	}
	res := m.reduce(StartRun{RunID: "a", HandlerID: "h", Version: "v", Event: abi.Event{Type: abi.TypeStart}, Seed: [32]byte{9}, Timeout: 100})
	at := m.opened(res)
	if s.WakeAt() != 0 || s.NextTimer() != s.Now()+100 {
		t.Errorf("wake %d, next timer %d", s.WakeAt(), s.NextTimer())
	}
	inv, ok := s.Invocation(at)
	if !ok || inv.RunID != "a" || inv.HandlerID != "h" || inv.Workflow != "chain" || inv.Version != "v" || inv.Step != "start" ||
		inv.List || inv.Attempt != 1 || inv.RunSeed != [32]byte{9} || inv.Limits != limit.Default() || len(inv.Trigger) != 1 || inv.Trigger[0].ID != 1 {
		t.Errorf("invocation %+v", inv)
	}
	if id, active, known := s.HandlerRun("h"); id != "a" || !active || !known {
		t.Errorf("handler: %s %t %t", id, active, known)
	}
	if _, _, known := s.HandlerRun("x"); known {
		t.Error("an unknown handler is known")
	}
	m.reduce(Call{Invocation: at, Attempt: 1, N: 1, Request: Sleep{Duration: 1000}})
	if s.WakeAt() != s.NextTimer() {
		t.Errorf("idle: wake %d, next timer %d", s.WakeAt(), s.NextTimer())
	}
	m.reduce(Cancel{RunID: "a"})
	rec, ok := s.Record("a")
	if !ok || rec.Status != host.StatusCancelled || rec.Completed != s.Now() || rec.Error != "" || rec.Tenant != "t" || rec.SessionID != "s" {
		t.Errorf("record %+v, %t", rec, ok)
	}
	if id, active, known := s.HandlerRun("h"); id != "a" || active || !known {
		t.Errorf("handler after the end: %s %t %t", id, active, known)
	}
	if _, ok := s.Invocation(at); ok {
		t.Error("the invocation is still there")
	}
	if s.WakeAt() != host.WakeNever || s.Key() != (host.SessionKey{Tenant: "t", Session: "s"}) {
		t.Errorf("wake %d, key %v", s.WakeAt(), s.Key())
	}
}

// TestRefusalsAreTyped: the type of an error says who made the mistake.
func TestRefusalsAreTyped(t *testing.T) {
	m := newMachine(t, chainManifest)
	at := m.start()
	_, err := m.s.Reduce(1, Call{Invocation: at, Attempt: 1, Request: SendEvent{Event: abi.Event{Type: abi.TypeStop}}})
	if guest := (*abi.Error)(nil); !errors.As(err, &guest) {
		t.Errorf("a guest's mistake: %T", err)
	}
	_, err = m.s.Reduce(1, PostEvent{RunID: "r1", Event: abi.Event{Type: "Nope"}})
	if client := (*host.Error)(nil); !errors.As(err, &client) || client.Code != host.CodeInvalidArgument {
		t.Errorf("a client's mistake: %T", err)
	}
	if _, err = m.s.Reduce(1, Finish{Invocation: 99, Attempt: 1}); !errors.Is(err, ErrStale) {
		t.Errorf("unknown invocation: %v", err)
	}
	if _, err = m.s.Reduce(1, Call{Invocation: at, Attempt: 2}); !errors.Is(err, ErrStale) {
		t.Errorf("unknown attempt: %v", err)
	}
	for _, tick := range []Tick{Cancel{RunID: "x"}, Block{RunID: "x"}, PostEvent{RunID: "x"}} {
		if _, err = m.s.Reduce(1, tick); !errors.Is(err, ErrUnknownRun) {
			t.Errorf("%T: %v", tick, err)
		}
	}
	if _, err = m.s.Reduce(1, nil); err == nil {
		t.Error("no tick is accepted")
	}
	if _, err = m.s.Reduce(1, Call{Invocation: at, Attempt: 1}); err == nil {
		t.Error("no request is accepted")
	}
	if _, err = m.s.Fold(&Entry{Seq: 99}); !errors.Is(err, errCorrupt) {
		t.Errorf("a gap: %v", err)
	}
}

// TestCollectFromLongTrigger: a collector may pass on each of its many events. The events
// are recognised, with one look-up each.
func TestCollectFromLongTrigger(t *testing.T) {
	const n = 100
	m := newMachine(t, `{"abi": 1, "workflow": "w", "events": {"Item": {}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
	  {"name": "end", "accepts": [["list", ["Item"]]], "emits": ["StopEvent"]}]}`)
	at := m.opened(m.finish(m.start(), many("Item", n)))
	inv, _ := m.s.Invocation(at)
	expected := make([]string, n)
	for i := range expected {
		expected[i] = "Item"
	}
	for i, ev := range inv.Trigger {
		res := m.reduce(Call{Invocation: at, Attempt: 1, N: uint64(i + 1), Request: CollectEvents{Event: ev, Expected: expected}})
		if p := res.Entry.Collect; p.Given != ev.ID || p.Added != ev.ID || res.Entry.Event != nil {
			t.Fatalf("event %d is not recognised: %+v", ev.ID, p)
		}
		if res.Response.Complete != (i == n-1) {
			t.Fatalf("complete after %d: %t", i+1, res.Response.Complete)
		}
	}
	res := m.reduce(Call{Invocation: at, Attempt: 1, Request: CollectEvents{Event: abi.Event{Type: "Item", ID: 9_999}, Expected: expected}})
	if res.Entry.Collect.Given != 0 {
		t.Errorf("a foreign id is recognised: %+v", res.Entry.Collect)
	}
}
