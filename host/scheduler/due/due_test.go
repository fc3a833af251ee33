package due

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

// world has sessions that are due in the order of their numbers, and counts what is in
// memory.
type world struct {
	mu     sync.Mutex
	asked  []host.SessionKey // what the store names next
	memory map[host.SessionKey]*int
	busy   map[host.SessionKey]bool
	loads  []string
	fired  []string
	owes   bool // sessions have something to write before they leave memory
	idle   bool
}

func (w *world) Find(key host.SessionKey) (*int, bool) { s, ok := w.memory[key]; return s, ok }
func (w *world) Known() int                            { return len(w.memory) }
func (w *world) Awaited(key host.SessionKey) bool      { return w.memory[key] != nil }
func (w *world) Until(host.SessionKey) (at time.Time, ok bool) {
	return at, false
}

func (w *world) Busy(s *int) bool {
	for key, other := range w.memory {
		if other == s {
			return w.busy[key]
		}
	}
	return false
}

func (w *world) Leave(s *int) bool {
	if w.owes {
		return false
	}
	for key, other := range w.memory {
		if other == s {
			delete(w.memory, key)
		}
	}
	return true
}

func (w *world) CoresIdle() bool { return w.idle }

func (w *world) Load(key host.SessionKey, use func(*int)) {
	w.loads = append(w.loads, key.Session)
	w.memory[key], w.busy[key] = new(int), true
	use(w.memory[key])
}

func (w *world) Fire(key host.SessionKey) { w.fired = append(w.fired, key.Session) }

func (w *world) Due(_ context.Context, _ int64, limit int) (due []host.SessionKey, next int64, err error) {
	due = w.asked[:min(limit, len(w.asked))]
	w.asked = w.asked[len(due):]
	return due, host.WakeNever, nil
}

func sessions(n int) (keys []host.SessionKey) {
	for i := range n {
		keys = append(keys, host.SessionKey{Tenant: "t", Session: fmt.Sprint(i)})
	}
	return keys
}

func newDues(w *world, atOnce int, now *time.Time) *Dues[*int] {
	w.memory, w.busy = map[host.SessionKey]*int{}, map[host.SessionKey]bool{}
	d := &Dues[*int]{}
	d.Init(Config[*int]{
		Sessions: w, Store: w, Lock: &w.mu, Now: func() int64 { return now.UnixNano() }, Signal: func() {}, AtOnce: atOnce,
		Log: slog.New(slog.DiscardHandler),
	})
	return d
}

// steps works until there is nothing to do at this time.
func steps(w *world, d *Dues[*int], now time.Time) {
	for {
		w.mu.Lock()
		work, _ := d.Work(now)
		w.mu.Unlock()
		if len(work) == 0 {
			return
		}
		for _, do := range work {
			do()
		}
	}
}

// Sessions that are due are loaded in the store's order, so many at a time, and leave memory
// when they are through. If none gets through, one more is loaded now and then.
func TestSessionsAreTakenUpInOrder(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	w := &world{asked: sessions(5)}
	d := newDues(w, 2, &now)
	d.Note(now.UnixNano())
	steps(w, d, now)
	if want := []string{"0", "1"}; !slices.Equal(w.loads, want) {
		t.Fatalf("at first %v are loaded, want %v", w.loads, want)
	}
	now = now.Add(trickleBusy)
	steps(w, d, now)
	if want := []string{"0", "1", "2"}; !slices.Equal(w.loads, want) {
		t.Fatalf("after a while %v are loaded, want %v", w.loads, want)
	}
	for _, key := range sessions(3) {
		w.busy[key] = false
	}
	w.owes = true
	steps(w, d, now)
	if len(w.loads) != 3 {
		t.Fatalf("sessions with something to write have left: %v are loaded", w.loads)
	}
	w.owes = false
	steps(w, d, now)
	if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(w.loads, want) || len(w.memory) != 2 {
		t.Fatalf("at last %v are loaded, %d are in memory", w.loads, len(w.memory))
	}
	for _, key := range sessions(5) {
		w.busy[key] = false
	}
	steps(w, d, now)
	if left := d.Left(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// Timers fire in the order of their times, and only those that are due.
func TestTimersFireInOrder(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	w := &world{}
	d := newDues(w, 2, &now)
	keys := sessions(4)
	for i, after := range []time.Duration{3, 1, 2, time.Hour} {
		d.SetTimer(keys[i], now.Add(after).UnixNano())
	}
	d.Remove(keys[2])
	now = now.Add(time.Second)
	work, next := d.FireWork(now)
	if len(work) != 1 || !next.IsZero() && next.Before(now) {
		t.Fatalf("%d pieces of work, next %v", len(work), next)
	}
	if more, _ := d.FireWork(now); len(more) != 0 {
		t.Error("timers fire twice at a time")
	}
	work[0]()
	if want := []string{"1", "0"}; !slices.Equal(w.fired, want) {
		t.Errorf("fired %v, want %v", w.fired, want)
	}
}
