package scheduler

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/weftrun/weft/host"
)

// A start of a client is admitted by what it would have to wait for, before its body is
// read: what is accepted is to end in time, and who would surely wait for too long is
// told so at once, and when to come back. Children, messages, timers, answers of
// resources, events, cancels and repeats of a start that was accepted are never asked.
//
//	heap nearly full?  refuse  :  too many that never had a core?  refuse
//	the tenant's wait for a core > what the start allows?  refuse  :  admit
//
// The wait of a tenant is what has to be done before a new run of it gets a core: its
// own demand, and of every other tenant as much as that at most, since cores are shared
// equally; by what all cores get done in a second. So a tenant that has nothing queued
// does not wait for what another has.
//
// Who is refused for its wait is given a time at which there will be room. The work of
// those who were told to come back earlier counts for that time, or all of them would
// come back at once.

// Bounds of admission.
const (
	defaultStartWait = 15 * time.Second
	leastRetry       = time.Second
	mostRetry        = 60 * time.Second
	heapPart         = 0.85 // of the memory limit, that live objects may have
	heldPart         = 8    // the part of the memory limit that starts without a core may hold: 1/8
	heapEvery        = 100 * time.Millisecond
)

// memory is what the process has, as it was last read.
type memory struct {
	read        time.Time
	live, limit int64 // bytes; limit 0: there is none
}

// refusal says why a start is refused.
type refusal struct {
	count *uint64
	why   string
	after time.Duration
}

// AskStart implements host.Admission.
func (s *Scheduler) AskStart(ctx context.Context, ask host.StartAsk) (release func(), err error) {
	version, allowance, bounded := "", time.Duration(0), false
	if ask.Workflow != "" {
		mod, err := s.cfg.Modules.Newest(ask.Tenant, ask.Workflow)
		if err != nil {
			return nil, err
		}
		version = mod.Digest
		allowance, bounded = s.allowance(mod, ask.Wait)
	}
	bytes := heldByStart + max(ask.Bytes, 0)
	s.lookAtMemory()
	s.mu.Lock()
	v := s.demand.version(ask.Tenant, version)
	no := s.refuses(ask.Tenant, v, bytes, allowance, bounded)
	if no == nil {
		release = s.letPass(v, bytes)
		s.mu.Unlock()
		return release, nil
	}
	s.mu.Unlock()
	if ask.Once.Key != "" {
		switch known, err := s.knows(ctx, ask.Tenant, ask.Once); {
		case err != nil:
			return nil, err
		case known:
			return func() {}, nil
		}
	}
	s.count(no.count)
	return nil, &host.Error{Code: host.CodeOverloaded, RetryAfter: spread(no.after, ask.RequestID),
		Message: "The server has too much to do (" + no.why + "): the request had no effect"}
}

// allowance is how long a start may wait for its first core; bounded is false if it may
// wait for ever.
func (s *Scheduler) allowance(mod Module, wait bool) (d time.Duration, bounded bool) {
	timeout, set := mod.Graph.Timeout()
	if !wait {
		return timeout, set && timeout > 0
	}
	if !set {
		timeout = s.cfg.Timeout
	}
	if timeout > 0 && (s.cfg.StartWait < 0 || timeout < s.cfg.StartWait) {
		return timeout, true
	}
	return s.cfg.StartWait, s.cfg.StartWait >= 0
}

// lookAtMemory reads what memory the process has, now and then.
func (s *Scheduler) lookAtMemory() {
	if s.cfg.Memory == nil {
		return
	}
	now := s.cfg.Now()
	s.mu.Lock()
	fresh := !s.memory.read.IsZero() && now.Sub(s.memory.read) < heapEvery
	if !fresh {
		s.memory.read = now // others need not read it too
	}
	s.mu.Unlock()
	if fresh {
		return
	}
	live, limit := s.cfg.Memory()
	s.mu.Lock()
	s.memory.live, s.memory.limit = live, limit
	s.mu.Unlock()
}

// refuses says why a start cannot be admitted; nil: it can. Called with mu held.
func (s *Scheduler) refuses(tenant string, v *versionDemand, bytes int64, allowance time.Duration, bounded bool) *refusal {
	t, m := v.of, &s.memory
	if m.limit > 0 && float64(m.live) > heapPart*float64(m.limit) {
		return &refusal{&s.counters.RefusedHeap, "its memory is nearly full", leastRetry}
	}
	if most := s.cfg.Limits.WaitingStarts(tenant); t.fresh >= most {
		return &refusal{&s.counters.RefusedDepth, fmt.Sprintf("%d runs wait for their first core, at most %d may", t.fresh, most), s.tenth(tenant, t)}
	}
	if d := &s.demand; m.limit > 0 && d.bytes > 0 && d.bytes+bytes > m.limit/heldPart {
		return &refusal{&s.counters.RefusedBytes, "runs that wait for their first core hold too much memory", s.tenth(tenant, t)}
	}
	if !bounded || s.quick(tenant, allowance) {
		return nil
	}
	takes := v.takes.surely()
	wait := s.wait(tenant, t, t.units, takes)
	if wait <= allowance {
		return nil
	}
	now := s.cfg.Now()
	later := s.wait(tenant, t, t.units+t.promised.after(now), takes) - allowance*8/10
	later = min(max(later, leastRetry), mostRetry)
	t.promised.add(now.Add(later), v.takes.mean)
	return &refusal{&s.counters.RefusedWait, fmt.Sprintf("a run would wait for about %s for its first core, more than %s", wait.Round(time.Second), allowance), later}
}

