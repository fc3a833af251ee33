package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// named is a guest that notes under which run it runs, and then does as the asker.
func named(runs *int) func(context.Context, *call) (abi.StepOutput, error) {
	asks := asker(runs)
	return func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if _, err := g.do(abi.ImportStateEdit, []any{[]any{"set", "run", g.in.Run.RunID + " in " + g.in.Run.SessionID}}); err != nil {
			return abi.StepOutput{}, err
		}
		return asks(ctx, g)
	}
}

func (b *bench) fork(t *testing.T, id string, at uint64) (host.Fork, error) {
	t.Helper()
	return b.forkWith(t, host.ForkRequest{ID: id, At: at})
}

func (b *bench) forkWith(t *testing.T, req host.ForkRequest) (host.Fork, error) {
	t.Helper()
	req.Tenant = "t"
	return await(b, func() (host.Fork, error) { return b.sched.Fork(t.Context(), req) })
}

// send gives a run an answer.
func (b *bench) send(t *testing.T, id string) {
	t.Helper()
	ev := abi.Event{Type: "Answer", Body: abi.EmptyMap}
	if _, err := await(b, func() (struct{}, error) { return struct{}{}, b.sched.Send(t.Context(), "t", id, ev, "") }); err != nil {
		t.Fatal(err)
	}
}

// through brings a run of the asker to its end.
func (b *bench) through(t *testing.T, id string) host.Run {
	t.Helper()
	for range 10 {
		b.rest()
		run := b.record(t, id)
		switch {
		case run.Status.Final():
			return run
		case run.Blocked != nil:
			t.Fatalf("%s is blocked: %+v", id, run.Blocked)
		case len(run.WaitingFor) > 0 && run.WaitingFor[0].Type == "Answer":
			b.send(t, id)
		default:
			b.advance(time.Hour)
		}
	}
	t.Fatalf("%s comes to no end: %+v", id, b.record(t, id))
	return host.Run{}
}

// TestFork: a run that waits and sleeps can be forked behind each of its entries,
// whether it goes on or has ended, the journal has snapshots or not, and the server
// is another one after. Each fork comes to the same end, with each effect once, and
// the run that it was made of is as before.
func TestFork(t *testing.T) {
	for name, snapshots := range map[string]int{"from entries": 0, "from snapshots": 3} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			b := &bench{tokens: 1, snapshots: snapshots, modules: newSimModules(t, map[string]string{"two": asking})}
			b.guest = named(&runs)
			b.open(t)
			b.start("h", "s")
			first := b.through(t, "h")
			timeline := b.timeline(t, "h", 0, 1000)
			forks := 0
			for _, e := range timeline.Entries {
				if !e.Forkable {
					if e.Status == "" {
						t.Errorf("no fork may begin at %d, though every entry was committed alone or with what followed:\n%s", e.Seq, tell(t, timeline.Entries))
					}
					continue
				}
				forks++
				fork, err := b.fork(t, "h", e.Seq)
				if err != nil {
					t.Fatalf("fork at %d: %v", e.Seq, err)
				}
				run := fork.Run
				if run.Status != host.StatusRunning || run.RunID == first.RunID || run.HandlerID == "h" || run.SessionID != run.HandlerID || run.Started != b.clock().UnixNano() {
					t.Errorf("fork at %d: %+v", e.Seq, run)
				}
				if run.ForkedFrom != first.RunID || run.ForkedAt != e.Seq || run.RetriedFrom+run.ParentRun != "" {
					t.Errorf("the fork at %d says that it is of %s at %d", e.Seq, run.ForkedFrom, run.ForkedAt)
				}
				if forks%2 == 0 {
					b.open(t)
				}
				run = b.through(t, run.HandlerID)
				if run.Status != host.StatusCompleted || !strings.Contains(string(run.Result.Body), "\x18\x6f") { // 111: each edit counts once
					t.Errorf("the fork at %d ends as %s %s: %x", e.Seq, run.Status, run.Error, run.Result.Body)
				}
				got := tell(t, b.timeline(t, run.HandlerID, 0, 2).Entries)
				if !strings.HasPrefix(got, "1 fork") {
					t.Errorf("the fork's journal begins with %s", got)
				}
				// An attempt under way has seen the ids of the run that it began in,
				// and is replayed with them; one that has written nothing begins.
				if fresh := strings.Contains(got, `run: ->"`+run.RunID+" in "+run.SessionID); fresh != (e.Kind == "start") {
					t.Errorf("the fork at %d goes on with %s", e.Seq, got)
				}
			}
			if forks < 8 {
				t.Errorf("%d forks", forks)
			}
			if after := b.record(t, "h"); after.RunID != first.RunID || after.Updated != first.Updated {
				t.Errorf("the run was %+v, and is %+v", first, after)
			}
			// A fork of a fork.
			fork, err := b.fork(t, "h", timeline.Entries[3].Seq)
			if err != nil {
				t.Fatal(err)
			}
			if fork, err = b.fork(t, fork.Run.HandlerID, 1); err != nil {
				t.Fatal(err)
			}
			if run := b.through(t, fork.Run.HandlerID); run.Status != host.StatusCompleted {
				t.Errorf("the fork of a fork: %+v", run)
			}
		})
	}
}

