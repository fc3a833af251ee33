package scheduler

import "time"

// fairQueue holds the attempts that are ready to run, and the run tokens.
//
// Fairness is by virtual time: each tenant's clock advances by the time in
// which its attempts hold tokens, and the tenant that is behind goes first. A
// tenant that comes back from idling starts at the clock of the one that is
// furthest behind, so that nobody saves up idleness (start-time fair queueing;
// Goyal, Vin, Cheng, SIGCOMM 1996).
type fairQueue struct {
	tokens  int // free
	tenants map[string]*tenantQueue
	ready   int
}

type tenantQueue struct {
	name    string
	items   []readyItem // FIFO from head
	head    int
	virtual time.Duration
	running int
}

// readyItem is an attempt that wants a token: to start a run of its guest, or
// (resume) to go on with one that gave the token up.
type readyItem struct {
	at     *attempt
	resume chan struct{}
}

func (q *fairQueue) init(tokens int) {
	q.tokens = tokens
	q.tenants = map[string]*tenantQueue{}
}

// push adds an item at the end of its tenant's queue.
func (q *fairQueue) push(tenant string, it readyItem) {
	t := q.tenants[tenant]
	if t == nil {
		t = &tenantQueue{name: tenant}
		t.virtual, _ = q.floor()
		q.tenants[tenant] = t
	} else if t.running == 0 && t.len() == 0 {
		least, _ := q.floor()
		t.virtual = max(t.virtual, least)
	}
	t.items = append(t.items, it)
	q.ready++
}

func (t *tenantQueue) len() int { return len(t.items) - t.head }

// floor is the virtual time of the busy tenant that is furthest behind, if any
// is busy.
func (q *fairQueue) floor() (least time.Duration, found bool) {
	for _, t := range q.tenants {
		if t.running+t.len() > 0 && (!found || t.virtual < least) {
			least, found = t.virtual, true
		}
	}
	return least, found
}

// pop takes the next item whose tenant skip does not name, and a token.
func (q *fairQueue) pop(skip func(tenant string) bool) (readyItem, bool) {
	if q.tokens == 0 || q.ready == 0 {
		return readyItem{}, false
	}
	var best *tenantQueue
	for _, t := range q.tenants {
		if t.len() > 0 && (best == nil || t.virtual < best.virtual || t.virtual == best.virtual && t.name < best.name) && !skip(t.name) {
			best = t
		}
	}
	if best == nil {
		return readyItem{}, false
	}
	it := best.items[best.head]
	best.items[best.head] = readyItem{}
	if best.head++; best.head == len(best.items) {
		best.items, best.head = best.items[:0], 0
	} else if best.head > 1024 && best.head*2 > len(best.items) {
		best.items = append(best.items[:0], best.items[best.head:]...)
		best.head = 0
	}
	best.running++
	q.ready--
	q.tokens--
	return it, true
}

// release gives a token back that a tenant held for so long.
func (q *fairQueue) release(tenant string, held time.Duration) {
	q.tokens++
	t := q.tenants[tenant]
	t.running--
	t.virtual += held
	if t.running > 0 || t.len() > 0 {
		return
	}
	// What an idle tenant is ahead of the others is remembered; once nobody is
	// busy, nobody is ahead.
	if least, busy := q.floor(); !busy {
		clear(q.tenants)
	} else if t.virtual <= least {
		delete(q.tenants, tenant)
	}
}

// due reports whether another tenant is behind this one and waits.
func (q *fairQueue) due(tenant string, held time.Duration) bool {
	if q.tokens > 0 || q.ready == 0 {
		return false
	}
	self := q.tenants[tenant]
	for _, t := range q.tenants {
		if t != self && t.len() > 0 && t.virtual < self.virtual+held {
			return true
		}
	}
	return false
}
