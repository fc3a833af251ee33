package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// tidying is a workflow whose one step waits for an answer, and that cleans up by
// an edit after a sleep.
const tidying = `{"abi": 1, "workflow": "solo", "timeout": %d,
  "events": {"Answer": {"kind": "human_response"}},
  "steps": [
    {"name": "ask", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]},
    {"name": "tidy", "accepts": ["StepFailedEvent"], "catches": ["cancelled", "timeout"]}]}`

// tidier sleeps so long before it cleans up.
func tidier(sleep time.Duration) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, g *call) (abi.StepOutput, error) {
		im, req := abi.ImportWait, any(map[string]any{"type": "Answer"})
		if g.in.Step == "tidy" {
			im, req = abi.ImportSleep, []any{int64(sleep)}
		}
		if _, err := g.do(im, req); err != nil {
			return abi.StepOutput{}, err
		}
		if g.in.Step == "ask" {
			return stopEvent(), nil
		}
		_, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", "tidied", 1}})
		return abi.StepOutput{}, err
	}
}

func tidyBench(t *testing.T, timeout, sleep time.Duration) *bench {
	t.Helper()
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"solo": fmt.Sprintf(tidying, int64(timeout))})}
	b.guest = tidier(sleep)
	return b
}

// ask starts a run.
func (b *bench) ask(t *testing.T, handler, session string, busy host.OnBusy, wait bool) (host.Run, error) {
	t.Helper()
	return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", HandlerID: handler, SessionID: session, OnBusy: busy, Wait: wait})
}

func (b *bench) answer(t *testing.T, handler string) error {
	t.Helper()
	return b.sched.Send(t.Context(), "t", handler, abi.Event{Type: "Answer"}, "")
}

func (b *bench) record(t testing.TB, handler string) host.Run {
	t.Helper()
	run, err := b.sched.History().Get(t.Context(), "t", handler)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Whoever cancels is answered when the clean-up is through and the run has ended;
// until then the run takes nothing from outside.
func TestCancelWaitsForTheCleanUp(t *testing.T) {
	for name, tt := range map[string]struct {
		sleep, took time.Duration
		purge       bool
	}{
		"in time":        {sleep: 3 * time.Second, took: 3 * time.Second},
		"over the grace": {sleep: time.Hour, took: limit.Default().CleanupTime},
		"with purge":     {sleep: 3 * time.Second, took: 3 * time.Second, purge: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := tidyBench(t, 0, tt.sleep)
			live(t, b, func(t *testing.T) {
				if _, err := b.ask(t, "h", "", "", false); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				done := make(chan error)
				go func() {
					deleted, err := b.sched.Cancel(t.Context(), "t", "h", tt.purge)
					if deleted != tt.purge {
						t.Errorf("deleted: %t", deleted)
					}
					done <- err
				}()
				pass(time.Second)
				if run := b.record(t, "h"); run.Status != host.StatusRunning || len(run.WaitingFor) > 0 {
					t.Errorf("while it cleans up: %+v", run)
				}
				if err := b.answer(t, "h"); host.CodeOf(err) != host.CodeConflict {
					t.Errorf("an answer: %v", err)
				}
				if _, err := b.sched.Pause(t.Context(), "t", "h"); host.CodeOf(err) != host.CodeConflict || !strings.Contains(err.Error(), "cleaning up") {
					t.Errorf("pause: %v", err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < tt.took || took > tt.took+100*time.Millisecond {
					t.Errorf("cancel took %s, want %s", took, tt.took)
				}
				run, err := b.sched.History().Get(t.Context(), "t", "h")
				if tt.purge {
					if host.CodeOf(err) != host.CodeNotFound {
						t.Errorf("after the purge: %+v, %v", run, err)
					}
				} else if err != nil || run.Status != host.StatusCancelled {
					t.Errorf("%+v, %v", run, err)
				}
			})
		})
	}
}

// A second cancel ends the clean-up, and both are answered. One that ends the
// clean-up after a timeout has cancelled nothing: the run has timed out.
func TestSecondCancel(t *testing.T) {
	b := tidyBench(t, time.Second, time.Hour)
	live(t, b, func(t *testing.T) {
		if _, err := b.ask(t, "h", "", "", false); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := b.sched.Cancel(t.Context(), "t", "h", false)
			done <- err
		}()
		pass(500 * time.Millisecond)
		b.cancel(t, "t", "h")
		if err := <-done; err != nil {
			t.Error(err)
		}
		run, err := b.ask(t, "late", "", "", false)
		if err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if _, err := b.sched.Cancel(t.Context(), "t", "late", false); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("cancel of a run that timed out: %v", err)
		}
		if got := b.record(t, run.RunID); got.ErrorCode != host.RunTimeout {
			t.Errorf("%+v", got)
		}
	})
}

// A client that leaves does not keep the clean-up from its end.
func TestCancelsClientLeaves(t *testing.T) {
	b := tidyBench(t, 0, 3*time.Second)
	live(t, b, func(t *testing.T) {
		if _, err := b.ask(t, "h", "", "", false); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := b.sched.Cancel(ctx, "t", "h", false); err == nil {
			t.Error("cancel was answered before the end")
		}
		pass(5 * time.Second)
		if run := b.record(t, "h"); run.Status != host.StatusCancelled {
			t.Errorf("%+v", run)
		}
	})
}

