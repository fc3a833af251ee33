package scheduler

import (
	"context"
	"time"
)

// forgetEvery is how often Forget looks whether a tenant's sessions can go.
const forgetEvery = 10 * time.Millisecond

// Forget removes a tenant from memory, so that its rows can be deleted without the
// journal. The tenant must have no runs any more, and
// nobody may use it. It waits until what was done in its sessions is durable and
// over; ctx's error if that ends first.
func (s *Scheduler) Forget(ctx context.Context, tenant string) error {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for !s.table.forgetTenant(tenant) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// forgetTenant forgets what it can; false: something is left.
func (t *table) forgetTenant(tenant string) bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	durable := t.s.cfg.Journal.Durable()
	done := true
	for key, ss := range t.sessions {
		if key.Tenant != tenant {
			continue
		}
		// Without pins nobody else looks at what ss.mu guards.
		if ss.pins > 0 || ss.lastPos > durable {
			done = false
			continue
		}
		t.forget(ss)
	}
	for key, pos := range t.barriers {
		if key.Tenant == tenant {
			if pos > durable {
				done = false
				continue
			}
			delete(t.barriers, key)
		}
	}
	// What follows is needed as long as the tenant has work in progress.
	if !done {
		return false
	}
	t.quarantine.Forget(tenant)
	t.s.reserved.Forget(tenant)
	t.s.keys.Forget(tenant)
	t.s.cores.budgets.Forget(tenant)
	t.s.starts.Demand.Forget(tenant)
	return true
}
