package hostcall_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/limit"
)

// atomicWorld is a world whose step is atomic.
func atomicWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, strings.Replace(manifest, `"name": "s",`, `"name": "s", "atomic": true,`, 1))
}

// finish ends the attempt successfully, with the work of its step.
func (w *world) finish(a *hostcall.Attempt) error {
	_, err := w.reduce(engine.Finish{Invocation: w.invID, Attempt: 1, Stage: a.Stage()})
	return err
}

// elsewhere changes the state like another run.
func (w *world) elsewhere(edits ...abi.Edit) {
	w.t.Helper()
	if _, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: 1, N: 1, Request: engine.EditState{Edits: edits}}); err != nil {
		w.t.Fatal(err)
	}
}

func set(path string, v any) abi.Edit { return abi.Edit{Op: abi.OpSet, Path: path, Value: value(v)} }

// The requests of an atomic step decide whether the step would have seen a change by
// others.
func TestAtomicStepLosesToWhatItSaw(t *testing.T) {
	type call struct {
		im  abi.Import
		req []any
	}
	get := func(path string) call { return call{abi.ImportStateGet, []any{path, nil}} }
	edit := func(edits ...any) call { return call{abi.ImportStateEdit, edits} }
	for name, c := range map[string]struct {
		calls []call
		other abi.Edit
		loses bool
	}{
		"a read":                      {[]call{get("a.b")}, set("a.b", 2), true},
		"a read above":                {[]call{get("a")}, set("a.b", 2), true},
		"a read below":                {[]call{get("a.b")}, set("a", 2), true},
		"a read beside":               {[]call{get("a.b")}, set("a.c", 2), false},
		"a read of nothing":           {[]call{get("x")}, set("x", 2), true},
		"an equal value":              {[]call{get("a.b")}, set("a.b", 1), false},
		"an edit":                     {[]call{edit([]any{"set", "a.b", 5})}, set("a.b", 2), true},
		"an edit beside":              {[]call{edit([]any{"set", "a.d", 5})}, set("a.c", 2), false},
		"an append":                   {[]call{edit([]any{"append", "list", 5})}, abi.Edit{Op: abi.OpAppend, Path: "list", Value: value(1)}, true},
		"a test that fails":           {[]call{edit([]any{"test", "a.b", 7})}, set("a.b", 7), true},
		"an edit that does not fit":   {[]call{edit([]any{"set", "a.b.c", 7})}, set("a", map[string]any{}), true},
		"a deletion by index":         {[]call{edit([]any{"delete", "list.0"})}, abi.Edit{Op: abi.OpAppend, Path: "list", Value: value(1)}, true},
		"an open edit":                {[]call{{abi.ImportStateBegin, []any{"a"}}, {abi.ImportStateCommit, []any{map[string]any{"b": 3}}}}, set("a.c", 2), true},
		"an edit that was given up":   {[]call{{abi.ImportStateBegin, []any{"a"}}, {abi.ImportStateAbort, []any{}}}, set("a.c", 2), true},
		"clear":                       {[]call{edit([]any{"clear"})}, set("new", 2), true},
		"its own edit, read again":    {[]call{edit([]any{"set", "mine", 5}), get("mine")}, set("a.c", 2), false},
		"a send and a word":           {[]call{{abi.ImportSendEvent, []any{[]any{"Side", map[string]any{}}}}, {abi.ImportWriteStream, []any{[]any{"Note", map[string]any{}}}}}, set("a.b", 2), false},
		"the clock and some chance":   {[]call{{abi.ImportNow, []any{}}, {abi.ImportRandom, []any{4}}}, set("a.b", 2), false},
		"something it has no use for": {nil, set("a.b", 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := atomicWorld(t)
			w.elsewhere(set("a", map[string]any{"b": 1}), set("list", []any{1, 2}))
			before := len(w.journal)
			a := w.attempt(engine.AttemptOpen{}, nil)
			g := &guest{a: a}
			for _, c := range c.calls {
				if _, err := g.call(c.im, value(c.req)); err != nil {
					t.Fatal(err)
				}
			}
			if len(w.journal) != before {
				t.Error("the step has an effect before its end")
			}
			w.elsewhere(c.other)
			if err := w.finish(a); errors.Is(err, engine.ErrConflict) != c.loses || err != nil && !c.loses {
				t.Errorf("it ends with %v, loses: %v", err, c.loses)
			}
		})
	}
}

