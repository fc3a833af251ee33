package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A tenant with 10,000 runs that want to compute without end keeps a run of another
// tenant from the only core for no longer than two turns of a guest, each time that
// the run wants it: what is left of the turn that is under way, and one more if the
// run's tenant is ahead by what it has just had. Units are counted, no time is measured.
func TestCrowdOfSpinningRunsDelaysOthersByTwoTurns(t *testing.T) {
	crowd, runs := 10_000, 200
	if raced {
		crowd, runs = 1000, 50
	}
	const most = 2 * (500_000 + slice) // each turn ends at the next checkpoint
	var spun, waited atomic.Int64      // units of the crowd's: all, and while the other's run was queued
	var waits []int64
	b := &bench{tokens: 1}
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.Tenant == "calm" {
			waits = append(waits, waited.Swap(0))
			return stopEvent(), g.burn(ctx, 10_000)
		}
		for ctx.Err() == nil {
			spun.Add(slice)
			if b.sched.Load().Ready == crowd { // one of the crowd's has the core
				waited.Add(slice)
			}
			if err := g.inv.Token.Checkpoint(slice); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return abi.StepOutput{}, ctx.Err()
	}
	live(t, b, func(t *testing.T) {
		for i := range crowd {
			b.begin(t, "crowd", fmt.Sprint(i))
		}
		for spun.Load() < 10*most {
			runtime.Gosched()
		}
		for range runs {
			if run := b.solo(t, "calm"); run.Status != host.StatusCompleted {
				t.Fatalf("%+v", run)
			}
		}
		if ready := b.sched.Load().Ready; ready < crowd-1 {
			t.Errorf("only %d runs of the crowd wait", ready)
		}
		for i := range crowd {
			b.cancel(t, "crowd", fmt.Sprint(i))
		}
	})
	t.Logf("%d runs waited for %d units at most", len(waits), slices.Max(waits))
	if len(waits) != runs || slices.Max(waits) > most || slices.Max(waits) < slice {
		t.Errorf("%d runs waited for %d units, want at most %d", len(waits), slices.Max(waits), most)
	}
}
