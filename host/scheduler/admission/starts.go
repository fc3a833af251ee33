package admission

import (
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"time"

	"github.com/weftrun/weft/host/limit"
)

// The server decides whether to admit a client's start before it reads the body. An
// accepted run must end in time, so a start that would certainly wait too long is refused
// at once, with the time to try again. Children, messages, timers, answers of
// resources, events, cancels and repeats of a start that was accepted are never asked.
//
//	heap nearly full?  refuse  :  too many that never had a core?  refuse
//	the tenant's wait for a core > what the start allows?  refuse  :  admit
//
// The wait of a tenant is the work that precedes the first core of a new run of it: its
// own demand, and of every other tenant as much as that at most, since cores are shared
// equally; by what all cores get done in a second. So a tenant that has nothing queued
// does not wait for what another has.
//
// Who is refused for its wait is given a time at which there will be room. The work of
// clients that were refused earlier and will try again counts for that time, or all of them would
// come back at once.

// Bounds of admission.
const (
	leastRetry = time.Second
	mostRetry  = 60 * time.Second
	heapPart   = 0.85 // of the memory limit, that live objects may have
	heldPart   = 8    // the part of the memory limit that starts without a core may hold: 1/8
	heapEvery  = 100 * time.Millisecond
)

// Cores is what is known of the cores that runs wait for.
type Cores interface {
	// Rate is how many units all cores get done in a second.
	Rate() float64
	Size() int
	// Held reports whether the tenant is over its fuel budget and gets no core until the
	// budget has refilled.
	Held(tenant string) bool
}

// Config says what a [Starts] decides by. All fields except Memory must be set.
type Config struct {
	Limits *limit.Table
	Cores  Cores
	// Budget is a tenant's fuel a second, 0 if it has no budget.
	Budget func(tenant string) float64
	Now    func() time.Time
	// Memory gives the bytes of live objects and the process's memory limit, 0 if there is
	// none. nil: there is no limit.
	Memory func() (live, limit int64)
}

// Starts decides which starts are admitted. The caller holds its lock, except in
// [Starts.Look], which calls Memory of the [Config] without the lock.
type Starts struct {
	Demand Demand
	Counts Counts
	cfg    Config
	memory memory
}

// Counts counts starts that were admitted, and those that were refused: as the wait for a
// core was too long, as too many waited, as those held too much memory, as the heap was
// full.
type Counts struct {
	Admitted, RefusedWait, RefusedDepth, RefusedBytes, RefusedHeap uint64
}

// Init begins with no demand.
func (s *Starts) Init(cfg Config) {
	*s = Starts{cfg: cfg}
	s.Demand.Init()
}

// memory is what the process has, as it was last read.
type memory struct {
	read        time.Time
	live, limit int64 // bytes; limit 0: there is none
}

// Reason is why a start is refused.
type Reason int

// The reasons.
const (
	Heap  Reason = iota // the heap is full
	Depth               // too many runs of the tenant have had no core
	Bytes               // runs that have had no core hold too much memory
	Wait                // the wait for a core is too long
)

// Refusal says why a start is refused.
type Refusal struct {
	Reason Reason
	Why    string
	After  time.Duration // when there will be room
}

// Refused counts a refusal.
func (s *Starts) Refused(r Reason) {
	switch r {
	case Heap:
		s.Counts.RefusedHeap++
	case Depth:
		s.Counts.RefusedDepth++
	case Bytes:
		s.Counts.RefusedBytes++
	case Wait:
		s.Counts.RefusedWait++
	}
}

// Look reads what memory the process has, now and then. It takes the caller's lock by
// itself, and reads without it.
func (s *Starts) Look(lock sync.Locker) {
	if s.cfg.Memory == nil {
		return
	}
	now := s.cfg.Now()
	lock.Lock()
	fresh := !s.memory.read.IsZero() && now.Sub(s.memory.read) < heapEvery
	if !fresh {
		s.memory.read = now // others need not read it too
	}
	lock.Unlock()
	if fresh {
		return
	}
	// Reading the memory statistics takes longer than other requests should wait for the lock.
	live, limit := s.cfg.Memory()
	lock.Lock()
	s.memory.live, s.memory.limit = live, limit
	lock.Unlock()
}

// Refuses says why a start cannot be admitted; nil: it can.
func (s *Starts) Refuses(name string, v *Version, bytes int64, allowance time.Duration, bounded bool) *Refusal {
	t, m := v.of, &s.memory
	// First the heap: with no memory left, the fairness of waits does not matter.
	if m.limit > 0 && float64(m.live) > heapPart*float64(m.limit) {
		return &Refusal{Heap, "its memory is nearly full", leastRetry}
	}
	// The depth limits a tenant whose starts may wait for any time.
	if most := s.cfg.Limits.WaitingStarts(name); t.fresh >= most {
		return &Refusal{Depth, fmt.Sprintf("%d runs wait for their first core, at most %d may", t.fresh, most), s.tenth(name, t)}
	}
	// The bytes limit all tenants together. One start is always admitted, whatever its size.
	if d := &s.Demand; m.limit > 0 && d.bytes > 0 && d.bytes+bytes > m.limit/heldPart {
		return &Refusal{Bytes, "runs that wait for their first core hold too much memory", s.tenth(name, t)}
	}
	// A start without an allowance may wait for any time.
	if !bounded || s.quick(name, allowance) {
		return nil
	}
	takes := v.takes.surely()
	wait := s.wait(name, t, t.units, takes)
	if wait <= allowance {
		return nil
	}
	now := s.cfg.Now()
	// The work of clients that come back earlier comes first. A fifth of the allowance is a
	// margin: an estimate that is a little too low must not refuse the client twice.
	later := s.wait(name, t, t.units+t.promised.after(now), takes) - allowance*8/10
	later = min(max(later, leastRetry), mostRetry)
	t.promised.add(now.Add(later), v.takes.mean)
	return &Refusal{Wait, fmt.Sprintf("a run would wait for about %s for its first core, more than %s", wait.Round(time.Second), allowance), later}
}