// An atomic step sees one snapshot and its own edits, whatever happens meanwhile.
func TestAtomicStepReadsOneSnapshot(t *testing.T) {
	w := atomicWorld(t)
	w.elsewhere(set("a", 1))
	a := w.attempt(engine.AttemptOpen{}, nil)
	g := &guest{a: a}
	read := func(path string) string {
		resp, err := g.call(abi.ImportStateGet, value([]any{path, nil}))
		if err != nil {
			t.Fatal(err)
		}
		return abi.Diag(resp)
	}
	first := read("a")
	w.elsewhere(set("a", 2), set("b", 2))
	if _, err := g.call(abi.ImportStateEdit, value([]any{[]any{"set", "c", 3}})); err != nil {
		t.Fatal(err)
	}
	if got := first + read("a") + read("b") + read("c"); got != "11null3" {
		t.Errorf("it reads %s", got)
	}
	if err := w.finish(a); !errors.Is(err, engine.ErrConflict) {
		t.Fatal(err)
	}
	a.Lost()
	a.Restart()
	g = &guest{a: a}
	if got := read("a") + read("b") + read("c"); got != "22null" {
		t.Errorf("run again, it reads %s", got)
	}
	if err := w.finish(a); err != nil {
		t.Fatal(err)
	}
}

// After three losses an atomic step has the write ticket of the whole state, within the
// limits of an edit.
func TestAtomicStepHasTheStateToItselfAfterLosses(t *testing.T) {
	w := atomicWorld(t)
	open := engine.AttemptOpen{Limits: limit.Default()}
	open.Limits.RegionFuel = 1_000_000
	a := w.attempt(open, nil)
	for range 3 {
		a.Lost()
	}
	a.Restart()
	w.parked = true
	g := &guest{a: a}
	if _, err := g.call(abi.ImportNow, value([]any{})); !errors.Is(err, hostcall.ErrParked) || !w.wanted {
		t.Fatalf("%v, wanted the ticket: %v", err, w.wanted)
	}
	w.parked = false
	a.Restart()
	g = &guest{a: a}
	if _, err := g.call(abi.ImportStateEdit, value([]any{[]any{"set", "a", 1}})); err != nil {
		t.Fatal(err)
	}
	if err := a.Burn(1_000_000); err != nil {
		t.Fatal(err)
	}
	var limit *hostcall.LimitError
	if err := a.Burn(1); !errors.As(err, &limit) || !strings.Contains(limit.Error(), "region_fuel") {
		t.Errorf("%v, want the limit region_fuel", err)
	}
}

// Time in which an atomic step that has the state to itself waits for its run token does
// not count.
func TestAtomicStepsTimeIsWithoutWaiting(t *testing.T) {
	w := atomicWorld(t)
	open := engine.AttemptOpen{Limits: limit.Default()}
	open.Limits.RegionTime = time.Second
	a := w.attempt(open, nil)
	for range 3 {
		a.Lost()
	}
	a.Restart()
	a.Idle(time.Hour) // it has nothing to itself yet
	g := &guest{a: a}
	now := func() error { _, err := g.call(abi.ImportNow, value([]any{})); return err }
	if err := now(); err != nil {
		t.Fatal(err)
	}
	w.clock += int64(time.Hour)
	a.Idle(time.Hour)
	if err := now(); err != nil {
		t.Fatal(err)
	}
	w.clock += int64(2 * time.Second)
	if err := now(); err == nil || !strings.Contains(err.Error(), "region_time") {
		t.Errorf("got %v", err)
	}
}

// The work that an atomic step keeps until its end is bounded.
func TestAtomicStepIsBounded(t *testing.T) {
	w := atomicWorld(t)
	open := engine.AttemptOpen{Limits: limit.Default()}
	open.Limits.RecordBytes = 64 << 10
	g := &guest{a: w.attempt(open, nil)}
	var err error
	made := 0
	for ; made < 1000; made++ {
		if _, err = g.call(abi.ImportWriteStream, value([]any{[]any{"Note", map[string]any{"text": strings.Repeat("x", 2000)}}})); err != nil {
			break
		}
	}
	var limit *hostcall.LimitError
	if !errors.As(err, &limit) || !strings.Contains(limit.Error(), "record_bytes") {
		t.Errorf("%v, want the limit record_bytes", err)
	}
	if most := open.Limits.RecordBytes / 2000; made > most { // their record has hashes, but the step keeps them whole
		t.Errorf("%d events are kept, at most %d fit", made, most)
	}
}
