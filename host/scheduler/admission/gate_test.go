package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// slowDisk is a journal of which nothing is durable before the test says so.
type slowDisk struct {
	pos, durable uint64
	crowds       map[string]bool
}

func (d *slowDisk) Durable() uint64                  { return d.durable }
func (d *slowDisk) OverSoftLimit(tenant string) bool { return d.crowds[tenant] }
func (d *slowDisk) write() uint64                    { d.pos++; return d.pos }

// entrance is a gate with what is around it.
type entrance struct {
	Gate
	mu      sync.Mutex
	disk    slowDisk
	queue   fair.Queue[string]
	stopped chan struct{}
}

func gated(places, line int) *entrance {
	s := &entrance{disk: slowDisk{crowds: map[string]bool{}}, stopped: make(chan struct{})}
	s.queue.Init(1, func(string) int { return 0 })
	s.Init(GateConfig{
		Places: places, Line: line, Patience: DefaultPatience, Clocks: &s.queue, Journal: &s.disk, Lock: &s.mu,
		Open: func(string) error { return nil }, Stopped: s.stopped,
	})
	return s
}

// crowd has so many of a tenant come, each of which writes an entry when it is let in,
// and says so.
func (s *entrance) crowd(t *testing.T, tenant string, count int, in func(tenant string)) {
	for range count {
		go func() {
			if err := s.Enter(t.Context(), tenant); err != nil {
				t.Error(err)
				return
			}
			s.mu.Lock()
			pos := s.disk.write()
			in(tenant)
			s.mu.Unlock()
			s.Leave(tenant, pos)
		}()
	}
	synctest.Wait()
}

// sync makes all that is written durable, as a commit does.
func (s *entrance) sync() {
	s.mu.Lock()
	s.disk.durable = s.disk.pos
	s.Admit()
	s.mu.Unlock()
	synctest.Wait()
}

// However many starts of a tenant wait, those of another are let in at once, as a place
// is left for them, and then in turns with it; and the tenant whose guests have burnt
// more comes second.
func TestStartsAreLetInByFuel(t *testing.T) {
	for name, c := range map[string]struct {
		burnt uint64 // by the one that came first
		calm  int    // how many of the first eight behind those of before any commit are of the other
	}{
		"nothing was burnt":   {0, 4},
		"one has burnt a lot": {100 * LineCost, 6}, // all that it may have
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := gated(4, 1000)
				var order []string
				in := func(tenant string) { order = append(order, tenant) }
				s.crowd(t, "loud", 500, in)
				s.crowd(t, "calm", 20, in)
				if !slices.Equal(order, []string{"loud", "loud", "loud", "calm"}) {
					t.Errorf("before a commit there came %v", order)
				}
				s.queue.Owe("loud", c.burnt)
				for len(order) < 12 {
					s.sync()
				}
				calm := 0
				for _, tenant := range order[4:12] {
					if tenant == "calm" {
						calm++
					}
				}
				if calm != c.calm {
					t.Errorf("there came %v, want %d of calm", order[4:12], c.calm)
				}
				for s.taken > 0 {
					s.sync()
				}
				if len(order) != 520 || s.waiting != 0 || len(s.lines) != 0 || len(s.of) != 0 || len(s.queue.Busy()) != 0 {
					t.Errorf("%d came, %+v, %v", len(order), s.Left(), s.queue.Busy())
				}
			})
		})
	}
}

// While places are free nobody waits, nothing is allocated and no clock advances.
func TestTheGateIsOpen(t *testing.T) {
	s := gated(8, 8)
	if n := testing.AllocsPerRun(1000, func() {
		if err := s.Enter(context.Background(), "t"); err != nil {
			t.Fatal(err)
		}
		pos := s.disk.write()
		s.disk.durable = pos
		s.Leave("t", pos)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(s.queue.Busy()) != 0 || s.Lined != 0 {
		t.Errorf("%v, %d waited", s.queue.Busy(), s.Lined)
	}
}

// A line is bounded in length and time, and who leaves it leaves nothing behind.
func TestTheLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gated(4, 10)
		none := func(string) {}
		s.crowd(t, "loud", 3, none) // all that it may have
		errs := make(chan error, 20)
		for range 20 {
			go func() { errs <- s.Enter(t.Context(), "loud") }()
		}
		synctest.Wait()
		if len(errs) != 10 || len(s.lines["loud"]) != 10 {
			t.Fatalf("%d of 20 were refused, %d wait", len(errs), len(s.lines["loud"]))
		}
		if err := s.Enter(t.Context(), "calm"); err != nil { // a place is left for others
			t.Errorf("another tenant: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- s.Enter(ctx, "calm") }()
		synctest.Wait()
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
		for range 20 { // those in line lose their patience
			err := <-errs
			var he *host.Error
			if !errors.As(err, &he) || he.Code != host.CodeOverloaded || he.RetryAfter != time.Second {
				t.Errorf("refused by %v", err)
			}
		}
		s.Leave("calm", 0)
		s.sync()
		if s.taken != 0 || s.waiting != 0 || len(s.lines) != 0 || s.Shed != 20 || len(s.queue.Busy()) != 0 {
			t.Errorf("%q, %d had no room, %v", s.Left(), s.Shed, s.queue.Busy())
		}
		s.crowd(t, "loud", 3, none)
		go func() { errs <- s.Enter(t.Context(), "loud") }()
		synctest.Wait()
		close(s.stopped)
		if err := <-errs; host.CodeOf(err) != host.CodeUnavailable {
			t.Errorf("when the server stops: %v", err)
		}
	})
}

// A tenant that crowds the journal's queue is passed over until the disk has caught up.
func TestWhoCrowdsIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gated(8, 100)
		s.disk.crowds["loud"] = true
		var order []string
		in := func(tenant string) { order = append(order, tenant) }
		s.crowd(t, "loud", 3, in)
		s.crowd(t, "calm", 3, in)
		if want := []string{"calm", "calm", "calm"}; !slices.Equal(order, want) {
			t.Errorf("there came %v", order)
		}
		s.disk.crowds["loud"] = false
		s.sync()
		if len(order) != 6 {
			t.Errorf("there came %v", order)
		}
	})
}

func BenchmarkGate(b *testing.B) {
	s := gated(128, 1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Enter(context.Background(), "t"); err != nil {
				b.Fatal(err)
			}
			s.Leave("t", 0)
		}
	})
}