// TestForkWithChanges: a fork with another state, an answer, or held back begins with all of that
// in its first entry, whether the server is another one after or not; and a dry run begins
// nothing.
func TestForkWithChanges(t *testing.T) {
	for name, snapshots := range map[string]int{"from entries": 0, "from snapshots": 3} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			b := &bench{tokens: 1, snapshots: snapshots, modules: newSimModules(t, map[string]string{"two": asking})}
			b.guest = asker(&runs)
			b.open(t)
			b.start("h", "s")
			b.through(t, "h")
			patch, err := abi.FromJSON([]byte(`{"n":1000,"note":"edited"}`))
			if err != nil {
				t.Fatal(err)
			}
			answer := &abi.Event{Type: "Answer", Body: abi.EmptyMap}
			at := uint64(0) // where the first question waits
			for _, e := range b.timeline(t, "h", 0, 1000).Entries {
				if e.Kind == "wait" {
					at = e.Seq
					break
				}
			}
			first := func(id string) []host.TimelineEntry {
				t.Helper()
				return b.timeline(t, id, 0, 1).Entries
			}
			for i, tt := range []host.ForkRequest{
				{Patch: patch, Answer: answer}, {State: patch, Answer: answer, Paused: true},
				{Edits: []abi.Edit{{Op: abi.OpSet, Path: "n", Value: abi.Raw{0x19, 0x03, 0xe8}}, {Op: abi.OpSet, Path: "note", Value: abi.Raw{0x66, 'e', 'd', 'i', 't', 'e', 'd'}}}},
			} {
				for _, other := range []bool{false, true} {
					dry := tt
					dry.ID, dry.At, dry.DryRun = "h", at, true
					would, err := b.forkWith(t, dry)
					if err != nil || would.Run.Paused != tt.Paused {
						t.Fatalf("dry run %d: %+v, %v", i, would, err)
					}
					if _, err := b.sched.History().Get(t.Context(), "t", would.Run.HandlerID); host.CodeOf(err) != host.CodeNotFound {
						t.Errorf("the dry run %d has begun: %v", i, err)
					}
					dry.DryRun = false
					fork, err := b.forkWith(t, dry)
					if err != nil {
						t.Fatalf("fork %d: %v", i, err)
					}
					id := fork.Run.HandlerID
					if fork.Run.ForkedAt != at || fork.Run.ForkedFrom != b.record(t, "h").RunID {
						t.Errorf("fork %d is of %s at %d", i, fork.Run.ForkedFrom, fork.Run.ForkedAt)
					}
					if other {
						b.open(t) // all that the store has are the entries that the answer waited for
					}
					if got := first(id); len(got) != 1 || got[0].Seq != 1 || got[0].Kind != "fork" {
						t.Errorf("fork %d begins with %s", i, tell(t, got))
					}
					if got := b.stateAfter(t, id, 1, ""); got != `{"n":1000,"note":"edited"}` {
						t.Errorf("fork %d has the state %s", i, got)
					}
					b.rest()
					run := b.record(t, id)
					// Without the answer the question still waits; with it, the step sleeps.
					if asks := len(run.WaitingFor) > 0 && run.WaitingFor[0].Type == "Answer"; run.Paused != tt.Paused || !tt.Paused && asks != (tt.Answer == nil) {
						t.Errorf("fork %d: %+v", i, run)
					}
					if tt.Paused {
						if n := len(b.timeline(t, id, 0, 1000).Entries); n != 1 {
							t.Errorf("the paused fork has %d entries", n)
						}
						if _, err := await(b, func() (host.Run, error) { return b.sched.Resume(t.Context(), "t", id) }); err != nil {
							t.Fatal(err)
						}
					}
					// 1000, and 10 and 100 of the edits that follow; the first edit was before.
					if run = b.through(t, id); run.Status != host.StatusCompleted || !strings.Contains(string(run.Result.Body), "\x19\x04\x56") {
						t.Errorf("fork %d ends as %s %s: %x", i, run.Status, run.Error, run.Result.Body)
					}
				}
			}
			sessions := func() int {
				list, _, err := b.sched.History().ListSessions(t.Context(), host.SessionQuery{Tenant: "t", Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				return len(list)
			}
			before := sessions()
			for i, tt := range []struct {
				req  host.ForkRequest
				code host.Code
			}{
				{host.ForkRequest{Answer: &abi.Event{Type: "Nothing"}}, host.CodeInvalidArgument},
				{host.ForkRequest{Patch: patch, Answer: &abi.Event{Type: "Answer"}, Step: "nobody"}, host.CodeInvalidArgument},
				{host.ForkRequest{State: abi.Raw{0x80}}, host.CodeInvalidArgument},
				{host.ForkRequest{Edits: []abi.Edit{{Op: abi.OpSet, Path: "a..b", Value: abi.Null}}}, host.CodeInvalidArgument},
			} {
				tt.req.ID, tt.req.At = "h", at
				if _, err := b.forkWith(t, tt.req); host.CodeOf(err) != tt.code {
					t.Errorf("refusal %d: %v", i, err)
				}
			}
			if n := sessions(); n != before {
				t.Errorf("%d sessions after the refusals, %d before", n, before)
			}
		})
	}
}

