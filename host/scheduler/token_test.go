package scheduler

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// still are answers that let a guest burn what it likes.
type still struct{ Answers }

func (still) Burn(uint64) error  { return nil }
func (still) Idle(time.Duration) {}

// OverHardLimit implements Journal.
func (sink) OverHardLimit(string) bool { return false }

// OverSoftLimit implements Journal.
func (sink) OverSoftLimit(string) bool { return false }

// running is the token of a guest that runs alone on the only core.
func running(tb testing.TB, limits string) *token {
	tb.Helper()
	table, err := limit.Parse([]byte(limits))
	if err != nil {
		tb.Fatal(err)
	}
	s := newScheduler(context.Background(), Config{Tokens: 1, Journal: sink{}, Log: slog.New(slog.DiscardHandler), Limits: table})
	at := &attempt{ss: &session{s: s, key: host.SessionKey{Tenant: "t"}}, answers: still{}}
	s.cores.queue.Push("t", readyItem{Of: at})
	s.cores.queue.Pop(func(string) bool { return false })
	return s.cores.newToken("t", at)
}

// A guest that has its core for itself pays next to nothing at its checkpoints.
func TestCheckpointAllocatesNothing(t *testing.T) {
	for _, limits := range []string{`{}`, `{"defaults": {"tenant_fuel_per_second": 1e12}}`} {
		tok := running(t, limits)
		if n := testing.AllocsPerRun(1000, func() {
			if err := tok.Checkpoint(50_000); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("with %s: %v allocations", limits, n)
		}
		tok.release(0, 0)
		if u := tok.s.Usage("t"); u.Fuel != 1001*50_000 {
			t.Errorf("used %+v", u)
		}
	}
}

// What the host did for a guest, such as loading its module, counts for its tenant's
// turn, and is not what the guest has burnt.
func TestWorkCountsForTheTurn(t *testing.T) {
	virtual := func(work uint64) (uint64, fair.Usage) {
		tok := running(t, `{}`)
		tok.s.cores.queue.Push("t", readyItem{Of: tok.at}) // so that the tenant stays known
		tok.release(1000, work)
		return tok.s.cores.queue.Clock("t"), tok.s.Usage("t")
	}
	without, _ := virtual(0)
	with, used := virtual(300_000)
	if with != without+300_000 || used.Fuel != 1000 {
		t.Errorf("virtual time %d, without work %d; used %+v", with, without, used)
	}
}

func BenchmarkCheckpoint(b *testing.B) {
	for name, limits := range map[string]string{"alone": `{}`, "budget": `{"defaults": {"tenant_fuel_per_second": 1e12}}`} {
		b.Run(name, func(b *testing.B) {
			tok := running(b, limits)
			for b.Loop() {
				if err := tok.Checkpoint(50_000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the host does during a call is on the tenant's clock at once and not twice: the
// fuel that the call becomes is there already. What the core took beyond is added.
func TestWorkOfACallIsOnTheClockOnce(t *testing.T) {
	for _, c := range []struct {
		what    string
		took    time.Duration // of the core, between two looks
		charged uint64        // what of the work becomes fuel
		want    uint64        // on the clock beside the flat charges
	}{
		{"priced well", 100 * time.Microsecond, 900_000, 900_000},
		{"priced too low", time.Millisecond, 900_000, 900_000 + 2*(3_000_000-300_000) + 3_000_000},
		{"without a price", 0, 0, 900_000},
	} {
		tok := running(t, `{}`)
		var cpu time.Duration
		tok.s.cfg.CPU = func() time.Duration { return cpu }
		tok.s.cores.queue.Push("t", readyItem{Of: tok.at}) // so that the tenant stays known
		began := tok.s.cores.queue.Clock("t")
		for range 3 {
			if err := tok.Work(300_000); err != nil {
				t.Fatal(err)
			}
			cpu += c.took
		}
		tok.Worked(c.charged)
		if err := tok.Checkpoint(c.charged); err != nil {
			t.Fatal(err)
		}
		tok.release(c.charged, 0)
		got := tok.s.cores.queue.Clock("t") - began - 4*fair.CallCost
		// The last look's time is measured against no units of its own.
		if c.took == 100*time.Microsecond {
			c.want += 300_000
		}
		if got != c.want || tok.s.Usage("t").Fuel != c.charged {
			t.Errorf("%s: %d units on the clock, want %d; billed %d", c.what, got, c.want, tok.s.Usage("t").Fuel)
		}
	}
}

// What a run has used, and whether it had a core, decides where its attempts stand.
func TestPlaceOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		what  string
		work  *admission.Run
		first bool
		want  fair.Class
	}{
		{"nothing is known", nil, false, fair.New},
		{"new", &admission.Run{}, false, fair.New},
		{"a child", &admission.Run{Child: true}, false, fair.Going},
		{"going", &admission.Run{Begun: true, Used: fair.LongRun - 1}, false, fair.Going},
		{"long", &admission.Run{Begun: true, Used: fair.LongRun}, false, fair.Long},
		{"with a ticket", &admission.Run{Begun: true, Used: fair.LongRun}, true, fair.Going},
	} {
		at := &attempt{work: c.work}
		if p := at.place(c.first); p.Class != c.want || p.First != c.first {
			t.Errorf("%s: %+v", c.what, p)
		}
	}
}
