package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/fair"
)

func parsed(t *testing.T, text string) *limit.Table {
	t.Helper()
	table, err := limit.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A tenant burns what its budget allows, the saved-up units first, and waits for
// the rest, while others go on. Nothing of it is measured: a guest burns its
// units in no time.
func TestTenantWaitsForItsBudget(t *testing.T) {
	const rate, work = 2_000_000, 100_000_000
	b := &bench{tokens: 1, limits: parsed(t, `{"tenants": {"slow": {"tenant_fuel_per_second": 2000000}}}`)}
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		return stopEvent(), g.burn(ctx, work)
	}
	live(t, b, func(t *testing.T) {
		began := time.Now()
		slow := make(chan time.Duration)
		go func() {
			b.solo(t, "slow")
			slow <- time.Since(began)
		}()
		for range 3 { // before and while the other waits
			before := time.Now()
			run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "quick", Workflow: "solo", Wait: true})
			if err != nil || run.Status != host.StatusCompleted {
				t.Fatal(run, err)
			}
			if took := time.Since(before); took > time.Second {
				t.Errorf("a tenant without a budget took %s", took)
			}
			pass(10 * time.Second)
		}
		const want = (work - 10*rate) / rate * time.Second
		if took := <-slow; took < want || took > want+200*time.Millisecond {
			t.Errorf("%d units took %s, want %s", work, took, want)
		}
		u := b.sched.Usage("slow")
		if u.Fuel != work+1 || u.Holds < 100 || u.Attempts != 1 {
			t.Errorf("used: %+v", u)
		}
		if u := b.sched.Usage("quick"); u != (fair.Usage{Fuel: 3 * (work + 1), Attempts: 3}) {
			t.Errorf("used: %+v", u)
		}
		if u := b.sched.Usage("nobody"); u != (fair.Usage{}) {
			t.Errorf("used: %+v", u)
		}
		// What is saved up is ten seconds' worth, however long it was idle.
		pass(time.Hour)
		began = time.Now()
		b.solo(t, "slow")
		if took := time.Since(began); took < want || took > want+200*time.Millisecond {
			t.Errorf("after an hour %d units took %s, want %s", work, took, want)
		}
	})
}

// A server that stops does not wait for budgets.
func TestStopDoesNotWaitForBudgets(t *testing.T) {
	b := &bench{tokens: 1, limits: parsed(t, `{"defaults": {"tenant_fuel_per_second": 1000000}}`)}
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		return stopEvent(), g.burn(ctx, 1_000_000_000)
	}
	live(t, b, func(t *testing.T) {
		var began time.Time
		t.Cleanup(func() {
			if took := time.Since(began); took > time.Second {
				t.Errorf("the stop took %s", took)
			}
		})
		b.begin(t, "t", "a")
		b.begin(t, "t", "b")
		pass(1050 * time.Millisecond) // the next units come after 50 ms
		if b.sched.Usage("t").Holds == 0 {
			t.Error("nobody is held")
		}
		began = time.Now()
	})
}

// An open edit neither loses time by waiting for its tenant's budget nor burns
// without end: at the checkpoint beyond its fuel it fails the run, by name.
func TestOpenEditsAreBoundByFuel(t *testing.T) {
	for name, c := range map[string]struct {
		inside uint64
		want   string // in the run's error; "": it completes
	}{
		"waits":             {29_000_000, ""},
		"burns too much":    {1_000_000_000, "an edit burnt 30050000 units between state_begin and state_commit, more than 30000000 (limit region_fuel)"},
		"exactly its limit": {30_000_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			b := &bench{tokens: 1, limits: parsed(t, `{"defaults": {"tenant_fuel_per_second": 1000000}}`)}
			b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
				attempts++
				g.pays = true
				for _, do := range []func() error{
					func() error { return g.burn(ctx, 40_000_000) },
					func() error { _, err := g.do(abi.ImportStateBegin, []any{""}); return err },
					func() error { return g.burn(ctx, c.inside) },
					func() error { _, err := g.do(abi.ImportStateCommit, []any{map[string]any{"n": 1}}); return err },
				} {
					if err := do(); err != nil {
						return abi.StepOutput{}, err
					}
				}
				return stopEvent(), nil
			}
			live(t, b, func(t *testing.T) {
				began := time.Now()
				run := b.solo(t, "t")
				if took := time.Since(began); took < 50*time.Second {
					t.Errorf("took %s: nothing waited", took)
				}
				if c.want == "" && run.Status != host.StatusCompleted {
					t.Errorf("%+v", run)
				}
				if c.want != "" && (run.Status != host.StatusFailed || run.ErrorCode != host.RunLimitExceeded || run.Error != c.want) {
					t.Errorf("%+v", run)
				}
			})
			if attempts != 1 {
				t.Errorf("%d attempts", attempts)
			}
		})
	}
}

