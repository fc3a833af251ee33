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

// evict forgets sessions that have had nothing to do for long enough. The caller holds mu.
func (t *table) evict(now time.Time) (work []func(), next time.Time) {
	durable := t.s.cfg.Journal.Durable()
	for n := len(t.idle); n > 0; n-- { // the longest idle is first, and looked at once
		it := t.idle[0]
		if now.Sub(it.since) < t.s.cfg.IdleAfter {
			next = it.since.Add(t.s.cfg.IdleAfter)
			break
		}
		t.idle[0] = idleSession{}
		t.idle = t.idle[1:]
		ss := t.sessions[it.key]
		if ss == nil || ss.pins > 0 || !ss.idleSince.Equal(it.since) {
			continue // it comes back, or came back, to the list with its last release
		}
		// Without pins nobody else looks at what ss.mu guards.
		if ss.lastPos > durable {
			it.since, ss.idleSince = now, now
			t.idle = append(t.idle, it)
			continue
		}
		if t.settleCounts(ss) {
			continue
		}
		t.forget(ss)
	}
	if next.IsZero() && len(t.idle) > 0 {
		next = now.Add(t.s.cfg.IdleAfter)
	}
	if len(t.barriers) > maxBarriers {
		for key, pos := range t.barriers {
			if pos <= durable {
				delete(t.barriers, key)
			}
		}
	}
	t.s.keys.Prune(durable)
	t.s.reserved.Prune(durable)
	return nil, next
}

// forget takes a session out of memory that has no pins and is durable. The caller holds
// mu.
func (t *table) forget(ss *session) {
	delete(t.sessions, ss.key)
	for _, w := range ss.needs {
		t.s.starts.Demand.Gone(w)
	}
	t.s.counters.Evicted++
	if t.s.calls.Of(ss.key) > 0 {
		return // the store does not know of its timer, as it waits for more
	}
	t.s.dues.Remove(ss.key)
	if ss.eng != nil {
		t.s.dues.Note(ss.eng.NextTimer())
	}
}

// settleCounts has the counts of a session written that could leave memory; false: there are
// none. The caller holds mu.
func (t *table) settleCounts(ss *session) bool {
	if !ss.owes() {
		return false
	}
	ss.pins++
	t.owing = append(t.owing, ss)
	return true
}

// settleWork is the work of settleCounts. The caller holds mu.
func (t *table) settleWork(time.Time) (work []func(), next time.Time) {
	for _, ss := range t.owing {
		work = append(work, ss.settleUnserved)
	}
	t.owing = nil
	return work, time.Time{}
}

// maxBarriers is how many purged sessions are remembered before those whose
// deletion is durable are forgotten.
const maxBarriers = 1024
