package scheduler

import (
	"time"

	"github.com/weftrun/weft/host/bucket"
)

// Usage is what a tenant has used since the scheduler was made.
type Usage struct {
	// Fuel is what its guests burnt, in units, replays included. What a guest
	// burnt since its last turn began is missing while it runs.
	Fuel     uint64
	Attempts uint64 // runs of guests
	// Holds counts how often it had to wait because it was over its budget.
	Holds uint64
}

// A budget is a rate of units; a tenant that was idle may burn the units of
// burst at once. One that is over its budget waits until it may burn those of
// refill: it is not to be held again at once.
const (
	burst  = 10 * time.Second
	refill = burst / 200
)

// account is what a tenant has burnt and may burn. Guarded by Scheduler.mu.
type account struct {
	used   Usage
	rate   float64       // units a second; 0: no budget
	credit bucket.Bucket // units that it may burn; below zero it is over its budget
}

// account finds a tenant's account. Called with mu held.
func (s *Scheduler) account(tenant string) *account {
	a := s.accounts[tenant]
	if a == nil {
		a = &account{rate: float64(s.cfg.Limits.TenantFuel(tenant))}
		a.fill(s.cfg.Now())
		s.accounts[tenant] = a
	}
	return a
}

// budget is the rate of the account.
func (a *account) budget() bucket.Rate {
	return bucket.Rate{Size: a.rate * burst.Seconds(), Span: burst}
}

// fill adds what has come in since the last time.
func (a *account) fill(now time.Time) { a.credit.Fill(now, a.budget()) }

// missing is how long a tenant over its budget has to wait from the time to
// which its account is filled; 0 or less: no longer.
func (a *account) missing() time.Duration {
	return a.credit.Until(a.rate*refill.Seconds(), a.budget())
}

// charge books units that a tenant's guest burnt, and cost on its clock beside
// them, where so many of the units are already. A tenant that is over its budget is held. Called with mu held.
func (s *Scheduler) charge(tenant string, units, cost, already uint64) {
	s.queue.charge(tenant, units+cost-already)
	a := s.account(tenant)
	a.used.Fuel += units
	if a.rate == 0 {
		return
	}
	a.fill(s.cfg.Now())
	if a.credit.Left -= float64(units); a.credit.Left < 0 && !s.stopping && !s.queue.held[tenant] {
		a.used.Holds++
		s.counters.Holds++
		s.queue.hold(tenant)
	}
}

// admit lets held tenants go on whose budget has come in, all of them while the
// scheduler stops, and says when the next one's will have: zero if none is
// held. Called with mu held.
func (s *Scheduler) admit(now time.Time) (next time.Time) {
	for tenant := range s.queue.held {
		a := s.account(tenant)
		a.fill(now)
		wait := a.missing()
		if wait <= 0 || s.stopping {
			s.queue.admit(tenant)
			continue
		}
		if at := now.Add(max(wait, time.Microsecond)); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Usage tells what a tenant has used; nothing for one that has run nothing.
func (s *Scheduler) Usage(tenant string) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[tenant]; a != nil {
		return a.used
	}
	return Usage{}
}