// TestForkNamesTheNearest: a refusal names the entries of the run itself at which a fork can
// begin.
func TestForkNamesTheNearest(t *testing.T) {
	runs := 0
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
	b.guest = asker(&runs)
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.start("other", "s")
	b.rest()
	b.through(t, "h")
	b.through(t, "other")
	entries := b.timeline(t, "h", 0, 1000).Entries
	last := entries[len(entries)-1]
	resting := uint64(0)
	for _, e := range entries {
		if e.Forkable {
			resting = e.Seq
		}
	}
	_, err := b.fork(t, "h", last.Seq)
	var refused *host.Error
	if !errors.As(err, &refused) || refused.Code != host.CodeConflict || refused.Nearest == nil || *refused.Nearest != (host.Nearest{Before: resting}) {
		t.Errorf("a fork at the end %d, where %d is the last resting point: %+v", last.Seq, resting, err)
	}
	if _, err := b.fork(t, "h", refused.Nearest.Before); err != nil {
		t.Error(err)
	}
}

// TestForkRefuses: no such position, none where the run was under way, and none
// within what was written as one.
func TestForkRefuses(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		for range 2 {
			if _, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", "n", 1}}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: abi.EmptyMap}}}, nil
	}
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.start("later", "s")
	b.rest()
	for _, c := range []struct {
		id   string
		at   uint64
		code host.Code
		text string
	}{
		{"h", 0, host.CodeInvalidArgument, "no entry 0"},
		{"h", 99, host.CodeInvalidArgument, "no entry 99"},
		{"later", 2, host.CodeInvalidArgument, "not active at entry 2"},
		{"h", 3, host.CodeConflict, "the nearest entry before where a fork can begin is 1"},
		{"h", 4, host.CodeConflict, "had ended at entry 4: the nearest entry before where a fork can begin is 1"},
		{"nobody", 1, host.CodeNotFound, "not found"},
	} {
		_, err := b.fork(t, c.id, c.at)
		if host.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s at %d: %v, want %s with %q", c.id, c.at, err, c.code, c.text)
		}
	}
	fork, err := b.fork(t, "h", 1)
	if err != nil {
		t.Fatal(err)
	}
	b.rest()
	if run := b.record(t, fork.Run.HandlerID); run.Status != host.StatusCompleted {
		t.Errorf("the fork behind its start: %+v", run)
	}
}

