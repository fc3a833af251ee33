package scheduler_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// soloManifest is a workflow of one step.
const soloManifest = `{"abi": 1, "workflow": "solo", "timeout": 0, "events": {},
  "steps": [{"name": "s", "accepts": ["StartEvent"], "emits": ["StopEvent"], "retry": {"wait": {"fixed": 0}}}]}`

func stopEvent() abi.StepOutput {
	return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: abi.EmptyMap}}}
}

// live runs the bench with its own runners in a bubble, in which time passes
// when everybody waits, and stops it when the test is through.
func live(t *testing.T, b *bench, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b.real = true
		if b.modules == nil {
			b.modules = newSimModules(t, map[string]string{"solo": soloManifest})
		}
		b.open(t)
		jctx, stopJournal := context.WithCancel(t.Context())
		sctx, stop := context.WithCancel(t.Context())
		journal, runs := make(chan error, 1), make(chan error, 1)
		go func() { journal <- b.journal.Run(jctx) }()
		go func() { runs <- b.sched.Run(sctx, time.Minute) }()
		test(t)
		stop()
		if err := <-runs; err != nil {
			t.Error(err)
		}
		stopJournal()
		if err := <-journal; err != nil {
			t.Error(err)
		}
	})
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// solo starts a run of a tenant and waits for its end.
func (b *bench) solo(t *testing.T, tenant string) host.Run {
	t.Helper()
	run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: tenant, Workflow: "solo", HandlerID: "solo-" + tenant, Wait: true})
	if err != nil {
		t.Error(err)
	}
	return run
}

// begin starts a run and does not wait for its end.
func (b *bench) begin(t *testing.T, tenant, handler string) {
	t.Helper()
	if _, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: tenant, Workflow: "solo", HandlerID: handler}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) cancel(t *testing.T, tenant, handler string) {
	t.Helper()
	if _, err := b.sched.Cancel(t.Context(), tenant, handler, false); err != nil {
		t.Error(err)
	}
}

// ahead is the most that two tenants that both want the only core may be apart,
// in units, about 0.7 ms of it: a guest looks at the end of each turn whether
// another tenant is a turn behind, so that each may be two turns ahead when it
// gives way, and what it burns up to its next checkpoints; and an attempt's start.
const ahead = 4*(500_000+slice) + 100_000

// A tenant whose guests spin for ever does not keep another from its half of
// the only core, however many the guests are and whatever pieces they burn in.
func TestSpinningTenantGetsItsShareOnly(t *testing.T) {
	for name, c := range map[string]struct {
		spinners int
		spins    uint64 // between two checkpoints of the spinning guests
		works    uint64 // likewise of the other's
	}{
		"one against one":        {1, slice, slice},
		"ten against one":        {10, slice, slice},
		"against one that calls": {1, slice, 500},
		"callers against one":    {3, 200, slice},
	} {
		t.Run(name, func(t *testing.T) {
			const work = 100_000_000 // units, host calls at their flat rate among them
			const callCost = 1_000
			var spun, worked atomic.Int64
			var since, most int64
			b := &bench{tokens: 1}
			b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
				if g.in.Run.Tenant == "spinning" {
					for ctx.Err() == nil {
						if err := g.inv.Token.Checkpoint(c.spins); err != nil {
							return abi.StepOutput{}, err
						}
						spun.Add(int64(c.spins) + callCost)
					}
					return abi.StepOutput{}, ctx.Err()
				}
				since = spun.Load()
				for worked.Load() < work {
					if err := g.inv.Token.Checkpoint(c.works); err != nil {
						return abi.StepOutput{}, err
					}
					now := worked.Add(int64(c.works) + callCost)
					most = max(most, now-(spun.Load()-since), spun.Load()-since-now)
				}
				return stopEvent(), nil
			}
			live(t, b, func(t *testing.T) {
				for i := range c.spinners {
					b.begin(t, "spinning", string(rune('a'+i)))
				}
				for spun.Load() < work { // the spinning tenant is well ahead in all it did
					runtime.Gosched()
				}
				if run := b.solo(t, "working"); run.Status != host.StatusCompleted {
					t.Errorf("%+v", run)
				}
				for i := range c.spinners {
					b.cancel(t, "spinning", string(rune('a'+i)))
				}
			})
			t.Logf("%d and %d units, at most %d apart; %+v", worked.Load(), spun.Load()-since, most, b.sched.Counters())
			if most > ahead {
				t.Errorf("the tenants were %d units apart, more than %d", most, ahead)
			}
			if y := b.sched.Counters().Yields; y < work/ahead {
				t.Errorf("%d turns", y)
			}
		})
	}
}

// A tenant alone keeps its cores: no turn of it ends before its guest does,
// though others of its guests wait.
func TestTenantAloneGivesNothingUp(t *testing.T) {
	b := &bench{tokens: 1}
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		return stopEvent(), g.burn(ctx, 20_000_000)
	}
	live(t, b, func(t *testing.T) {
		b.begin(t, "t", "a")
		b.begin(t, "t", "b")
		b.solo(t, "t")
	})
	if c := b.sched.Counters(); c.Yields != 0 || c.Holds != 0 {
		t.Errorf("%+v", c)
	}
	if u := b.sched.Usage("t"); u.Fuel != 3*20_000_001 || u.Attempts != 3 {
		t.Errorf("used: %+v", u)
	}
}

// Of a tenant's attempts only as many have begun as there are tokens, however
// often their guests give them up: each that has begun holds an instance.
func TestFewGuestsHaveBegun(t *testing.T) {
	const tokens = 2
	var begun, most atomic.Int64
	b := &bench{tokens: tokens}
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.Tenant == "t" {
			now := begun.Add(1)
			defer begun.Add(-1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
		}
		return stopEvent(), g.burn(ctx, 10_000_000)
	}
	live(t, b, func(t *testing.T) {
		for i := range 20 {
			b.begin(t, "t", string(rune('a'+i)))
			b.begin(t, "u", string(rune('a'+i)))
		}
		b.solo(t, "t")
	})
	if c := b.sched.Counters(); c.Yields == 0 || most.Load() > tokens {
		t.Errorf("%d guests of a tenant had begun at once; %+v", most.Load(), c)
	}
}