// A start that queues is there at once, and begins when the runs before it have
// ended: in order, with its timeout from then on, and whoever waits for its end is
// told of it.
func TestQueuedStarts(t *testing.T) {
	b := tidyBench(t, time.Minute, 0)
	live(t, b, func(t *testing.T) {
		if _, err := b.ask(t, "first", "s", host.OnBusyQueue, false); err != nil {
			t.Fatal(err)
		}
		ends := make(chan string, 2)
		for _, handler := range []string{"second", "third"} {
			go func() {
				run, err := b.ask(t, handler, "s", host.OnBusyQueue, true)
				ends <- fmt.Sprint(run.HandlerID, " ", run.Status, " ", err)
			}()
			synctest.Wait()
		}
		pass(30 * time.Second)
		if run := b.record(t, "second"); run.Status != host.StatusRunning || len(run.WaitingFor) != 1 || run.WaitingFor[0].Reason != host.WaitsForTurn {
			t.Errorf("a queued run: %+v", run)
		}
		if _, err := b.ask(t, "second", "", host.OnBusyQueue, false); host.CodeOf(err) != host.CodeConflict {
			t.Errorf("a second start on a queued handler: %v", err)
		}
		if _, err := b.ask(t, "fourth", "s", host.OnBusyReject, false); host.CodeOf(err) != host.CodeConflict {
			t.Errorf("a start that would not wait: %v", err)
		}
		if err := b.answer(t, "second"); host.CodeOf(err) != host.CodeConflict || !strings.Contains(err.Error(), "has not begun") {
			t.Errorf("an answer before its turn: %v", err)
		}
		if err := b.answer(t, "first"); err != nil {
			t.Fatal(err)
		}
		pass(40 * time.Second) // the first would have timed out, the second has not
		if err := b.answer(t, "second"); err != nil {
			t.Fatal(err)
		}
		if got := <-ends; got != "second completed <nil>" {
			t.Errorf("the second ends as %s", got)
		}
		b.cancel(t, "t", "third")
		if got := <-ends; got != "third cancelled <nil>" {
			t.Errorf("the third ends as %s", got)
		}
	})
}

// A queued start outlives the server; if nobody is before it any more when the
// next one comes, it begins then.
func TestQueuedStartOutlivesTheServer(t *testing.T) {
	b := tidyBench(t, time.Hour, 0)
	b.open(t)
	start := func(handler string) host.Run {
		t.Helper()
		run, err := await(b, func() (host.Run, error) { return b.ask(t, handler, "s", host.OnBusyQueue, false) })
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	start("first")
	second, third := start("second"), start("third")
	b.open(t)
	b.rest()
	for _, handler := range []string{"first", "second"} {
		if _, err := await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", handler, false) }); err != nil {
			t.Fatal(err)
		}
		b.open(t)
		b.rest()
	}
	if got := b.status(second.RunID); got != host.StatusCancelled {
		t.Errorf("the second is %s", got)
	}
	if run := b.record(t, "third"); run.RunID != third.RunID || len(run.WaitingFor) != 1 || run.WaitingFor[0].Step != "ask" {
		t.Errorf("the third has not begun: %+v", run)
	}
}

// The end of a run and the begin of the one behind it are two entries. A server that
// dies between their commits leaves a session that has something to do.
func TestCrashBetweenTurns(t *testing.T) {
	manifest := strings.Replace(fmt.Sprintf(tidying, int64(time.Hour)), `"catches": ["cancelled", "timeout"]`, `"catches": ["ask"]`, 1)
	b := &bench{tokens: 1, batch: 1, modules: newSimModules(t, map[string]string{"solo": manifest}), guest: tidier(0)}
	b.open(t)
	for _, handler := range []string{"first", "second"} {
		if _, err := await(b, func() (host.Run, error) { return b.ask(t, handler, "s", host.OnBusyQueue, false) }); err != nil {
			t.Fatal(err)
		}
	}
	b.rest()
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := b.sched.Cancel(ctx, "t", "first", false)
		answered <- err
	}()
	for b.status(b.record(t, "first").RunID) == host.StatusRunning { // one commit, and no more
		if commit, _ := b.journal.Step(b.clock().Add(time.Hour)); commit != nil {
			if err := commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		runtime.Gosched()
	}
	leave()
	<-answered
	if run := b.record(t, "second"); len(run.WaitingFor) != 1 || run.WaitingFor[0].Reason != host.WaitsForTurn {
		t.Fatalf("the second has begun already: %+v", run)
	}
	b.open(t)
	b.rest()
	if run := b.record(t, "second"); len(run.WaitingFor) != 1 || run.WaitingFor[0].Step != "ask" {
		t.Errorf("the second has not begun: %+v", run)
	}
}

// queued_starts bounds what waits for one session.
func TestQueuedStartsAreBounded(t *testing.T) {
	limits, err := limit.Parse([]byte(`{"defaults": {"queued_starts": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	b := tidyBench(t, time.Hour, 0)
	b.limits = limits
	live(t, b, func(t *testing.T) {
		for i := range 4 {
			_, err := b.ask(t, fmt.Sprint("h", i), "s", host.OnBusyQueue, false)
			if full := i == 3; full != (host.CodeOf(err) == host.CodeLimitExceeded && strings.Contains(fmt.Sprint(err), "queued_starts")) {
				t.Errorf("start %d: %v", i, err)
			}
		}
		for i := 2; i >= 0; i-- {
			b.cancel(t, "t", fmt.Sprint("h", i))
		}
	})
}