// TestCutJournal: what lies before the distance that is kept is gone, up to a
// snapshot; runs go on.
func TestCutJournal(t *testing.T) {
	runs := 0
	b := &bench{tokens: 1, snapshots: 4, keep: 2, modules: newSimModules(t, map[string]string{"two": asking})}
	b.guest = named(&runs)
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.send(t, "h")
	b.advance(time.Hour)
	b.rest()
	b.open(t)
	if run := b.through(t, "h"); run.Status != host.StatusCompleted {
		t.Fatalf("%+v", run)
	}
	if _, err := b.sched.History().Timeline(t.Context(), host.TimelineQuery{Tenant: "t", ID: "h", After: 1, Limit: 10}); host.CodeOf(err) != host.CodeGone {
		t.Errorf("a page from before the cut: %v", err)
	}
	rest := b.timeline(t, "h", 0, 1000)
	if len(rest.Entries) == 0 || rest.Entries[0].Seq < 4 {
		t.Fatalf("what is left: %s", tell(t, rest.Entries))
	}
	if _, err := b.fork(t, "h", 1); host.CodeOf(err) != host.CodeGone {
		t.Errorf("a fork before the cut: %v", err)
	}
	if _, err := await(b, func() (host.StateValue, error) { return b.sched.StateAt(t.Context(), "t", "h", 1, "") }); host.CodeOf(err) != host.CodeGone {
		t.Errorf("a state before the cut: %v", err)
	}
	if got := b.stateAfter(t, "h", rest.Entries[0].Seq, ""); !strings.Contains(got, "run") {
		t.Errorf("the first state that is left: %s", got)
	}
	fork, err := b.fork(t, "h", rest.Entries[0].Seq)
	if err != nil {
		t.Fatal(err)
	}
	if run := b.through(t, fork.Run.HandlerID); run.Status != host.StatusCompleted {
		t.Errorf("a fork behind the cut: %+v", run)
	}
}

const (
	family = `{"abi": 1, "workflow": "two", "timeout": 0, "events": {"Go": {}, "Done": {}},
  "steps": [{"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Go"]]]},
    {"name": "run", "accepts": ["Go"], "emits": ["Done"]},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`
	asked = `{"abi": 1, "workflow": "kid", "timeout": 0, "events": {"Answer": {"kind": "human_response"}},
  "steps": [{"name": "kid", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]}]}`
)

// parents is a guest of family and its children: the first child shares the
// session, the second has one of its own.
func parents(_ context.Context, g *call) (abi.StepOutput, error) {
	switch g.in.Step {
	case "begin":
		out := abi.StepOutput{List: true}
		for range 2 {
			out.Events = append(out.Events, abi.Event{Type: "Go", Body: abi.EmptyMap})
		}
		return out, nil
	case "run":
		req := map[string]any{"workflow": "kid", "event": []any{"StartEvent", map[string]any{}}}
		if g.in.Run.Invocation == 2 {
			req["session"] = map[string]any{"shared": true}
		}
		if _, err := g.do(abi.ImportRunWorkflow, req); err != nil {
			return abi.StepOutput{}, err
		}
		return abi.StepOutput{Events: []abi.Event{{Type: "Done", Body: abi.EmptyMap}}}, nil
	case "kid":
		if _, err := g.do(abi.ImportWait, map[string]any{"type": "Answer"}); err != nil {
			return abi.StepOutput{}, err
		}
	}
	return stopEvent(), nil
}

