package admission

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// played is a machine with cores of a fixed speed, by a clock that the test moves: each
// core burns coreSpeed units a second, and a run is one attempt. What is asked, queued,
// booked and measured is what the scheduler uses.
type played struct {
	Starts
	queue   fair.Queue[*playedRun]
	budgets fair.Budgets
	now     time.Time
	busy    []onCore
	ended   int
	came    map[*playedRun]time.Time
	waited  map[*playedRun]time.Duration // for the first core
}

// playedRun is a run of a tenant that takes so many units.
type playedRun struct {
	tenant string
	units  uint64
	work   *Run
}

// onCore is a run that has a core until a time.
type onCore struct {
	at    *playedRun
	until time.Time
}

const coreSpeed = 1e9

func nobody(string) bool { return false }

func play(tb testing.TB, n int, limits string) *played {
	tb.Helper()
	table, err := limit.Parse([]byte(limits))
	if err != nil {
		tb.Fatal(err)
	}
	p := &played{now: time.Unix(1_800_000_000, 0), came: map[*playedRun]time.Time{}, waited: map[*playedRun]time.Duration{}}
	now := func() time.Time { return p.now }
	p.queue.Init(n, table.TenantInvocations)
	p.queue.Speed.Init(n, now)
	p.budgets.Init(now, func(tenant string) float64 { return float64(table.TenantFuel(tenant)) })
	p.Init(Config{Limits: table, Cores: &p.queue, Budget: p.budgets.Rate, Now: now})
	return p
}

// ask asks for a start that may wait for so long, as a client's start does.
func (p *played) ask(tenant string, allowance time.Duration) *Refusal {
	return p.Refuses(tenant, p.Demand.Version(tenant, "v"), HeldByStart, allowance, true)
}

// start begins a run of so many units.
func (p *played) start(tenant string, units int64) *playedRun {
	at := &playedRun{tenant: tenant, units: uint64(units), work: p.Demand.Run(tenant, "v", p.now.UnixNano(), false)}
	p.Demand.Opened(at.work)
	p.came[at] = p.now
	p.queue.Push(tenant, fair.Item[*playedRun]{Of: at, Place: fair.Place{Class: fair.New, Age: at.work.Age}})
	p.fill()
	return at
}

// fill gives the free cores to those who wait.
func (p *played) fill() {
	for {
		it, ok := p.queue.Pop(nobody)
		if !ok {
			break
		}
		p.waited[it.Of] = p.now.Sub(p.came[it.Of])
		p.Demand.Used(it.Of.work, 0)
		p.busy = append(p.busy, onCore{it.Of, p.now.Add(time.Duration(float64(it.Of.units) / coreSpeed * 1e9))})
	}
	if p.queue.Free() > 0 {
		p.queue.Speed.Rest()
	}
	p.queue.Speed.Rate()
}

// until plays to a time.
func (p *played) until(to time.Time) {
	for {
		next := -1
		for i, c := range p.busy {
			if !c.until.After(to) && (next < 0 || c.until.Before(p.busy[next].until)) {
				next = i
			}
		}
		if next < 0 {
			p.now = to
			p.fill()
			return
		}
		c := p.busy[next]
		p.busy = slices.Delete(p.busy, next, next+1)
		p.now = c.until
		p.queue.Charge(c.at.tenant, c.at.units)
		p.budgets.Spend(c.at.tenant, c.at.units)
		p.Demand.Used(c.at.work, c.at.units)
		p.queue.Speed.Book(c.at.units)
		p.Demand.Closed(c.at.work)
		p.Demand.Ended(c.at.work)
		p.ended++
		p.queue.Release(c.at.tenant)
		p.fill()
	}
}

// learn lets runs of a tenant end until what they take and the cores' speed are known.
func (p *played) learn(tenant string, units int64) {
	for range 60 * p.queue.Size() {
		p.start(tenant, units)
	}
	p.until(p.now.Add(time.Hour))
	p.ended = 0
	clear(p.waited)
}

// runUnits is what a run takes in the tests: a tenth of a second of a core.
const runUnits = coreSpeed / 10

