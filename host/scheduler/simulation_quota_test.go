package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/quota"
	"github.com/weftrun/weft/host/usage"
)

// tally counts as the server's quotas do, and refuses nothing but beyond most.
type tally struct {
	mu   sync.Mutex
	most int // active runs; 0: any number
	held map[string]usage.RunsHeld
	fuel map[string]uint64
}

// newTally counts from what a store holds.
func newTally(store host.Store) *tally {
	q := &tally{held: map[string]usage.RunsHeld{}, fuel: map[string]uint64{}}
	for _, h := range must(store.RunsHeld(context.Background())) {
		q.held[h.Tenant] = h
	}
	return q
}

func (*tally) Ready(context.Context, string) error { return nil }
func (*tally) Grow(context.Context, string) error  { return nil }

func (q *tally) Begin(tenant string, waits bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.most > 0 && !waits && q.held[tenant].Active >= q.most {
		return quota.Breached(limit.QuotaRunsActive, int64(q.most), int64(q.most), 1)
	}
	if waits {
		q.add(tenant, 0, 1)
	} else {
		q.add(tenant, 1, 0)
	}
	return nil
}

func (q *tally) Room(string) error { return nil }

func (q *tally) Runs(tenant string, active, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(tenant, active, waiting)
}

func (q *tally) add(tenant string, active, waiting int) {
	h := q.held[tenant]
	h.Tenant, h.Active, h.Waiting = tenant, h.Active+active, h.Waiting+waiting
	q.held[tenant] = h
}

func (q *tally) Spend(tenant string, _ int64, spent usage.Spent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fuel[tenant] += spent.Fuel
}

// differs says how the counts differ from those of a store; "": they do not.
func (q *tally) differs(store host.Store) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	stored := map[string]usage.RunsHeld{}
	for _, h := range must(store.RunsHeld(context.Background())) {
		stored[h.Tenant] = h
	}
	for tenant, h := range q.held {
		s := stored[tenant]
		if s.Active != h.Active || s.Waiting != h.Waiting {
			return fmt.Sprintf("tenant %s has %+v, counted were %+v", tenant, s, h)
		}
	}
	return ""
}

// billing is what journals say that attempts have burnt, from what becomes durable.
type billing struct {
	attempts map[host.SessionKey]map[attemptID]uint64 // billed
	billed   map[string]uint64                        // by tenant
	runs     map[string]uint64
	burnt    *atomic.Uint64 // by all guests, over all runs of theirs
}

type attemptID struct{ invocation, attempt uint64 }

// burner counts what a guest burns.
type burner struct {
	host.Token
	burnt *atomic.Uint64
}

// Checkpoint implements host.Token.
func (b burner) Checkpoint(units uint64) error {
	b.burnt.Add(units)
	return b.Token.Checkpoint(units)
}

func newBilling() billing {
	return billing{attempts: map[host.SessionKey]map[attemptID]uint64{}, billed: map[string]uint64{}, runs: map[string]uint64{}, burnt: new(atomic.Uint64)}
}

// note takes a batch that is durable.
func (b *billing) note(s *sim, batch *host.Batch) {
	for i := range batch.Sessions {
		p := &batch.Sessions[i]
		b.runs[p.Key.Tenant] += uint64(len(p.Started))
		if p.Data == nil {
			continue
		}
		if p.First == 1 { // there may have been another of its name
			b.attempts[p.Key] = map[attemptID]uint64{}
		}
		var entries []engine.Entry
		s.must(abi.Unmarshal(p.Data[rowHeader:], &entries))
		for j := range entries {
			b.entry(p.Key, &entries[j])
		}
	}
}

func (b *billing) entry(key host.SessionKey, e *engine.Entry) {
	attempts := b.attempts[key]
	for i := range e.Held {
		if h := &e.Held[i]; h.Burnt != nil {
			attempts[attemptID{h.Invocation, h.Attempt}] = h.Burnt.Billed() // that of another, when it is forked
		}
	}
	if burnt, ok := e.Spending(); ok && e.OfAttempt() {
		at := attemptID{e.Invocation, e.Attempt}
		b.billed[key.Tenant] += burnt.Billed() - attempts[at]
		attempts[at] = burnt.Billed()
	}
}

// checkSpent holds what the store says was spent against the journals: beyond what
// entries have billed there is what guests burnt that were abandoned, and no unit was
// billed that nobody burnt.
func (s *sim) checkSpent() {
	sum := uint64(0)
	for _, tenant := range []string{"t", "u"} {
		var spent usage.Spent
		for _, m := range must(s.store.Spent(context.Background(), tenant, 0)) {
			spent.Add(m.Spent)
		}
		sum += spent.Fuel
		if spent.Fuel < s.billing.billed[tenant] || spent.Runs != s.billing.runs[tenant] {
			s.failf("tenant %s has spent %+v, its journals say %d units and %d runs", tenant, spent, s.billing.billed[tenant], s.billing.runs[tenant])
		}
	}
	if burnt := s.billing.burnt.Load(); sum > burnt {
		s.failf("%d units were billed, %d were burnt", sum, burnt)
	}
	if s.atRest {
		if text := s.w.tally.differs(s.store); text != "" {
			s.failf("at rest: %s", text)
		}
	}
}
