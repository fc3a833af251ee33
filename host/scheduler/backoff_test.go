package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A step that the host has no room for is tried again later, while others run:
// the first time after 50 ms, then after twice as long each time.
func TestTriedLater(t *testing.T) {
	const short = 4
	tries := 0
	b := &bench{tokens: 1}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) {
		if tries++; tries <= short {
			return abi.StepOutput{}, host.Errorf(host.CodeUnavailable, "the host has no memory for an instance now")
		}
		return stopEvent(), nil
	}
	live(t, b, func(t *testing.T) {
		began := time.Now()
		run := b.solo(t, "t")
		if run.Status != host.StatusCompleted {
			t.Errorf("%+v", run)
		}
		const want = (1<<short - 1) * 50 * time.Millisecond
		if took := time.Since(began); took < want || took > want+50*time.Millisecond {
			t.Errorf("took %s, want %s", took, want)
		}
		if c := b.sched.Counters(); c.Backoffs != short || c.Attempts != short+1 {
			t.Errorf("%+v", c)
		}
	})
}

// A run that waits for the host's memory can be cancelled, and a server that
// stops does not wait for it.
func TestPutOffIsNoHindrance(t *testing.T) {
	b := &bench{tokens: 1}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) {
		return abi.StepOutput{}, host.Errorf(host.CodeUnavailable, "the host has no memory for an instance now")
	}
	live(t, b, func(t *testing.T) {
		b.begin(t, "t", "cancelled")
		b.begin(t, "t", "left")
		pass(time.Minute)
		if _, err := b.sched.Cancel(t.Context(), "t", "cancelled", false); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		if c := b.sched.Counters(); c.Backoffs < 30 || c.Backoffs > 50 {
			t.Errorf("put off %d times in two minutes", c.Backoffs)
		}
	})
}
