package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/memory"
)

// typed is a workflow whose state has a number, which its step looks at, and whose
// text is free.
const typed = `{"abi": 1, "workflow": "solo", "timeout": 0, "events": {}, "state": {"schema": {"type": "object",
  "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}, "required": ["n"]}, "default": {"n": 5}},
  "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"], "retry": {"wait": {"fixed": 0}}}]}`

func rawJSON(text string) abi.Raw { return must(abi.FromJSON([]byte(text))) }

// editState edits session s, and gives its state.
func (b *bench) editState(req host.SessionEdit) (text string, created bool, err error) {
	req.Tenant = "t"
	if req.Session == "" {
		req.Session = "s"
	}
	v, created, err := b.sched.EditState(b.t.Context(), req)
	if err != nil {
		return string(host.CodeOf(err)), created, err
	}
	return string(must(abi.ToJSON(v.Value))), created, nil
}

// wantEdit wants an edit to give a state, or an error of a code.
func (b *bench) wantEdit(want string, req host.SessionEdit) {
	b.t.Helper()
	if got, _, err := b.editState(req); got != want {
		b.t.Errorf("%+v: %s, want %s (%v)", req, got, want, err)
	}
}

func edits(list ...abi.Edit) host.SessionEdit { return host.SessionEdit{Edits: list} }

func (b *bench) stateAt(path string) string {
	v, err := b.sched.State(b.t.Context(), "t", "s", path)
	if err != nil {
		return string(host.CodeOf(err))
	}
	return string(must(abi.ToJSON(v.Value)))
}

// An edit of a path is of the value there: what it merges into, where the paths of edits
// begin, what its tags are of, and what is answered.
func TestEditOfAPath(t *testing.T) {
	b := &bench{tokens: 1}
	live(t, b, func(t *testing.T) {
		at := func(path string, req host.SessionEdit) host.SessionEdit { req.Path = path; return req }
		patch := func(text string, match ...string) host.SessionEdit {
			return host.SessionEdit{Patch: rawJSON(text), Match: match}
		}
		tag := func(path string) string {
			return must(b.sched.State(t.Context(), "t", "s", path)).Tag
		}
		b.wantEdit(`{"n":1,"list":[{"x":1}],"user":{"age":3,"name":"Ada"}}`, host.SessionEdit{Make: true, State: rawJSON(`{"user":{"name":"Ada","age":3},"list":[{"x":1}],"n":1}`)})
		user := tag("user")
		b.wantEdit(`{"n":2,"list":[{"x":1}],"user":{"age":3,"name":"Ada"}}`, patch(`{"n":2}`)) // elsewhere
		b.wantEdit(`{"name":"Eve"}`, at("user", patch(`{"age":null,"name":"Eve"}`, "other", user)))
		b.wantEdit("precondition_failed", at("user", patch(`{"age":4}`, user)))
		b.wantEdit("precondition_failed", at("user", patch(`{"age":4}`, "W/"+tag("user"))))
		b.wantEdit("precondition_failed", at("user", patch(`{"age":4}`, tag(""))))
		b.wantEdit("precondition_failed", at("nobody", patch(`{}`, host.AnyTag)))
		b.wantEdit(`{"age":4,"name":"Eve"}`, at("user", patch(`{"age":4}`, host.AnyTag)))
		b.wantEdit(`{"x":1,"y":[1]}`, at("list.0", edits(abi.Edit{Op: abi.OpSet, Path: "y", Value: rawJSON(`[]`)}, abi.Edit{Op: abi.OpAppend, Path: "y", Value: rawJSON("1")})))
		b.wantEdit(`7`, at("n", edits(abi.Edit{Op: abi.OpIncrement, Value: rawJSON("5")})))
		b.wantEdit(`null`, at("n", edits(abi.Edit{Op: abi.OpDelete})))
		b.wantEdit("invalid_argument", at("user", edits(abi.Edit{Op: abi.OpClear})))
		b.wantEdit("invalid_argument", at("user..x", patch(`{}`)))
		b.wantEdit("invalid_argument", at("user", patch(`[]`)))
		b.wantEdit(`{"list":[{"x":1,"y":[1]}],"user":{"age":4,"name":"Eve"}}`, patch(`{}`))
	})
}

