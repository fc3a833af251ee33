package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/usage"
)

// burning is a guest that burns before, between and after two edits and a wait.
func burning(units uint64) func(ctx context.Context, g *call) (abi.StepOutput, error) {
	return func(ctx context.Context, g *call) (abi.StepOutput, error) {
		for _, c := range []struct {
			im  abi.Import
			req any
		}{
			{abi.ImportStateEdit, []any{[]any{"increment", "n", 1}}},
			{abi.ImportWait, map[string]any{"type": "Answer"}},
			{abi.ImportStateEdit, []any{[]any{"increment", "n", 10}}},
		} {
			if err := g.burn(ctx, units); err != nil {
				return abi.StepOutput{}, err
			}
			if _, err := g.do(c.im, c.req); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return stopEvent(), g.burn(ctx, units)
	}
}

// spent is what the store says that tenant t has spent.
func (b *bench) spent(t *testing.T) (sum usage.Spent) {
	t.Helper()
	list, err := b.store.Spent(t.Context(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		sum.Add(list[i].Spent)
	}
	return sum
}

// What a run burns is billed once, however often it is replayed, whatever becomes of
// the session in memory or the server, and also if it is cut off.
func TestFuelIsBilledOnce(t *testing.T) {
	const units = 200_000
	answer := abi.Event{Type: "Answer", Body: abi.EmptyMap}
	for name, c := range map[string]struct {
		then func(*testing.T, *bench)
		fuel uint64
	}{
		"to its end": {func(t *testing.T, b *bench) { b.reply(t, answer) }, 4*units + 1},
		"evicted while it waits": {func(t *testing.T, b *bench) {
			b.advance(time.Second)
			b.rest()
			b.reply(t, answer)
		}, 4*units + 1},
		"on another server": {func(t *testing.T, b *bench) {
			b.open(t)
			b.reply(t, answer)
		}, 4*units + 1},
		"cancelled while it waits": {func(t *testing.T, b *bench) {
			_, err := await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", "h", true) })
			if err != nil {
				t.Fatal(err)
			}
		}, 2 * units},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": asking})}
			b.guest = burning(units)
			b.open(t)
			b.start("h", "s")
			b.rest()
			if got := b.spent(t); got != (usage.Spent{Runs: 1, Fuel: 2 * units}) {
				t.Errorf("spent before: %+v", got)
			}
			c.then(t, b)
			b.rest()
			b.open(t) // nothing is billed again by looking at it
			b.rest()
			if got := b.spent(t); got != (usage.Spent{Runs: 1, Fuel: c.fuel}) {
				t.Errorf("spent %+v, want %d units", got, c.fuel)
			}
		})
	}
}

func (b *bench) reply(t *testing.T, ev abi.Event) {
	t.Helper()
	_, err := await(b, func() (struct{}, error) { return struct{}{}, b.sched.Send(t.Context(), "t", "h", ev, "") })
	if err != nil {
		t.Fatal(err)
	}
}

// A guest that is cancelled while it computes is billed for what it has burnt until
// then, though it has written nothing.
func TestFuelOfWhatIsCutOff(t *testing.T) {
	const units = 700_000
	var computing atomic.Bool
	b := &bench{tokens: 1}
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if err := g.burn(ctx, units); err != nil {
			return abi.StepOutput{}, err
		}
		computing.Store(true)
		<-ctx.Done()
		return abi.StepOutput{}, ctx.Err()
	}
	live(t, b, func(t *testing.T) {
		b.begin(t, "t", "h")
		pass(time.Second)
		if !computing.Load() || b.spent(t).Fuel != 0 {
			t.Fatalf("computing %t, spent %+v", computing.Load(), b.spent(t))
		}
		b.cancel(t, "t", "h")
		pass(time.Second)
		if got := b.spent(t); got.Fuel != units {
			t.Errorf("spent %+v, burnt were %d", got, units)
		}
	})
}

// Replays are free up to ten times what the attempt itself has burnt.
func TestReplaysBeyondTenTimes(t *testing.T) {
	var b engine.Burnt
	for run := 1; run <= 30; run++ {
		b = b.With(1000)
		want := uint64(1000)
		if again := uint64(run-1) * 1000; again > 10_000 {
			want += again - 10_000
		}
		if b.Billed() != want {
			t.Fatalf("after %d runs: %+v, want %d", run, b, want)
		}
	}
	before := b.Billed()
	if b = b.With(50_000); b.Billed() < before || b.Own != 50_000 {
		t.Errorf("what was billed is taken back: %+v", b)
	}
}

// Of many starts at once exactly as many begin as there are places, and those that
// were refused have left nothing behind.
func TestStartsAtTheLimit(t *testing.T) {
	const places, clients = 5, 40
	quotas := &tally{most: places, held: map[string]usage.RunsHeld{}, fuel: map[string]uint64{}}
	gate := make(chan struct{})
	b := &bench{tokens: 2, quotas: quotas}
	b.guest = func(ctx context.Context, _ *call) (abi.StepOutput, error) {
		<-gate
		return stopEvent(), nil
	}
	live(t, b, func(t *testing.T) {
		var begun atomic.Int64
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				_, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", HandlerID: fmt.Sprint("h", i)})
				switch {
				case err == nil:
					begun.Add(1)
				case host.CodeOf(err) != host.CodeLimitExceeded:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		runs, _, err := b.store.Runs(t.Context(), host.RunQuery{Tenant: "t", Limit: 1000})
		if begun.Load() != places || err != nil || len(runs) != places {
			t.Errorf("%d begun, %d there, %v", begun.Load(), len(runs), err)
		}
		if text := quotas.differs(b.store); text != "" {
			t.Error(text)
		}
		b.begin(t, "other", "h") // its places are its own
		close(gate)
		pass(time.Second)
		if text := quotas.differs(b.store); text != "" {
			t.Error(text)
		}
		b.begin(t, "t", "again")
		pass(time.Second)
	})
}
