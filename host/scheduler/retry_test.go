package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// failing is a workflow of three branches that are collected: one asks and waits,
// one sleeps, one fails as long as it is told to.
const failing = `{"abi": 1, "workflow": "two", "timeout": 60000000000,
  "events": {"Work": {}, "Done": {}, "Answer": {"kind": "human_response"}},
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Done"], "workers": 3, "waits": ["Answer"]},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// branches is the guest of failing: broken says whether the third branch fails.
// Each branch counts what it did in the state, before its wait and after.
func branches(broken func() bool) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, g *call) (abi.StepOutput, error) {
		done := func(typ string) (abi.StepOutput, error) {
			return abi.StepOutput{Events: []abi.Event{{Type: typ, Body: abi.EmptyMap}}}, nil
		}
		switch g.in.Step {
		case "begin":
			out := list(3)
			for i := range out.Events {
				out.Events[i].Body = abi.Raw{0xa1, 0x61, 'b', byte(2 + i)} // {"b": 2}
			}
			return out, nil
		case "end":
			return done(abi.TypeStop)
		}
		number := g.in.Trigger[0].Body[3]
		branch := fmt.Sprintf("b%d", number)
		count := func(at string) error {
			_, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", branch + at, 1}})
			return err
		}
		if err := count("before"); err != nil {
			return abi.StepOutput{}, err
		}
		var err error
		switch number {
		case 2:
			_, err = g.do(abi.ImportWait, map[string]any{"type": "Answer"})
		case 3:
			_, err = g.do(abi.ImportSleep, []any{int64(20 * time.Second)})
		case 4:
			if _, err := g.do(abi.ImportSleep, []any{int64(time.Second)}); err != nil { // what it did is durable
				return abi.StepOutput{}, err
			}
			if broken() {
				return abi.StepOutput{Err: &abi.Error{Code: "broken", Message: "not yet"}}, nil
			}
		}
		if err == nil {
			err = count("after")
		}
		if err != nil {
			return abi.StepOutput{}, err
		}
		return done("Done")
	}
}

func (b *bench) retry(t *testing.T, id string, newest bool) (host.Fork, error) {
	t.Helper()
	return await(b, func() (host.Fork, error) { return b.sched.Retry(t.Context(), "t", id, newest) })
}

// count gives the edits that a run has made, and what came of each.
func (b *bench) count(t *testing.T, id string) string {
	t.Helper()
	var out strings.Builder
	for _, e := range b.timeline(t, id, 0, 1000).Entries {
		for _, edit := range e.Edits {
			v, err := abi.ToJSON(edit.New)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s=%s ", edit.Path, v)
		}
	}
	return out.String()
}

// TestRetry: a run that failed goes on from the step that did: what was done is not
// done again, what waited waits on, though the server is another one, and its
// journal was read from a snapshot or not.
func TestRetry(t *testing.T) {
	for name, snapshots := range map[string]int{"from entries": 0, "from snapshots": 3, "in memory": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			broken := true
			b := &bench{tokens: 2, snapshots: snapshots, modules: newSimModules(t, map[string]string{"two": failing})}
			b.guest = branches(func() bool { return broken })
			b.open(t)
			reopen := func() {
				if snapshots < 1<<20 {
					b.open(t)
				}
			}
			first := b.start("h", "s")
			b.rest()
			b.advance(time.Second)
			b.rest()
			if run := b.record(t, "h"); run.Status != host.StatusFailed || run.ErrorCode != "broken" {
				t.Fatalf("the run: %+v", run)
			}
			reopen()
			again, err := b.retry(t, "h", false) // it fails again
			if err != nil {
				t.Fatal(err)
			}
			b.rest()
			b.advance(time.Second)
			b.rest()
			if run := b.record(t, "h"); run.RetriedFrom != first.RunID || run.ForkedFrom != "" {
				t.Errorf("the retry says that it is of %q, a fork of %q", run.RetriedFrom, run.ForkedFrom)
			}
			if run := b.record(t, "h"); again.Run.RunID == first.RunID || again.Run.HandlerID != "h" || run.RunID != again.Run.RunID || run.Status != host.StatusFailed {
				t.Fatalf("retried: %+v, now %+v", again.Run, run)
			}
			if run := b.record(t, first.RunID); run.Status != host.StatusFailed || run.Completed == 0 {
				t.Errorf("the run that failed is now %+v", run)
			}
			reopen()
			broken = false
			b.advance(time.Hour)
			again, err = b.retry(t, again.Run.RunID, false)
			if err != nil {
				t.Fatal(err)
			}
			b.rest()
			reopen()
			b.send(t, "h")
			b.advance(time.Second)
			b.rest()
			// Two failures after a second each: of the 20 s 18 are left, less one.
			if run := b.record(t, "h"); run.Status != host.StatusRunning || len(run.WaitingFor) != 1 || run.WaitingFor[0].Until != b.clock().Add(17*time.Second).UnixNano() {
				t.Errorf("it sleeps: %+v", run)
			}
			b.advance(17 * time.Second)
			b.rest()
			run := b.record(t, "h")
			if run.Status != host.StatusCompleted || run.RunID != again.Run.RunID {
				t.Fatalf("it ends as %s %s", run.Status, run.Error)
			}
			done := b.count(t, first.RunID) + b.count(t, run.RunID)
			for _, want := range []string{"b2before=1", "b2after=1", "b3before=1", "b3after=1", "b4before=3", "b4after=1"} {
				if strings.Count(done, want[:strings.IndexByte(want, '=')]+"=") > 1 && !strings.HasPrefix(want, "b4before") || !strings.Contains(done, want) {
					t.Errorf("%s is not so: %s", want, done)
				}
			}
			got := tell(t, b.timeline(t, "h", 0, 1).Entries)
			if !strings.Contains(got, " retry begins work 4/1") {
				t.Errorf("its timeline begins with %s", got)
			}
		})
	}
}

// TestRetryOfTimeout: a run whose time was over has it anew, and goes on.
func TestRetryOfTimeout(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": failing})}
	b.guest = branches(func() bool { return false })
	b.open(t)
	b.start("h", "")
	b.rest()
	b.advance(59 * time.Second)
	b.rest()
	b.advance(time.Second)
	b.rest()
	if run := b.record(t, "h"); run.ErrorCode != host.RunTimeout {
		t.Fatalf("%+v", run)
	}
	if _, err := b.retry(t, "h", false); err != nil {
		t.Fatal(err)
	}
	b.advance(59 * time.Second)
	b.send(t, "h")
	b.rest()
	if run := b.record(t, "h"); run.Status != host.StatusCompleted {
		t.Errorf("%+v", run)
	}
}

// TestRetryRefused: only the latest run of a handler, which has failed and of which
// the journal still knows how.
func TestRetryRefused(t *testing.T) {
	broken := true
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": failing})}
	b.guest = branches(func() bool { return broken })
	b.open(t)
	refused := func(id string, code host.Code, text string) {
		t.Helper()
		if _, err := b.retry(t, id, false); host.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
			t.Errorf("retry of %s: %v, want %s with %q", id, err, code, text)
		}
	}
	refused("nobody", host.CodeNotFound, "not found")
	first := b.start("h", "s")
	b.rest()
	b.advance(time.Second)
	b.rest()
	broken = false
	b.start("h", "s")
	b.rest()
	refused("h", host.CodeConflict, "has not failed, it is running")
	refused(first.RunID, host.CodeConflict, "is already running")
	if _, err := await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", "h", false) }); err != nil {
		t.Fatal(err)
	}
	refused("h", host.CodeConflict, "it is cancelled")
	refused(first.RunID, host.CodeConflict, "not the latest of handler 'h'")

	// Two at once: one goes on.
	broken = true
	b.start("twice", "s2")
	b.rest()
	b.advance(time.Second)
	b.rest()
	broken = false
	errs, err := await(b, func() ([]error, error) {
		done := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := b.sched.Retry(t.Context(), "t", "twice", false)
				done <- err
			}()
		}
		return []error{<-done, <-done}, nil
	})
	if err != nil || (errs[0] == nil) == (errs[1] == nil) || host.CodeOf(errs[0]) != host.CodeConflict && host.CodeOf(errs[1]) != host.CodeConflict {
		t.Errorf("two retries at once: %v, %v", errs, err)
	}
}

// TestRetryBehindCut: what the journal no longer has cannot be gone on from.
func TestRetryBehindCut(t *testing.T) {
	broken := true
	b := &bench{tokens: 1, snapshots: 4, keep: 1, modules: newSimModules(t, map[string]string{"two": failing})}
	b.guest = branches(func() bool { return broken })
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.advance(time.Second)
	b.rest()
	broken = false
	for i := range 3 {
		id := fmt.Sprintf("other%d", i)
		b.start(id, "s")
		b.rest()
		b.send(t, id)
		b.advance(20 * time.Second)
		b.rest()
	}
	if _, err := b.retry(t, "h", false); host.CodeOf(err) != host.CodeGone {
		t.Errorf("a retry from before the cut: %v", err)
	}
}

// TestRetryOfBlocked: the attempt that departed from its record begins anew, and the
// one that waits goes on with its own.
func TestRetryOfBlocked(t *testing.T) {
	departs := false
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": failing})}
	inner := branches(func() bool { return false })
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if departs && g.in.Run.Invocation == 3 {
			if _, err := g.do(abi.ImportStateEdit, []any{[]any{"set", "other", true}}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return inner(ctx, g)
	}
	b.open(t)
	run := b.start("h", "s")
	b.rest()
	b.advance(time.Second)
	b.rest()
	departs = true
	b.advance(19 * time.Second)
	b.rest()
	if rec := b.record(t, "h"); rec.Blocked == nil || rec.Blocked.Code != host.BlockedReplayMismatch {
		t.Fatalf("%+v", rec)
	}
	if _, err := b.retry(t, "h", true); host.CodeOf(err) != host.CodeConflict {
		t.Errorf("a blocked one with the newest version: %v", err)
	}
	again, err := b.retry(t, "h", false)
	if err != nil || again.Run.RunID != run.RunID || again.Run.Blocked != nil {
		t.Fatalf("%+v, %v", again, err)
	}
	b.rest()
	b.advance(20 * time.Second)
	b.send(t, "h")
	b.rest()
	if rec := b.record(t, "h"); rec.Status != host.StatusCompleted {
		t.Fatalf("%+v", rec)
	}
	if done := b.count(t, "h"); !strings.Contains(done, "b3before=2") || strings.Contains(done, "b2before=2") || !strings.Contains(done, "other=true") {
		t.Errorf("done: %s", done)
	}
}