// A guest that used up its fuel or another limit fails its run by name, at once:
// it would do so again. What may be otherwise the next time is tried again, as
// its policy says. None of it is a crash of the host.
func TestGuestFailuresReachTheRun(t *testing.T) {
	for code, attempts := range map[string]int{
		host.RunFuelExhausted: 1, host.RunLimitExceeded: 1,
		host.RunTrap: 3, host.RunDeadlineExceeded: 3, host.RunInvalidOutput: 3,
	} {
		t.Run(code, func(t *testing.T) {
			n := 0
			b := &bench{tokens: 1}
			b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
				n++
				return abi.StepOutput{}, errors.Join(g.burn(ctx, 1_000_000), &abi.Error{Code: code, Message: "the guest did it"})
			}
			live(t, b, func(t *testing.T) {
				run := b.solo(t, "t")
				if run.Status != host.StatusFailed || run.ErrorCode != code || run.Error != "the guest did it" || run.Blocked != nil {
					t.Errorf("%+v", run)
				}
				if run.Fuel != uint64(attempts)*1_000_001 {
					t.Errorf("the run burnt %d units", run.Fuel)
				}
			})
			if n != attempts {
				t.Errorf("%d attempts, want %d", n, attempts)
			}
		})
	}
}

// A run has the limits that its tenant and plugin had when it started, over a
// restart with other settings too; a new run has the new ones.
func TestRunsKeepTheirLimits(t *testing.T) {
	var got []host.Limits
	b := &bench{limits: parsed(t, `{"defaults": {"log_lines": 7}, "plugins": {"two-plugin": {"fuel": 2e9}}, "tenants": {"t": {"host_calls": 5}}}`)}
	b.guest = func(_ context.Context, c *call) (abi.StepOutput, error) {
		got = append(got, c.inv.Limits)
		if c.in.Step == "close" {
			return stopEvent(), nil
		}
		return list(0), nil
	}
	b.open(t)
	run := b.start("old", "")
	b.limits = parsed(t, `{"tenants": {"t": {"plugins": {"two-plugin": {"host_calls": 6}}}}}`)
	b.open(t)
	b.start("new", "")
	if _, err := await(b, func() (struct{}, error) {
		return struct{}{}, b.sched.Send(t.Context(), "t", run.RunID, abi.Event{Type: "Close"}, "")
	}); err != nil {
		t.Fatal(err)
	}
	before, after := limit.Default(), limit.Default()
	before.LogLines, before.Fuel, before.HostCalls = 7, 2e9, 5
	after.HostCalls = 6
	for i, want := range []host.Limits{before, after, before} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("invocation %d of %d had other limits: %+v", i, len(got), got)
		}
	}
	if b.status(run.RunID) != host.StatusCompleted || strings.Contains(run.Error, "limit") {
		t.Error("the old run does not end")
	}
}

// A tenant with a bound on what it runs at a time keeps to it, while a core is
// free; another takes that.
func TestTenantInvocations(t *testing.T) {
	var mu sync.Mutex
	running, most := map[string]int{}, map[string]int{}
	b := &bench{tokens: 3, limits: parsed(t, `{"tenants": {"bounded": {"tenant_invocations": 1}}}`)}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running[g.in.Run.Tenant] += n
			most[g.in.Run.Tenant] = max(most[g.in.Run.Tenant], running[g.in.Run.Tenant])
		}
		add(1)
		defer add(-1)
		pass(time.Second)
		return stopEvent(), nil
	}
	live(t, b, func(t *testing.T) {
		for i := range 4 {
			b.begin(t, "bounded", fmt.Sprint("b", i))
			b.begin(t, "free", fmt.Sprint("f", i))
		}
		pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most["bounded"] != 1 || most["free"] < 2 {
			t.Errorf("at a time: %v, want 1 of the bounded tenant and more of the other", most)
		}
		for _, tenant := range []string{"bounded", "free"} {
			if n := b.sched.Usage(tenant).Attempts; n != 4 {
				t.Errorf("%s has had %d attempts, want 4", tenant, n)
			}
		}
	})
}