// quick reports whether so little is to be done that nobody waits for long.
func (s *Scheduler) quick(tenant string, allowance time.Duration) bool {
	return s.cfg.Limits.TenantInvocations(tenant) == 0 && s.account(tenant).rate == 0 &&
		float64(s.demand.total)/s.queue.speed.look() < allowance.Seconds()/4
}

// wait is how long a new run of a tenant surely waits for its first core, if the tenant
// has so much to do before and the run takes so much. Called with mu held.
func (s *Scheduler) wait(tenant string, t *tenantDemand, own, takes int64) time.Duration {
	rate := s.queue.speed.look()
	seconds := s.before(t, own, takes) / rate
	if most := s.cfg.Limits.TenantInvocations(tenant); most > 0 && most < s.queue.all {
		seconds = max(seconds, float64(own+takes)/(rate*float64(most)/float64(s.queue.all)))
	}
	if budget := s.account(tenant).rate; budget > 0 {
		seconds = max(seconds, float64(own)/budget)
	}
	return time.Duration(min(seconds, float64(math.MaxInt64/2)/1e9) * 1e9)
}

// Waits are how long a new run surely waits for its first core: one of a tenant that has
// nothing to do, and one of the tenant that has the most. What a run takes is what runs
// took so far.
func (s *Scheduler) Waits() (idle, busiest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	takes, name, most := s.demand.all.surely(), "", &tenantDemand{}
	if !s.demand.all.seen {
		takes = unknownRun
	}
	for tenant, t := range s.demand.tenants {
		if t.units > most.units || t.units == most.units && tenant < name {
			name, most = tenant, t
		}
	}
	idle = time.Duration(s.before(nil, 0, takes) / s.queue.speed.look() * 1e9)
	if most.units == 0 {
		return idle, idle
	}
	return idle, s.wait(name, most, most.units, takes)
}

// before is what is to be done before a new run gets its first core, in units: the
// tenant's own work, and of every other tenant's as much as it and the run at most.
// Called with mu held.
func (s *Scheduler) before(t *tenantDemand, own, takes int64) float64 {
	sum := float64(own)
	for name, other := range s.demand.tenants {
		if other != t && other.units > 0 && !s.queue.held[name] {
			sum += float64(min(other.units, own+takes))
		}
	}
	return sum
}

// tenth is how long a tenth of a tenant's runs that never had a core takes to begin.
func (s *Scheduler) tenth(tenant string, t *tenantDemand) time.Duration {
	return min(max(s.wait(tenant, t, t.units, 0)/10, leastRetry), mostRetry)
}

// letPass counts a start that was admitted until its run counts itself, or it comes to
// nothing: release may be called more than once, on any goroutine. Called with mu held.
func (s *Scheduler) letPass(v *versionDemand, bytes int64) (release func()) {
	s.counters.Admitted++
	v.users++
	s.demand.count(v, bytes, true)
	done := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !done {
			done = true
			v.users--
			s.demand.count(v, bytes, false)
		}
	}
}

// knows reports whether a request was made before.
func (s *Scheduler) knows(ctx context.Context, tenant string, once host.Once) (bool, error) {
	s.mu.Lock()
	_, known := s.firsts[onceKey{tenant, once.Route, once.Key}]
	s.mu.Unlock()
	if known {
		return true, nil
	}
	row, err := s.cfg.Store.Repeat(ctx, tenant, once.Route, once.Key)
	if host.CodeOf(err) == host.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, host.Unavailable(err)
	}
	return row.Made > s.now()-host.RepeatsKept, nil
}

// spread adds up to a quarter to a time, by the id of the request, in whole seconds.
func spread(d time.Duration, id string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	d += time.Duration(float64(d) / 4 * float64(h.Sum32()) / math.MaxUint32)
	return (d + time.Second - 1).Truncate(time.Second)
}

// promises is the work of clients that were told to come back, by the second in which
// they will.
type promises struct {
	from  int64 // second of the first place
	units [90]int64
	sum   int64
}

// move drops what is due by now.
func (p *promises) move(now time.Time) {
	to := now.Unix() + 1
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
	second := min(max(at.Unix(), p.from), p.from+int64(len(p.units))-1)
	p.units[second%int64(len(p.units))] += units
	p.sum += units
}
