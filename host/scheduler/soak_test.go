package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/journal"
)

// soak is the size of a test: the small one always, the large one in a soak, and a part
// of the small one beside the race detector.
func soak(small, large int) int {
	if raced {
		return small / 5
	}
	if suite.Soak() {
		return large
	}
	return small
}

// ends is a guest whose runs end at once.
func ends(_ context.Context, g *call) (abi.StepOutput, error) {
	if g.in.Step == "begin" {
		return list(1), nil
	}
	return stopEvent(), nil
}

// A cancel meets the end of a run at every moment: one of the two comes first, the answer
// of the cancel says which, and the stream has one end.
func TestCancelAgainstCompletion(t *testing.T) {
	b := (&bench{tokens: 2, guest: ends}).open(t)
	cancelled, completed := 0, 0
	for i := range soak(500, 10_000) {
		id := fmt.Sprintf("h%d", i)
		run, err := await(b, func() (host.Run, error) {
			return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: id})
		})
		if i%2 == 1 { // else it has ended before; this one is cancelled on its way
			id += "x"
			run, err = await(b, func() (host.Run, error) {
				run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: id})
				if err != nil {
					return run, err
				}
				_, err = b.sched.Cancel(t.Context(), "t", id, false)
				return run, err
			})
		} else if err == nil {
			_, err = await(b, func() (bool, error) { return b.sched.Cancel(t.Context(), "t", id, false) })
		}
		b.rest()
		status := b.status(run.RunID)
		switch {
		case err == nil && status == host.StatusCancelled:
			cancelled++
		case (host.CodeOf(err) == host.CodeNotFound || host.CodeOf(err) == host.CodeConflict) && status == host.StatusCompleted: // as the API has it for runs that have ended
			completed++
		default:
			t.Fatalf("run %d: the cancel is answered with %v, the run is %s", i, err, status)
		}
		events, err := b.store.Stream(t.Context(), "t", id, -1, 100)
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for _, e := range events {
			if e.Terminal {
				last++
			}
		}
		if last != 1 {
			t.Fatalf("run %d: its stream has %d ends", i, last)
		}
	}
	if leak := b.sched.Leak(); leak != "" {
		t.Error(leak)
	}
	t.Logf("%d cancelled, %d completed", cancelled, completed)
}

// sleeper is a guest that sleeps for a minute.
func sleeper(woken *int) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "begin" {
			return list(1), nil
		}
		if _, err := g.do(abi.ImportSleep, []any{int64(time.Minute)}); err != nil {
			return abi.StepOutput{}, err
		}
		*woken++
		return stopEvent(), nil
	}
}

// patient is twoStep without a timeout.
const patient = `{"abi": 1, "workflow": "two", "timeout": 0, "events": {"Work": {}},
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["StopEvent"], "workers": 100}]}`

// Many runs that sleep until the same moment all wake, each once, and leave nothing behind.
func TestManySleepsDueAtOnce(t *testing.T) {
	woken := 0
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"two": patient})}
	b.guest = sleeper(&woken)
	b.open(t)
	n := soak(1_000, 100_000)
	runs := make([]host.Run, n)
	for i := range runs {
		runs[i] = b.start(fmt.Sprintf("h%d", i), "")
	}
	b.advance(time.Second)
	b.rest()
	if woken != 0 {
		t.Fatalf("%d woke too early", woken)
	}
	b.advance(time.Minute)
	b.rest()
	for rounds := 0; woken < n && rounds < n; rounds++ { // those that are due are loaded by and by
		b.advance(time.Second)
		b.rest()
	}
	for _, run := range runs {
		if got := b.status(run.RunID); got != host.StatusCompleted {
			t.Fatalf("run %s is %s", run.HandlerID, got)
		}
	}
	if woken != n {
		t.Errorf("%d sleeps ended, of %d", woken, n)
	}
	if leak := b.sched.Leak(); leak != "" {
		t.Error(leak)
	}
}

// A clock that jumps by a day, either way, while the server runs or while it is down: a
// run that sleeps wakes, once.
func TestClocksThatJump(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v down %v", jump, down), func(t *testing.T) {
				woken := 0
				b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": patient})}
				b.guest = sleeper(&woken)
				b.open(t)
				run := b.start("h", "")
				b.advance(time.Second)
				b.rest()
				b.advance(jump)
				if down {
					b.open(t)
				}
				b.rest()
				for range 48 {
					b.advance(time.Hour)
					b.rest()
				}
				if got := b.status(run.RunID); got != host.StatusCompleted || woken != 1 {
					t.Errorf("the run is %s, woken %d times", got, woken)
				}
				again := b.start("k", "") // and the server goes on
				for range 48 {
					b.advance(time.Hour)
					b.rest()
				}
				if got := b.status(again.RunID); got != host.StatusCompleted {
					t.Errorf("a later run is %s", got)
				}
			})
		}
	}
}

// countedLoads is a store that counts the entries that loads of sessions read.
type countedLoads struct {
	host.Store
	t       *testing.T
	entries int
}

func (c *countedLoads) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	stored, err := c.Store.LoadSession(ctx, key)
	for _, row := range stored.Rows {
		array, err := journal.CheckRow(row)
		var entries []engine.Entry
		if err == nil {
			err = abi.Unmarshal(array, &entries)
		}
		if err != nil {
			c.t.Error(err)
		}
		c.entries += len(entries)
	}
	return stored, err
}

// A session in which very many runs have ended is loaded by its newest snapshot: what is
// folded does not grow with what has happened.
func TestLongSessionLoadsByItsSnapshot(t *testing.T) {
	b := (&bench{tokens: 1, guest: ends}).open(t)
	n := soak(5_000, 200_000)
	for i := range n {
		b.start(fmt.Sprintf("h%d", i), "s")
		b.rest()
	}
	store := &countedLoads{Store: b.store, t: t}
	b.store = store
	b.open(t)
	run := b.start("last", "s")
	b.rest()
	if got := b.status(run.RunID); got != host.StatusCompleted {
		t.Errorf("a run after the load is %s", got)
	}
	if store.entries == 0 || store.entries > 10_000 {
		t.Errorf("after %d runs a load reads %d entries, want 10,000 at most", n, store.entries)
	}
	t.Logf("%d entries of %d runs", store.entries, n)
}
