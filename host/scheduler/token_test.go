package scheduler

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
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
	table, err := host.ParseLimits([]byte(limits))
	if err != nil {
		tb.Fatal(err)
	}
	s := &Scheduler{cfg: Config{Journal: sink{}, Log: slog.New(slog.DiscardHandler), Limits: table}, wake: make(chan struct{}, 1), accounts: map[string]*account{}}
	s.cfg.setDefaults()
	s.queue.init(1, s.cfg.Limits.TenantInvocations)
	at := &attempt{ss: &session{s: s, key: host.SessionKey{Tenant: "t"}}, answers: still{}}
	s.queue.push("t", readyItem{at: at})
	s.queue.pop(func(string) bool { return false })
	return s.newToken("t", at)
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
	virtual := func(work uint64) (uint64, Usage) {
		tok := running(t, `{}`)
		tok.s.queue.push("t", readyItem{at: tok.at}) // so that the tenant stays known
		tok.release(1000, work)
		return tok.s.queue.tenants["t"].virtual, tok.s.Usage("t")
	}
	without, _ := virtual(0)
	with, used := virtual(300_000)
	if with != without+300_000 || used.Fuel != 1000 {
		t.Errorf("virtual time %d, without work %d; used %+v", with, without, used)
	}
}

// A clock that is set back neither fills an account nor empties it.
func TestAccountsAndTheClock(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	a := &account{rate: 1e6}
	a.fill(start)
	a.credit.Left = 0
	for _, c := range []struct {
		at   time.Duration
		want float64
	}{{time.Second, 1e6}, {-time.Hour, 1e6}, {-time.Hour + time.Second/2, 1.5e6}, {time.Hour, 1e7}, {2 * time.Hour, 1e7}} {
		if a.fill(start.Add(c.at)); a.credit.Left != c.want {
			t.Errorf("at %s: %v units, want %v", c.at, a.credit.Left, c.want)
		}
	}
	a.credit.Left = -1e6
	if got, want := a.missing(), time.Second+50*time.Millisecond; got != want {
		t.Errorf("a million units short, and it waits for %s, want %s", got, want)
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
		tok.s.queue.push("t", readyItem{at: tok.at}) // so that the tenant stays known
		began := tok.s.queue.tenants["t"].virtual
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
		got := tok.s.queue.tenants["t"].virtual - began - 4*callCost
		// The last look's time is measured against no units of its own.
		if c.took == 100*time.Microsecond {
			c.want += 300_000
		}
		if got != c.want || tok.s.Usage("t").Fuel != c.charged {
			t.Errorf("%s: %d units on the clock, want %d; billed %d", c.what, got, c.want, tok.s.Usage("t").Fuel)
		}
	}
}