// TestForkWithChildren: children of the session go on in the fork, others begin
// anew; neither hears of what the old ones do.
func TestForkWithChildren(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": family, "kid": asked})}
	b.guest = parents
	b.open(t)
	b.start("h", "s")
	b.rest()
	kids := func(id string) map[string]host.Run {
		t.Helper()
		out := map[string]host.Run{}
		for _, w := range b.record(t, id).WaitingFor {
			if w.Child == "" {
				t.Fatalf("%s waits for %+v", id, w)
			}
			out[w.Child] = b.record(t, w.Child)
			if kid, parent := out[w.Child], b.record(t, id); kid.ParentRun != parent.RunID || kid.ParentStep != w.Step {
				t.Errorf("the child of %s, step %s, says that it is of %s, step %s", parent.RunID, w.Step, kid.ParentRun, kid.ParentStep)
			}
		}
		if len(out) != 2 {
			t.Fatalf("%s waits for %v", id, out)
		}
		return out
	}
	old := kids("h")
	entries := b.timeline(t, "h", 0, 1000).Entries
	fork, err := b.fork(t, "h", entries[len(entries)-1].Seq)
	if err != nil {
		t.Fatal(err)
	}
	b.rest()
	run := fork.Run
	anew := kids(run.HandlerID)
	shared := 0
	for id, kid := range anew {
		if _, both := old[id]; both || kid.Status != host.StatusRunning {
			t.Errorf("the fork waits for %+v", kid)
		}
		if kid.SessionID == run.SessionID {
			shared++
		} else if len(fork.Anew) != 1 || fork.Anew[0].HandlerID != id || fork.Anew[0].Step != "run" || old[fork.Anew[0].Was].SessionID == "s" {
			t.Errorf("begun anew: %+v", fork.Anew)
		}
	}
	if shared != 1 {
		t.Errorf("the fork has %d children of its session: %+v", shared, anew)
	}
	for id := range anew {
		b.send(t, id)
		b.open(t)
		b.rest()
	}
	if done := b.record(t, run.HandlerID); done.Status != host.StatusCompleted {
		t.Errorf("the fork: %+v", done)
	}
	if was := b.record(t, "h"); was.Status != host.StatusRunning {
		t.Errorf("the run: %+v", was)
	}
	for id := range old {
		b.send(t, id)
	}
	b.rest()
	if was := b.record(t, "h"); was.Status != host.StatusCompleted {
		t.Errorf("the run after its fork: %+v", was)
	}
}

// TestForkCallsAnew: a fork makes the calls of resources that have no answer there
// once more, under keys of its own and whatever their mode, and asks for no answer
// that it has.
func TestForkCallsAnew(t *testing.T) {
	for _, mode := range []host.ResourceMode{host.ResourceReadOnly, host.ResourceRepeat, host.ResourceFail} {
		t.Run(string(mode), func(t *testing.T) {
			h := newHeld(mode, 8)
			b := newOutside(t, h)
			run := b.mustStart()
			b.held.goOn <- struct{}{} // one is answered
			b.rest()
			for range 2 {
				b.held.goOn <- struct{}{}
			}
			b.joined()
			b.rest()
			b.completed(run, 3)

			var timeline host.Timeline
			var fork host.Fork
			err := b.do(func() (err error) {
				timeline, err = b.sched.History().Timeline(t.Context(), host.TimelineQuery{Tenant: "t", ID: "h", Limit: 1000})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			at, answered := uint64(0), 0
			for _, e := range timeline.Entries {
				if c := e.Called; c != nil && (c.Resource != "crm" || c.Method != "put" || (c.Payload == nil) != (e.Kind == "answered")) {
					t.Errorf("entry %d tells of the call %+v", e.Seq, c)
				}
				if e.Kind == "answered" {
					answered++
				}
				if answered == 1 && e.Forkable {
					at = e.Seq
				}
			}
			if err := b.do(func() (err error) {
				fork, err = b.sched.Fork(t.Context(), host.ForkRequest{Tenant: "t", ID: "h", At: at})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			again := host.Renewed{Kind: host.RenewedResource, Step: "work", Resource: "crm"}
			if len(fork.Anew) != 2 || fork.Anew[0] != again || fork.Anew[1] != again {
				t.Errorf("begun anew: %+v", fork.Anew)
			}
			b.let(2)
			b.completed(fork.Run, 5)
			keys := map[string]bool{}
			for _, c := range h.calls {
				keys[c.Key] = true
			}
			if len(keys) != 5 {
				t.Errorf("%d keys of 5 calls: %+v", len(keys), h.calls)
			}
		})
	}
}