// A session can have a state before anything runs in it, and the first run begins on
// that; from then on the state keeps its schema.
func TestStateFromOutside(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"solo": typed})}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		for what, err := range map[string]error{
			"state": func() error { _, err := b.sched.State(t.Context(), "t", "s", ""); return err }(),
			"info":  func() error { _, err := b.sched.History().Session(t.Context(), "t", "s"); return err }(),
			"gone":  b.sched.DeleteSession(t.Context(), "t", "s"),
		} {
			if host.CodeOf(err) != host.CodeNotFound {
				t.Errorf("%s of no session: %v", what, err)
			}
		}
		b.wantEdit("not_found", host.SessionEdit{Patch: rawJSON(`{"a":1}`)})
		for _, want := range []bool{true, false} {
			if text, created, err := b.editState(host.SessionEdit{Make: true}); text != "{}" || created != want || err != nil {
				t.Errorf("made: %s, %t, %v", text, created, err)
			}
		}
		b.wantEdit(`{"list":[1],"text":7}`, host.SessionEdit{Patch: rawJSON(`{"text":7,"list":[1],"no":null}`)})
		pass(time.Second) // it leaves memory
		b.wantEdit(`{"list":[1,2],"text":"x"}`, edits(abi.Edit{Op: abi.OpAppend, Path: "list", Value: rawJSON("2")}, abi.Edit{Op: abi.OpSet, Path: "text", Value: rawJSON(`"x"`)}))
		if got := b.stateAt("list.-1"); got != "2" {
			t.Errorf("list.-1 is %s", got)
		}
		if got := b.stateAt("list.5"); got != "not_found" {
			t.Errorf("list.5 is %s", got)
		}
		if got := b.stateAt("a..b"); got != "invalid_argument" {
			t.Errorf("a..b is %s", got)
		}
		run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", SessionID: "s", Wait: true})
		if err != nil || run.Status != host.StatusCompleted {
			t.Fatalf("%+v, %v", run, err)
		}
		if got := b.stateAt(""); got != `{"n":5,"list":[1,2],"text":"x"}` {
			t.Errorf("after the run: %s", got)
		}
		pass(time.Second)
		b.wantEdit("schema_violation", host.SessionEdit{Patch: rawJSON(`{"n":null}`)})
		b.wantEdit("schema_violation", host.SessionEdit{State: rawJSON(`{}`), Make: true})
		b.wantEdit("invalid_argument", host.SessionEdit{State: rawJSON(`[]`)})
		b.wantEdit("conflict", edits(abi.Edit{Op: abi.OpTest, Path: "n", Value: rawJSON("6")}))
		b.wantEdit("failed_precondition", edits(abi.Edit{Op: abi.OpAppend, Path: "n", Value: rawJSON("6")}))
		b.wantEdit(`{"n":1}`, host.SessionEdit{State: rawJSON(`{"n":1}`)})
		info, err := b.sched.History().Session(t.Context(), "t", "s")
		if err != nil || info.Runs != 1 || info.Active != 0 || info.Updated <= info.Created {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// An edit can say of which state it is, or that there is none yet.
func TestEditOfAState(t *testing.T) {
	b := &bench{tokens: 1}
	live(t, b, func(t *testing.T) {
		add := func(match ...string) host.SessionEdit {
			req := edits(abi.Edit{Op: abi.OpIncrement, Path: "n", Value: rawJSON("1")})
			req.Make, req.Match = true, match
			return req
		}
		b.wantEdit("precondition_failed", add(host.AnyTag))
		first := add()
		first.New = true
		b.wantEdit(`{"n":1}`, first)
		b.wantEdit("precondition_failed", first)
		v, err := b.sched.State(t.Context(), "t", "s", "")
		if err != nil {
			t.Fatal(err)
		}
		b.wantEdit("precondition_failed", add("other"))
		b.wantEdit(`{"n":2}`, add("other", v.Tag))
		b.wantEdit("precondition_failed", add(v.Tag))
		b.wantEdit(`{"n":3}`, add(host.AnyTag))
		b.wantEdit(`{"n":1}`, host.SessionEdit{State: rawJSON(`{"n":1}`)})
		b.wantEdit(`{"n":2}`, add(v.Tag)) // the value is the same: nothing was lost
	})
}

// Steps see at once what is edited from outside, and it is told in the timelines of
// the runs that were active.
func TestStepsSeeEditsFromOutside(t *testing.T) {
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"two": twoStep})}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "begin" {
			return list(1), nil
		}
		if g.in.Step == "close" {
			return stopEvent(), nil
		}
		if err := increment(g, 1); err != nil {
			return abi.StepOutput{}, err
		}
		if _, err := await(b, func() (string, error) {
			text, _, err := b.editState(host.SessionEdit{Patch: rawJSON(`{"n":10}`)})
			return text, err
		}); err != nil {
			return abi.StepOutput{}, err
		}
		raw, err := g.do(abi.ImportStateGet, []any{"n"})
		if text := string(must(abi.ToJSON(raw))); text != "10" {
			t.Errorf("the step reads %s", text)
		}
		return abi.StepOutput{}, err
	}
	b.open(t)
	run := b.start("h", "s")
	b.rest()
	told := tell(t, b.timeline(t, run.RunID, 0, 100).Entries)
	if !strings.Contains(told, " patch n: 1>10") {
		t.Errorf("timeline:\n%s", told)
	}
	other := b.start("k", "s")
	b.rest()
	if told := tell(t, b.timeline(t, other.RunID, 0, 100).Entries); strings.Count(told, " patch") != 1 {
		t.Errorf("timeline of a run that began later:\n%s", told)
	}
}

