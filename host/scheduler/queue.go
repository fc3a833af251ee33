package scheduler

import "time"

// fairQueue holds the attempts that are ready to run, and the run tokens.
//
// Fairness is by virtual time, which is counted and not measured: each tenant's
// clock advances by the units that its guests burn, replays included, and by
// what the host does for them at a flat rate (startCost, callCost), and the
// tenant that is behind goes first. A tenant that comes back from idling starts
// at the clock of the one that is furthest behind, so that nobody saves up
// idleness (start-time fair queueing; Goyal, Vin, Cheng, SIGCOMM 1996).
//
// A guest that gave its token up goes on before its tenant's others begin: so a
// tenant has at most as many guests begun as there are tokens. Which of the others
// begins is decided in order.go.
type fairQueue struct {
	tokens  int // free
	all     int // tokens, free or not
	tenants map[string]*tenantQueue
	ready   int
	clock   uint64 // see level
	// held are tenants that get no token for now; to wait is to be idle.
	held map[string]bool
	// most says how many tokens a tenant may have at a time; 0: all.
	most  func(tenant string) int
	speed speed
}

// tenantQueue is what the queue knows of a tenant that is busy, or ahead.
type tenantQueue struct {
	name    string
	begun   fifo  // guests that wait to go on
	fresh   order // attempts whose guest is to begin
	virtual uint64
	running int
	long    int  // of those begun, guests that compute for longer than a turn
	inLine  bool // starts of it wait at the gate
	most    int  // tokens at a time; 0: all
	held    bool
}

// readyItem is an attempt that wants a token: to start a run of its guest, or
// (resume) to go on with one that gave the token up.
type readyItem struct {
	at     *attempt
	resume chan struct{}
	ticket bool      // the attempt holds a write ticket
	since  time.Time // that it waits; zero: nobody wants to know
}

// What a tenant's clock advances by beside the units burnt, as the host works
// for it: about what guests burn in the time that it takes.
const (
	startCost = 100_000 // to reset an instance, to settle the attempt's end
	callCost  = 1_000   // a host call, or another checkpoint
)

// turn is how far a tenant's clock may be ahead of one that waits before a guest
// of it gives the token up, beside what is burnt up to its next checkpoint;
// about 0.15 ms of ordinary code.
const turn = 500_000

func (q *fairQueue) init(tokens int, most func(tenant string) int) {
	q.tokens, q.all, q.most = tokens, tokens, most
	q.tenants = map[string]*tenantQueue{}
	q.held = map[string]bool{}
}

// push adds an item to its tenant's queue.
func (q *fairQueue) push(tenant string, it readyItem) {
	t := q.known(tenant)
	if it.resume != nil {
		t.begun.push(it)
	} else {
		t.fresh.push(it)
	}
	q.ready++
	q.speed.wanted()
}

// known gives what the queue knows of a tenant that is about to be busy, or is.
func (q *fairQueue) known(tenant string) *tenantQueue {
	t := q.tenants[tenant]
	if t == nil {
		t = &tenantQueue{name: tenant, most: q.most(tenant), held: q.held[tenant]}
		q.tenants[tenant] = t
	}
	if t.idle() {
		q.catchUp(t)
	}
	return t
}

// lineUp notes that starts of a tenant wait at the gate; lineEnds that none do any more.
func (q *fairQueue) lineUp(tenant string) { q.known(tenant).inLine = true }

func (q *fairQueue) lineEnds(tenant string) {
	t := q.tenants[tenant]
	t.inLine = false
	q.rest(t)
}

// owe advances the clock of a tenant for what the host has done for it without a
// token. While nobody is busy there is nobody to be ahead of.
func (q *fairQueue) owe(tenant string, units uint64) {
	if _, busy := q.floor(); busy {
		q.known(tenant).virtual += units
	}
}

// idle reports whether the tenant wants nothing.
func (t *tenantQueue) idle() bool { return t.running+t.len() == 0 && !t.inLine }

func (t *tenantQueue) len() int { return t.begun.len() + t.fresh.len() }

// catchUp takes from a tenant what it was behind while it was idle.
func (q *fairQueue) catchUp(t *tenantQueue) { t.virtual = max(t.virtual, q.level()) }