// The wait that is worked out is what a queue makes of it that is played to its end,
// within a fifth: for a tenant that has queued much, for others that have less, and for
// one that comes anew.
func TestWaitIsWhatTheQueueMakesOfIt(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		for _, queued := range []map[string]int{{"a": 200}, {"a": 200, "b": 50}, {"a": 200, "b": 50, "c": 120}, {"b": 160, "c": 160}} {
			for _, who := range []string{"a", "b", "new"} {
				p := play(t, n, `{}`)
				p.learn("a", runUnits)
				for _, tenant := range []string{"a", "b", "c"} {
					for range queued[tenant] * n {
						p.start(tenant, runUnits)
					}
				}
				v := p.Demand.Version(who, "v")
				want := p.wait(who, v.of, v.of.units, v.takes.surely())
				at := p.start(who, runUnits)
				p.until(p.now.Add(time.Hour))
				got, ran := p.waited[at]
				if d := (want - got).Abs(); !ran || d > got/5+3*time.Second/10 {
					t.Errorf("%d cores, queued %v: %s waited for %s, expected %s", n, queued, who, got, want)
				}
			}
		}
	}
}

// Whatever is offered, from half to twenty times of what the cores can do: what ends is
// at least 85 % of the most that ever does, and who is admitted waits little longer than
// the start allows: longer, as the estimate of what runs of random length take varies.
func TestOverloadKeepsItsGoodput(t *testing.T) {
	suite.NotShort(t, "computes for long, by one goroutine")
	const allowance, lasts = 15 * time.Second, 2 * time.Minute
	for _, n := range []int{1, 2, 8} {
		peak := 0
		for _, load := range []float64{0.5, 1, 2, 5, 10, 20} {
			p := play(t, n, `{}`)
			p.learn("t", runUnits)
			rng := rand.New(rand.NewPCG(uint64(n), uint64(load*10)))
			began, refused := p.now, 0
			gap := time.Duration(float64(time.Second) / 10 / float64(n) / load)
			for p.now.Before(began.Add(lasts)) {
				if p.ask("t", allowance) == nil {
					p.start("t", int64(runUnits*(0.5+rng.Float64())))
				} else {
					refused++
				}
				p.until(p.now.Add(gap))
			}
			ended := p.ended
			p.until(p.now.Add(time.Hour))
			peak = max(peak, ended)
			most := time.Duration(0)
			for _, d := range p.waited {
				most = max(most, d)
			}
			t.Logf("%d cores, %4.1f times: %d ended in time, %d refused, waited for %s at most", n, load, ended, refused, most)
			if load >= 1 && ended < peak*85/100 {
				t.Errorf("%d cores, %v times: %d ended, %d at the peak", n, load, ended, peak)
			}
			if most > allowance*3/2 {
				t.Errorf("%d cores, %v times: a run that was admitted waited for %s", n, load, most)
			}
			if load < 0.9 && refused > 0 {
				t.Errorf("%d cores, %v times: %d refused", n, load, refused)
			}
		}
	}
}

// comeback is a client that was told to come back.
type comeback struct {
	at    time.Time
	tries int
}

type comebacks []comeback

func (c comebacks) Len() int           { return len(c) }
func (c comebacks) Less(i, j int) bool { return c[i].at.Before(c[j].at) }
func (c comebacks) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *comebacks) Push(x any)        { *c = append(*c, x.(comeback)) }
func (c *comebacks) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// Of many clients that come at once and are told to come back, at least nine of ten are
// admitted when they do.
func TestRetryAfterIsMeant(t *testing.T) {
	const allowance = 15 * time.Second
	for _, n := range []int{1, 2, 8} {
		for _, load := range []int{2, 3, 4} { // times of what fits the allowance
			p := play(t, n, `{}`)
			p.learn("t", runUnits)
			var back comebacks
			for range load * 150 * n {
				heap.Push(&back, comeback{at: p.now})
			}
			heeded, admitted, first := 0, 0, 0
			for id := 0; back.Len() > 0; id++ {
				c := heap.Pop(&back).(comeback)
				p.until(c.at)
				no := p.ask("t", allowance)
				switch {
				case no == nil && c.tries == 0:
					first++
				case c.tries > 0:
					heeded++
				}
				if no == nil {
					if c.tries > 0 {
						admitted++
					}
					p.start("t", runUnits)
					continue
				}
				heap.Push(&back, comeback{p.now.Add(Spread(no.After, fmt.Sprint(id))), c.tries + 1})
			}
			t.Logf("%d cores, %d times: %d admitted at once, %d of %d when they came back", n, load, first, admitted, heeded)
			if heeded == 0 || admitted*10 < heeded*9 {
				t.Errorf("%d cores, %d times: %d of %d that came back were admitted", n, load, admitted, heeded)
			}
		}
	}
}

