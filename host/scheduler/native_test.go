package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/weftrun/weft/host/work"
)

// idleCore is a scheduler with one core that is free.
func idleCore(tb testing.TB) *Scheduler {
	tb.Helper()
	s := &Scheduler{cfg: Config{Journal: sink{}, Log: slog.New(slog.DiscardHandler)}, wake: make(chan struct{}, 1), accounts: map[string]*account{}}
	s.cfg.setDefaults()
	s.queue.init(1, s.cfg.Limits.TenantInvocations)
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
				it, ok := s.queue.pop(func(string) bool { return false })
				if !ok {
					break
				}
				close(it.resume)
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
	s.queue.known("t").inLine = true // so that the queue keeps the tenant
	s.queue.known("other").inLine = true
	s.mu.Unlock()
	n = s.native(context.Background(), "t", 0)
	for range 100 {
		if err := n.Spend(100_000); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	if s.queue.tokens != 0 {
		t.Error("long work has no core")
	}
	s.mu.Unlock()
	n.done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.queue.tenants["t"].virtual; s.queue.tokens != 1 || got < 10_000_000 {
		t.Errorf("%d cores are free, the tenant's clock is at %d", s.queue.tokens, got)
	}
	if used := s.account("t").used; used.Fuel != 0 {
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
	other := s.newToken("other", nil)
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
	if s.queue.tokens != 1 {
		t.Error("the core was not given back")
	}
}