// level is where a tenant begins that was idle: with the busy one that is
// furthest behind or, if none is busy, where that was last.
func (q *fairQueue) level() uint64 {
	if least, busy := q.floor(); busy {
		q.clock = max(q.clock, least)
	}
	return q.clock
}

// floor is the virtual time of the busy tenant that is furthest behind, if any
// is busy.
func (q *fairQueue) floor() (least uint64, found bool) {
	for _, t := range q.tenants {
		if !t.idle() && !t.held && !t.full() && (!found || t.virtual < least) {
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
		if t.waits() && (best == nil || t.virtual < best.virtual || t.virtual == best.virtual && t.name < best.name) && !skip(t.name) {
			best = t
		}
	}
	if best == nil {
		return readyItem{}, false
	}
	var it readyItem
	if best.begun.len() > 0 {
		it = best.begun.pop()
	} else {
		it = best.fresh.pop()
		best.virtual += startCost
	}
	best.running++
	q.ready--
	q.tokens--
	return it, true
}

// waits reports whether the tenant could use a token.
func (t *tenantQueue) waits() bool {
	return t.len() > 0 && !t.held && !t.full()
}

// full reports whether the tenant has all the tokens that it may have.
func (t *tenantQueue) full() bool { return t.most > 0 && t.running >= t.most }

// charge advances the clock of a tenant that holds a token, or waits at the gate.
func (q *fairQueue) charge(tenant string, units uint64) { q.tenants[tenant].virtual += units }

// soon reports whether attempts wait that will have ended in a moment, as far as one
// can tell: not those behind guests of their own tenant that compute for long on all
// the cores.
func (q *fairQueue) soon() bool {
	if q.ready == 0 {
		return false
	}
	for _, t := range q.tenants {
		if t.waits() && t.fresh.len() > 0 && t.long < q.all {
			return true
		}
	}
	return false
}

// release gives a tenant's token back.
func (q *fairQueue) release(tenant string) {
	q.tokens++
	if q.ready == 0 {
		q.speed.rest()
	}
	t := q.tenants[tenant]
	if t.full() {
		q.catchUp(t) // it was kept from more, and that is no merit
	}
	t.running--
	q.rest(t)
}

// giveBack gives back a token that nobody used: the tenant's clock stands where it was.
func (q *fairQueue) giveBack(tenant string) {
	q.tenants[tenant].virtual -= startCost
	q.release(tenant)
}

// rest lets go of a tenant that has become idle. What it is ahead of the others is
// remembered; once nobody is busy, nobody is ahead.
func (q *fairQueue) rest(t *tenantQueue) {
	if !t.idle() {
		return
	}
	if least, busy := q.floor(); !busy {
		q.forget()
	} else if t.virtual <= least {
		delete(q.tenants, t.name)
	}
}

// forget drops the tenants that have nothing here any more.
func (q *fairQueue) forget() {
	for name, t := range q.tenants {
		if t.idle() {
			delete(q.tenants, name)
		}
	}
}

// due reports whether another tenant, not named by skip, waits and is a turn
// behind this one.
func (q *fairQueue) due(tenant string, skip func(tenant string) bool) bool {
	if q.tokens > 0 || q.ready == 0 {
		return false
	}
	self := q.tenants[tenant]
	for _, t := range q.tenants {
		if t != self && t.waits() && t.virtual+turn <= self.virtual && !skip(t.name) {
			return true
		}
	}
	return false
}

// hold keeps a tenant from tokens until admit. What it has running goes on.
func (q *fairQueue) hold(tenant string) {
	q.level() // notes how far the tenant came: it may be the only one
	q.held[tenant] = true
	if t := q.tenants[tenant]; t != nil {
		t.held = true
	}
}

// admit ends a hold: the tenant comes back as from idling.
func (q *fairQueue) admit(tenant string) {
	delete(q.held, tenant)
	if t := q.tenants[tenant]; t != nil {
		q.catchUp(t) // while it does not count itself
		t.held = false
	}
}

// fifo is a queue of items, first in, first out.
type fifo struct {
	items []readyItem
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(it readyItem) { f.items = append(f.items, it) }

func (f *fifo) pop() readyItem {
	it := f.items[f.head]
	f.items[f.head] = readyItem{}
	if f.head++; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 1024 && f.head*2 > len(f.items) {
		f.items = append(f.items[:0], f.items[f.head:]...)
		f.head = 0
	}
	return it
}