// A tenant that comes while others have a day's work queued is admitted, and waits for a
// run of each of them at most.
func TestNewTenantWaitsForItsShareOnly(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		p := play(t, n, `{}`)
		p.learn("a", runUnits)
		for i := range 9000 {
			p.start([]string{"a", "b", "c"}[i%3], runUnits)
		}
		p.until(p.now.Add(time.Minute))
		if no := p.ask("a", 15*time.Second); no == nil {
			t.Fatalf("%d cores: a tenant with so much queued is admitted", n)
		}
		if no := p.ask("new", time.Second); no != nil {
			t.Fatalf("%d cores: a new tenant is refused: %s", n, no.Why)
		}
		at := p.start("new", runUnits)
		p.until(p.now.Add(time.Minute))
		if got, ran := p.waited[at]; !ran || got > 4*time.Second/10 {
			t.Errorf("%d cores: the new tenant waited for %s (%t)", n, got, ran)
		}
	}
}

// The other reasons to refuse a start, and that what is over leaves nothing behind.
func TestOtherRefusals(t *testing.T) {
	p := play(t, 1, `{"defaults": {"waiting_starts": 5}}`)
	for range 6 { // one has the core
		p.start("t", runUnits)
	}
	if no := p.ask("t", time.Hour); no == nil || no.Reason != Depth || no.After < leastRetry {
		t.Errorf("too many wait: %+v", no)
	}
	if no := p.ask("other", time.Hour); no != nil {
		t.Errorf("another tenant: %s", no.Why)
	}
	p.memory = memory{live: 86, limit: 100}
	if no := p.ask("other", time.Hour); no == nil || no.Reason != Heap {
		t.Errorf("the heap is nearly full: %+v", no)
	}
	p.memory = memory{live: 50, limit: 12 * HeldByStart}
	if no := p.ask("other", time.Hour); no != nil {
		t.Errorf("there is memory: %s", no.Why)
	}
	v := p.Demand.Version("other", "v")
	p.Pass(v, HeldByStart)
	if no := p.ask("other", time.Hour); no == nil || no.Reason != Bytes {
		t.Errorf("what waits holds too much: %+v", no)
	}
	p.Passed(v, HeldByStart)
	p.until(p.now.Add(time.Hour))
	if d := &p.Demand; d.total != 0 || d.bytes != 0 || d.tenants["t"].fresh != 0 || d.tenants["other"].fresh != 0 {
		t.Errorf("left behind: %+v", d)
	}
}

// The waits that are told are those by which starts are refused.
func TestWaitsAreTold(t *testing.T) {
	p := play(t, 1, "{}")
	if idle, most := p.Waits(); idle != 0 || most != 0 {
		t.Errorf("with nothing to do: %s, %s", idle, most)
	}
	for range 10 {
		p.start("busy", UnknownRun)
	}
	p.start("other", UnknownRun)
	rate := p.queue.Speed.Rate()
	idle, most := p.Waits()
	if want := time.Duration(2 * UnknownRun / rate * 1e9); idle != want {
		t.Errorf("a tenant without work waits for %s, want %s: a run of each other", idle, want)
	}
	if want := p.wait("busy", p.Demand.of("busy"), p.Demand.of("busy").units, UnknownRun); most != want || most <= idle {
		t.Errorf("the busiest one waits for %s, want %s", most, want)
	}
}
