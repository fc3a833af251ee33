package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/work"
)

// idleCore is a scheduler with one core that is free.
func idleCore(tb testing.TB) *Scheduler {
	tb.Helper()
	s := newScheduler(context.Background(), Config{Tokens: 1, Journal: sink{}, Log: slog.New(slog.DiscardHandler)})
	return s
}

// grant gives the core to who waits for it, as Step does, each time that the scheduler
// is woken; stop ends that.
func (s *Scheduler) grant() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-s.wake:
			case <-end:
				return
			}
			s.mu.Lock()
			for {
				it, ok := s.cores.queue.Pop(func(string) bool { return false })
				if !ok {
					break
				}
				close(it.Resume)
			}
			s.mu.Unlock()
		}
	}()
	return func() { close(end); <-ended }
}

// A little native work needs no core; more takes one, in its tenant's turn, is on the
// tenant's clock and gives the core back.
func TestNativeWorkTakesACoreWhenItIsLong(t *testing.T) {
	s := idleCore(t)
	n := s.native(context.Background(), "t", 0)
	if err := n.Spend(work.Look - 1); err != nil || n.tok != nil {
		t.Fatalf("%v, %v", err, n.tok)
	}
	n.done()
	defer s.grant()()
	s.mu.Lock()
	s.cores.queue.LineUp("t") // so that the queue keeps the tenant
	s.cores.queue.LineUp("other")
	s.mu.Unlock()
	n = s.native(context.Background(), "t", 0)
	for range 100 {
		if err := n.Spend(100_000); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	if s.cores.queue.Free() != 0 {
		t.Error("long work has no core")
	}
	s.mu.Unlock()
	n.done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.cores.queue.Clock("t"); s.cores.queue.Free() != 1 || got < 10_000_000 {
		t.Errorf("%d cores are free, the tenant's clock is at %d", s.cores.queue.Free(), got)
	}
	if used := s.cores.budgets.Usage("t"); used.Fuel != 0 {
		t.Errorf("native work of a request is billed: %+v", used)
	}
}

// Native work ends when its request does, and gives way to other tenants.
func TestNativeWorkEndsAndYields(t *testing.T) {
	s := idleCore(t)
	defer s.grant()()
	ctx, cancel := context.WithCancel(context.Background())
	n := s.native(ctx, "t", 0)
	if err := n.Spend(work.Look); err != nil {
		t.Fatal(err)
	}
	other := s.cores.newToken("other", nil)
	ran := make(chan struct{})
	go func() { other.acquire(); close(ran); other.release(0, 0) }()
	for done := false; !done; {
		if err := n.Spend(work.Look); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ran:
			done = true
		default:
		}
	}
	cancel()
	if err := n.Spend(work.Look); !errors.Is(err, context.Canceled) {
		t.Errorf("after the request has ended: %v", err)
	}
	n.done()
	if s.cores.queue.Free() != 1 {
		t.Error("the core was not given back")
	}
}

// searched is a store in which a search takes the core for a while.
type searched struct {
	Store
	search func(ctx context.Context)
}

func (s searched) Runs(ctx context.Context, _ host.RunQuery) ([]host.Run, bool, error) {
	s.search(ctx)
	return nil, false, ctx.Err()
}

// What a search takes is on its tenant's clock.
func TestSearchesAreOnTheClock(t *testing.T) {
	s := idleCore(t)
	var cpu time.Duration
	s.cfg.CPU = func() time.Duration { return cpu }
	s.cfg.Store = searched{search: func(context.Context) { cpu += 5 * time.Millisecond }}
	s.mu.Lock()
	s.cores.queue.LineUp("t") // so that the queue keeps the tenant
	s.mu.Unlock()
	reader := history.New(history.Config{Store: s.cfg.Store, Clocked: s.clocked})
	clock := func() uint64 { return s.cores.queue.Clock("t") }
	if _, _, err := reader.List(t.Context(), host.RunQuery{Tenant: "t"}); err != nil || clock() != 0 {
		t.Errorf("a plain list: %v, %d units", err, clock())
	}
	if _, _, err := reader.List(t.Context(), host.RunQuery{Tenant: "t", Search: []host.SearchTerm{{Word: "a"}}}); err != nil || clock() != 15_000_000+readUnits {
		t.Errorf("a search of 5 ms: %v, %d units", err, clock())
	}
}

// Work that takes a core far longer than it is charged for is counted, and only that.
func TestUnderpricedWorkIsCounted(t *testing.T) {
	s := idleCore(t)
	defer s.grant()()
	var cpu time.Duration
	s.cfg.CPU = func() time.Duration { return cpu }
	for _, c := range []struct {
		took time.Duration
		want uint64
	}{{0, 0}, {900 * time.Microsecond, 0}, {1100 * time.Microsecond, 1}, {time.Second, 2}} {
		n := s.native(t.Context(), "t", 0)
		for range 2 { // the first look begins the measurement
			if err := n.Spend(work.Look); err != nil {
				t.Fatal(err)
			}
			cpu += c.took
		}
		cpu -= c.took
		n.done()
		if got := s.Counters().Underpriced; got != c.want {
			t.Errorf("after %s for %d units: %d", c.took, work.Look, got)
		}
	}
}