// quick reports whether there is so little work that no start waits long.
func (s *Starts) quick(name string, allowance time.Duration) bool {
	// Without limits of the tenant all cores work on the total, which bounds every wait.
	return s.cfg.Limits.TenantInvocations(name) == 0 && s.cfg.Budget(name) == 0 &&
		float64(s.Demand.total)/s.cfg.Cores.Rate() < allowance.Seconds()/4
}

// wait is how long a new run of a tenant surely waits for its first core, if the tenant
// has so much to do before and the run takes so much.
func (s *Starts) wait(name string, t *tenant, own, takes int64) time.Duration {
	rate := s.cfg.Cores.Rate()
	seconds := s.before(t, own, takes) / rate
	// A tenant that may not use all cores gets its own work done at its share of the speed.
	if most := s.cfg.Limits.TenantInvocations(name); most > 0 && most < s.cfg.Cores.Size() {
		seconds = max(seconds, float64(own+takes)/(rate*float64(most)/float64(s.cfg.Cores.Size())))
	}
	// A tenant with a fuel budget burns its own work no faster than the budget comes in.
	if budget := s.cfg.Budget(name); budget > 0 {
		seconds = max(seconds, float64(own)/budget)
	}
	// A speed near zero must not overflow the duration.
	return time.Duration(min(seconds, float64(math.MaxInt64/2)/1e9) * 1e9)
}

// Waits are how long a new run surely waits for its first core: one of a tenant that has
// nothing to do, and one of the tenant that has the most. What a run takes is what runs
// took so far.
func (s *Starts) Waits() (idle, busiest time.Duration) {
	takes, name, most := s.Demand.all.surely(), "", &tenant{}
	if !s.Demand.all.seen {
		takes = UnknownRun
	}
	for tenant, t := range s.Demand.tenants {
		// The name decides between equal tenants, so that the result does not depend on the map.
		if t.units > most.units || t.units == most.units && tenant < name {
			name, most = tenant, t
		}
	}
	idle = time.Duration(s.before(nil, 0, takes) / s.cfg.Cores.Rate() * 1e9)
	if most.units == 0 {
		return idle, idle
	}
	return idle, s.wait(name, most, most.units, takes)
}

// before returns the units of work that precede the first core of a new run: the tenant's
// own work, and from each other tenant at most as much as that work and the run's.
func (s *Starts) before(t *tenant, own, takes int64) float64 {
	sum := float64(own)
	for name, other := range s.Demand.tenants {
		// Cores are shared equally: while the run waits, another tenant gets no more than the
		// tenant itself. A tenant over its budget gets nothing.
		if other != t && other.units > 0 && !s.cfg.Cores.Held(name) {
			sum += float64(min(other.units, own+takes))
		}
	}
	return sum
}

// tenth is how long a tenth of a tenant's runs that never had a core takes to begin.
func (s *Starts) tenth(name string, t *tenant) time.Duration {
	return min(max(s.wait(name, t, t.units, 0)/10, leastRetry), mostRetry)
}

// Pass counts a start that was admitted, until the caller calls Passed: its run then
// counts itself, or has failed to start.
func (s *Starts) Pass(v *Version, bytes int64) {
	s.Counts.Admitted++
	v.users++
	s.Demand.count(v, bytes, true)
}

// Passed ends what Pass began.
func (s *Starts) Passed(v *Version, bytes int64) {
	v.users--
	s.Demand.count(v, bytes, false)
}

// Spread adds up to a quarter to a time, by the id of the request, in whole seconds.
func Spread(d time.Duration, id string) time.Duration {
	// The id decides, so that a client that repeats a request gets the same time.
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	d += time.Duration(float64(d) / 4 * float64(h.Sum32()) / math.MaxUint32)
	return (d + time.Second - 1).Truncate(time.Second)
}

// promises is the work of clients that were refused and will try again, by the second in which
// they will.
type promises struct {
	from  int64 // second of the first place
	units [90]int64
	sum   int64
}

// move drops what is due by now.
func (p *promises) move(now time.Time) {
	to := now.Unix() + 1
	// After a long pause, or if the clock was set back, no promise is due any more.
	if p.sum == 0 || to < p.from-int64(len(p.units)) || to >= p.from+int64(len(p.units)) {
		*p = promises{from: to}
		return
	}
	for ; p.from < to; p.from++ {
		at := &p.units[p.from%int64(len(p.units))]
		p.sum -= *at
		*at = 0
	}
}

// after is the work that is due later than now.
func (p *promises) after(now time.Time) int64 {
	p.move(now)
	return p.sum
}

// add notes work that is due at a time within mostRetry from now on.
func (p *promises) add(at time.Time, units int64) {
	// The ring has more seconds than the longest wait, so no place has two meanings.
	second := min(max(at.Unix(), p.from), p.from+int64(len(p.units))-1)
	p.units[second%int64(len(p.units))] += units
	p.sum += units
}