// An edit waits while a step has the write to itself, not for ever, and not for those
// who write elsewhere.
func TestEditWaitsForATicket(t *testing.T) {
	b := &bench{tokens: 2}
	tries := 0
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if err := increment(g, 1); err != nil {
			return abi.StepOutput{}, err
		}
		if _, err := g.do(abi.ImportStateBegin, []any{"n"}); err != nil {
			return abi.StepOutput{}, err
		}
		bump := edits(abi.Edit{Op: abi.OpIncrement, Path: "n", Value: rawJSON("100")})
		if tries++; tries <= 3 {
			if _, _, err := b.editState(bump); err != nil {
				t.Errorf("try %d: %v", tries, err)
			}
		} else {
			b.wantEdit("unavailable", bump)
			b.wantEdit("unavailable", host.SessionEdit{State: rawJSON(`{}`)})
			if text, _, err := b.editState(host.SessionEdit{Patch: rawJSON(`{"other":1}`)}); err != nil {
				t.Errorf("elsewhere: %s, %v", text, err)
			}
			go b.wantEdit(`{"n":1101,"other":1}`, bump)
			pass(100 * time.Millisecond)
		}
		_, err := g.do(abi.ImportStateCommit, []any{1001})
		return stopEvent(), err
	}
	live(t, b, func(t *testing.T) {
		run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", SessionID: "s", Wait: true})
		if err != nil || run.Status != host.StatusCompleted || tries != 4 {
			t.Errorf("%+v, %v after %d tries", run, err, tries)
		}
		pass(time.Second)
		if got := b.stateAt("n"); got != "1101" {
			t.Errorf("n is %s", got)
		}
	})
}

// bumpOnce counts in session s, under a key.
func bumpOnce(key int) host.SessionEdit {
	req := edits(abi.Edit{Op: abi.OpIncrement, Path: "n", Value: rawJSON("1")}, abi.Edit{Op: abi.OpAppend, Path: "keys", Value: rawJSON(fmt.Sprint(key))})
	req.Make, req.Once = true, onceKey(fmt.Sprint(key), "h")
	return req
}

// A server ends at every commit of some edits, in every way, and whoever was not
// answered asks again: each edit counts once, one that changes nothing too.
func TestEditsOnceOverCrashes(t *testing.T) {
	empty := host.SessionEdit{Patch: rawJSON(`{"n":2}`), Once: onceKey("empty", "h")}
	reqs := []host.SessionEdit{bumpOnce(1), bumpOnce(2), empty, bumpOnce(3), bumpOnce(4)}
	for _, ending := range endings {
		points := 0
		for ended := true; ended; points++ {
			store := &endingStore{Store: memory.New(), left: points, written: ending.written, refused: ending.refused}
			b := &bench{t: t, tokens: 1, batch: 1, fails: true, store: store, now: time.Unix(1_700_000_000, 0), snapshots: 2, keep: 1}
			b.open(t)
			ask := func(req host.SessionEdit) error {
				_, err := await(b, func() (string, error) { text, _, err := b.editState(req); return text, err })
				return err
			}
			for i := range 2 * len(reqs) { // each is asked for twice, whatever comes of it
				err := ask(reqs[i/2])
				if err != nil && store.ended && !store.refused && b.fails {
					old := b.sched
					b.store, b.fails = store.Store, false
					if ending.again {
						b.after = old
					}
					b.open(t)
					err = ask(reqs[i/2])
				}
				if err != nil {
					t.Fatalf("%s at commit %d: edit %d: %v", ending.name, points, i/2, err)
				}
			}
			if got, _ := await(b, func() (string, error) { return b.stateAt(""), nil }); got != `{"n":4,"keys":[1,2,3,4]}` {
				t.Fatalf("%s at commit %d: %s", ending.name, points, got)
			}
			ended = store.ended
			if leak := b.sched.Leak(); leak != "" {
				t.Error(leak)
			}
		}
		if points < 5 {
			t.Errorf("%s: there were %d points only", ending.name, points-1)
		}
	}
}
