package scheduler

import (
	"time"

	"github.com/weftrun/weft/host/scheduler/fair"
)

// cores decides who gets a core. Scheduler.mu guards it.
//
// An attempt that is ready is in exactly one place: in queue, or aside for a while: in
// coming for the code of its module, in backoff for a time, in suspicion.unkept for the journal,
// or held by suspicion.trials.
type cores struct {
	s       *Scheduler
	queue   fair.Queue[*attempt]
	budgets fair.Budgets
	spare   spare
	coming  map[codeKey][]*attempt // those that wait for code, which is being prepared
	backoff []backoff              // attempts that are tried later
}

func (c *cores) init(s *Scheduler) {
	c.s, c.spare.s, c.coming = s, s, map[codeKey][]*attempt{}
	c.queue.Init(s.cfg.Tokens, s.cfg.Limits.TenantInvocations)
	c.queue.Speed.Init(s.cfg.Tokens, s.cfg.Now)
	c.budgets.Init(s.cfg.Now, func(tenant string) float64 { return float64(s.cfg.Limits.TenantFuel(tenant)) })
}

// readyItem is an attempt that wants a token: to begin a run of its guest, or to resume one
// that gave the token up. A rehearsal has no attempt.
type readyItem = fair.Item[*attempt]

// ready puts an attempt into its tenant's queue, unless it must be durable first, or run
// alone. The caller holds the session's mu.
func (c *cores) ready(at *attempt) {
	c.s.mu.Lock()
	if !c.s.suspicion.keepFirst(at) {
		c.enqueue(c.item(at))
	}
	c.s.mu.Unlock()
	c.s.signal()
}

// enqueue puts an attempt into its tenant's queue, unless it must run alone. The caller holds
// mu.
func (c *cores) enqueue(it readyItem) {
	if trials := c.s.suspicion.trials; trials == nil || !trials.Keeps(it.Of.suspectKey(), it) {
		c.push(it)
	}
}

// push puts an attempt into its tenant's queue, at its place by now. The caller holds mu.
func (c *cores) push(it readyItem) {
	it.Place = it.Of.place(it.Place.First)
	c.queue.Push(it.Of.ss.key.Tenant, it)
}

// item returns an attempt that wants a token from now on. The caller holds the session's mu.
func (c *cores) item(at *attempt) readyItem {
	it := readyItem{Of: at, Place: fair.Place{First: at.ss.tickets.Holds(at)}}
	if c.s.cfg.Observer != nil {
		it.Since = c.s.cfg.Now()
	}
	return it
}

// place returns the place of an attempt among the others of its tenant; first: it holds a
// write ticket. The caller holds Scheduler.mu.
func (at *attempt) place(first bool) fair.Place {
	p := fair.Place{Class: fair.Going, First: first}
	w := at.work
	if w != nil {
		p.Age = w.Age
	}
	switch {
	case first:
	case w == nil || !w.Begun && !w.Child:
		p.Class = fair.New
	case w.Used >= fair.LongRun:
		p.Class = fair.Long
	}
	return p
}

// overLimitPause is how soon to look again when a tenant with ready attempts is over the
// journal's soft limit.
const overLimitPause = 5 * time.Millisecond

// grant gives the free tokens to the attempts whose turn it is.
func (c *cores) grant(now time.Time) (work []func(), next time.Time) {
	s := c.s
	skip := func(tenant string) bool {
		if s.cfg.Journal.OverSoftLimit(tenant) {
			next = now.Add(overLimitPause)
			return true
		}
		return false
	}
	for {
		it, ok := c.queue.Pop(skip)
		if !ok {
			break
		}
		it.Of.serving().Has(s.now())
		if it.Resume != nil {
			close(it.Resume) // the guest resumes where it gave its token up
			continue
		}
		if !it.Since.IsZero() {
			s.cfg.Observer.Waited(now.Sub(it.Since))
		}
		work = append(work, func() { s.run(it.Of) })
	}
	if c.queue.Free() > 0 {
		c.queue.Speed.Rest()
	}
	c.queue.Speed.Rate() // ends the window of the measurement if it is over
	return work, next
}

// resumeOnly lets guests that gave up their token run to their end while the
// scheduler stops, whatever their tenant's budget. The caller holds mu.
func (c *cores) resumeOnly() {
	c.admitHeld(c.s.cfg.Now())
	for {
		it, ok := c.queue.Pop(func(string) bool { return false })
		if !ok {
			return
		}
		if it.Resume != nil {
			close(it.Resume)
			continue
		}
		c.queue.Release(it.Of.ss.key.Tenant)
	}
}

// charge books units that a tenant's guest burnt, and cost on its clock beside
// them, where so many of the units are already. A tenant that is over its budget is held.
// The caller holds mu.
func (c *cores) charge(tenant string, units, cost, already uint64) {
	c.queue.Charge(tenant, units+cost-already)
	if c.budgets.Spend(tenant, units) && !c.s.life.stopping && !c.queue.Held(tenant) {
		c.budgets.CountHold(tenant)
		c.s.counters.Holds++
		c.queue.Hold(tenant)
	}
}

// admitHeld admits the held tenants whose budget suffices again, or all of them while the
// scheduler stops. next is when the next tenant's budget suffices; zero if none is held. The
// caller holds mu.
func (c *cores) admitHeld(now time.Time) (work []func(), next time.Time) {
	for tenant := range c.queue.HeldTenants() {
		wait := c.budgets.Missing(tenant, now)
		if wait <= 0 || c.s.life.stopping {
			c.queue.Admit(tenant)
			continue
		}
		if at := now.Add(max(wait, time.Microsecond)); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return nil, next
}

// codeKey names code that is being prepared.
type codeKey struct {
	digest string
	tables int
}

// backoff is an attempt whose guest the host could not run, being short of memory
// for example. It waits without a token: the run is as it was, and the
// time counts against none of its timeouts.
type backoff struct {
	at  *attempt
	due time.Time
}
