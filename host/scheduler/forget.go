package scheduler

import (
	"context"
	"time"
)

// forgetEvery is how often Forget looks whether a tenant's sessions can go.
const forgetEvery = 10 * time.Millisecond

// Forget lets go of all that is in memory of a tenant, so that its rows can be
// deleted behind the journal's back. The tenant must have no runs any more, and
// nobody may use it. It waits until what was done in its sessions is durable and
// over; ctx's error if that ends first.
func (s *Scheduler) Forget(ctx context.Context, tenant string) error {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for !s.forgetTenant(tenant) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// forgetTenant forgets what it can; false: something is left.
func (s *Scheduler) forgetTenant(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	durable := s.cfg.Journal.Durable()
	done := true
	for key, ss := range s.sessions {
		if key.Tenant != tenant {
			continue
		}
		// Without pins nobody else looks at what ss.mu guards.
		if ss.pins > 0 || ss.lastPos > durable {
			done = false
			continue
		}
		s.forget(ss)
	}
	for key, pos := range s.barriers {
		if key.Tenant == tenant {
			if pos > durable {
				done = false
				continue
			}
			delete(s.barriers, key)
		}
	}
	if !done {
		return false
	}
	for key := range s.quarantine {
		if key.Tenant == tenant {
			delete(s.quarantine, key)
		}
	}
	for key := range s.starting {
		if key.tenant == tenant {
			delete(s.starting, key)
		}
	}
	s.keys.Forget(tenant)
	s.budgets.Forget(tenant)
	s.starts.Demand.Forget(tenant)
	return true
}
