package scheduler_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

func onceKey(key, hash string) host.Once { return host.Once{Route: "POST /", Key: key, Hash: hash} }

// startOnce starts a run of the bench's workflow under a key.
func (b *bench) startOnce(once host.Once, wait bool) (host.Run, error) {
	return b.sched.Start(b.t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", Once: once, Wait: wait})
}

// A start that comes again gives the run of the first, as it is then; another body
// under its key is refused, and so is nobody else's.
func TestRepeatedStart(t *testing.T) {
	b := &bench{tokens: 1}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		first, err := b.startOnce(onceKey("k", "h"), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, wait := range []bool{true, false} {
			again, err := b.startOnce(onceKey("k", "h"), wait)
			if err != nil || again.RunID != first.RunID || wait && again.Status != host.StatusCompleted {
				t.Errorf("again: %+v, %v; want run %s", again, err, first.RunID)
			}
		}
		if _, err := b.startOnce(onceKey("k", "other"), false); host.CodeOf(err) != host.CodeIdempotencyMismatch {
			t.Errorf("another body: %v", err)
		}
		other := onceKey("k", "other")
		other.Route = "POST /elsewhere"
		for _, once := range []host.Once{onceKey("K", "h"), other, {}} {
			if run, err := b.startOnce(once, true); err != nil || run.RunID == first.RunID {
				t.Errorf("%+v: %+v, %v", once, run, err)
			}
		}
		if _, err := b.sched.Cancel(t.Context(), "t", first.HandlerID, true); err != nil {
			t.Fatal(err)
		}
		if _, err := b.startOnce(onceKey("k", "h"), false); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("after a purge: %v", err)
		}
		pass(25 * time.Hour)
		if run, err := b.startOnce(onceKey("k", "other"), true); err != nil || run.Status != host.StatusCompleted {
			t.Errorf("a day later the key is free: %+v, %v", run, err)
		}
	})
}

// Starts that come at the same time are one.
func TestRepeatedAtOnce(t *testing.T) {
	b := &bench{tokens: 2}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		var clients sync.WaitGroup
		runs := make([]host.Run, 20)
		for i := range runs {
			clients.Go(func() {
				var err error
				if runs[i], err = b.startOnce(onceKey("k", "h"), i%2 == 0); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		for _, run := range runs {
			if run.RunID != runs[0].RunID {
				t.Errorf("runs %s and %s", run.RunID, runs[0].RunID)
			}
		}
		if n := b.sched.Counters().Attempts; n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// A start that was refused is not remembered.
func TestRefusedStartIsNotRemembered(t *testing.T) {
	b := &bench{tokens: 1}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		req := host.StartRequest{Tenant: "t", Workflow: "solo", Event: abi.Event{Type: "Nope"}, Once: onceKey("k", "h")}
		if _, err := b.sched.Start(t.Context(), req); host.CodeOf(err) != host.CodeInvalidArgument {
			t.Fatal(err)
		}
		if run, err := b.startOnce(onceKey("k", "another"), true); err != nil || run.Status != host.StatusCompleted {
			t.Errorf("%+v, %v", run, err)
		}
	})
}
