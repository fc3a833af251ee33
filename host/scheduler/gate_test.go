package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host"
)

// slowDisk is a journal of which nothing is durable before the test says so.
type slowDisk struct {
	Journal
	pos, durable uint64
	crowds       map[string]bool
}

func (d *slowDisk) Durable() uint64             { return d.durable }
func (d *slowDisk) Err() error                  { return nil }
func (d *slowDisk) OverHardLimit(string) bool       { return false }
func (d *slowDisk) OverSoftLimit(tenant string) bool   { return d.crowds[tenant] }
func (d *slowDisk) write() uint64               { d.pos++; return d.pos }
func (s *Scheduler) disk() *slowDisk            { return s.cfg.Journal.(*slowDisk) }
func (s *Scheduler) inLineOf(tenant string) int { return len(s.gate.lines[tenant]) }

// gated is a scheduler of which only the gate is used.
func gated(places, line int) *Scheduler {
	s := &Scheduler{cfg: Config{Journal: &slowDisk{crowds: map[string]bool{}}, AdmitAtOnce: places, AdmitLine: line}, stopped: make(chan struct{})}
	s.cfg.setDefaults()
	s.gate.init(places)
	s.queue.init(1, func(string) int { return 0 })
	return s
}

// crowd has so many of a tenant come, each of which writes an entry when it is let in,
// and says so.
func (s *Scheduler) crowd(t *testing.T, tenant string, count int, in func(tenant string)) {
	for range count {
		go func() {
			if err := s.enter(t.Context(), tenant); err != nil {
				t.Error(err)
				return
			}
			s.mu.Lock()
			pos := s.disk().write()
			in(tenant)
			s.mu.Unlock()
			s.leave(tenant, pos)
		}()
	}
	synctest.Wait()
}

// sync makes all that is written durable, as a commit does.
func (s *Scheduler) sync() {
	s.mu.Lock()
	s.disk().durable = s.disk().pos
	s.letIn()
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
		"one has burnt a lot": {100 * admitCost, 6}, // all that it may have
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
				s.queue.owe("loud", c.burnt)
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
				for s.gate.taken > 0 {
					s.sync()
				}
				if len(order) != 520 || s.gate.waiting != 0 || len(s.gate.lines) != 0 || len(s.gate.of) != 0 || len(s.queue.tenants) != 0 {
					t.Errorf("%d came, %+v, %v", len(order), s.gate, s.queue.tenants)
				}
			})
		})
	}
}

// While places are free nobody waits, nothing is allocated and no clock advances.
func TestTheGateIsOpen(t *testing.T) {
	s := gated(8, 8)
	if n := testing.AllocsPerRun(1000, func() {
		if err := s.enter(context.Background(), "t"); err != nil {
			t.Fatal(err)
		}
		pos := s.disk().write()
		s.disk().durable = pos
		s.leave("t", pos)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(s.queue.tenants) != 0 || s.counters.Lined != 0 {
		t.Errorf("%v, %+v", s.queue.tenants, s.counters)
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
			go func() { errs <- s.enter(t.Context(), "loud") }()
		}
		synctest.Wait()
		if len(errs) != 10 || s.inLineOf("loud") != 10 {
			t.Fatalf("%d of 20 were refused, %d wait", len(errs), s.inLineOf("loud"))
		}
		if err := s.enter(t.Context(), "calm"); err != nil { // a place is left for others
			t.Errorf("another tenant: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- s.enter(ctx, "calm") }()
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
		s.leave("calm", 0)
		s.sync()
		if s.gate.taken != 0 || s.gate.waiting != 0 || len(s.gate.lines) != 0 || s.counters.Shed != 20 || len(s.queue.tenants) != 0 {
			t.Errorf("%+v, %+v, %v", s.gate, s.counters, s.queue.tenants)
		}
		s.crowd(t, "loud", 3, none)
		go func() { errs <- s.enter(t.Context(), "loud") }()
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
		s.disk().crowds["loud"] = true
		var order []string
		in := func(tenant string) { order = append(order, tenant) }
		s.crowd(t, "loud", 3, in)
		s.crowd(t, "calm", 3, in)
		if want := []string{"calm", "calm", "calm"}; !slices.Equal(order, want) {
			t.Errorf("there came %v", order)
		}
		s.disk().crowds["loud"] = false
		s.sync()
		if len(order) != 6 {
			t.Errorf("there came %v", order)
		}
	})
}

// What the host does to load a session counts, counted in entries and bytes, as long
// as there is somebody to be ahead of.
func TestLoadingCounts(t *testing.T) {
	q := newQueue(1)
	if q.owe("a", 1000); len(q.tenants) != 0 {
		t.Error("nobody is busy, and a is ahead of nobody")
	}
	q.push("b", item("b", 1))
	q.push("b", item("b", 2))
	q.owe("a", 1000)
	q.push("a", item("a", 1))
	var order []string
	for range 3 {
		it, _ := q.pop(nobody)
		order = append(order, it.at.ss.key.Tenant)
		q.release(it.at.ss.key.Tenant)
	}
	if fmt.Sprint(order) != "[b a b]" || len(q.tenants) != 0 {
		t.Errorf("%v, then %v", order, q.tenants)
	}
}

func BenchmarkGate(b *testing.B) {
	s := gated(128, 1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.enter(context.Background(), "t"); err != nil {
				b.Fatal(err)
			}
			s.leave("t", 0)
		}
	})
}
