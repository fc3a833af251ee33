// Package fair decides who gets a core next, and when: a queue of run tokens that is fair
// between tenants, budgets of fuel, the speed of the cores, timers, and a pool of
// goroutines for the work.
//
// It must not depend on what the work is: items, keys and work are the caller's. Everything
// but [Pool] is without a mutex: the caller holds its lock. Nothing here reads the clock or
// waits. Under the caller's lock it calls only functions that the caller gives, which must
// not read the clock or wait either.
package fair

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// Queue holds the attempts that are ready to run, and the run tokens.
//
// Fairness is by virtual time, which is counted and not measured: each tenant's
// clock advances by the units that its guests burn, replays included, and by
// what the host does for them at a flat rate (StartCost, CallCost), and the
// tenant that is behind goes first. A tenant that comes back from idling starts
// at the clock of the one that is furthest behind, so that nobody saves up
// idleness (start-time fair queueing; Goyal, Vin, Cheng, SIGCOMM 1996).
//
// A guest that gave its token up resumes before other guests of its tenant begin, so a
// tenant has at most as many guests begun as there are tokens. Which of the others
// begins is decided by its [Place].
type Queue[T any] struct {
	tokens  int // free
	all     int // tokens, free or not
	tenants map[string]*tenantQueue[T]
	ready   int
	clock   uint64 // see level
	// held has the tenants that get no token until Admit. A held tenant counts as idle.
	held map[string]bool
	// most says how many tokens a tenant may have at a time; 0: all.
	most func(tenant string) int
	// Speed is that of the cores behind the tokens.
	Speed Speed
}

// tenantQueue is what the queue knows of a tenant that is busy, or ahead.
type tenantQueue[T any] struct {
	name    string
	begun   fifo[Item[T]] // guests that wait to resume
	fresh   order[T]      // attempts whose guest has not begun
	virtual uint64
	running int
	long    int  // of those begun, guests that compute for longer than a turn
	inLine  bool // requests of the tenant wait to be admitted
	most    int  // tokens at a time; 0: all
	held    bool
}

// Item is what wants a token: to start a run of a guest, or (Resume) to resume a guest
// that gave the token up.
type Item[T any] struct {
	Of     T
	Resume chan struct{} // nil: the guest has not begun
	Place  Place         // among the tenant's other items, if the guest has not begun
	Since  time.Time     // when the wait began; zero: nobody wants to know
}

// What a tenant's clock advances by beside the units burnt, as the host works
// for it: about what guests burn in the time that it takes.
const (
	StartCost = 100_000 // to reset an instance, to settle the attempt's end
	CallCost  = 1_000   // a host call, or another checkpoint
)

// Turn is how far a tenant's clock may be ahead of one that waits before a guest
// of it gives the token up, beside what is burnt up to its next checkpoint;
// about 0.15 ms of ordinary code.
const Turn = 500_000

// Init makes an empty queue for so many tokens. most returns the number of tokens that a
// tenant may hold at once.
func (q *Queue[T]) Init(tokens int, most func(tenant string) int) {
	q.tokens, q.all, q.most = tokens, tokens, most
	q.tenants = map[string]*tenantQueue[T]{}
	q.held = map[string]bool{}
}

// Push adds an item to its tenant's queue.
func (q *Queue[T]) Push(tenant string, it Item[T]) {
	t := q.known(tenant)
	// A guest that has begun holds an instance: it resumes before other guests begin.
	if it.Resume != nil {
		t.begun.push(it)
	} else {
		t.fresh.push(it)
	}
	q.ready++
	q.Speed.wanted()
}

// known gives what the queue knows of a tenant that is about to be busy, or is.
func (q *Queue[T]) known(tenant string) *tenantQueue[T] {
	t := q.tenants[tenant]
	if t == nil {
		t = &tenantQueue[T]{name: tenant, most: q.most(tenant), held: q.held[tenant]}
		q.tenants[tenant] = t
	}
	// The tenant saved nothing up while it wanted nothing.
	if t.idle() {
		q.catchUp(t)
	}
	return t
}

// LineUp notes that starts of a tenant wait at the gate.
func (q *Queue[T]) LineUp(tenant string) { q.known(tenant).inLine = true }

// LineEnds notes that starts of a tenant no longer wait at the gate.
func (q *Queue[T]) LineEnds(tenant string) {
	t := q.tenants[tenant]
	t.inLine = false
	// The line may have been all that kept the tenant busy.
	q.rest(t)
}

// Owe advances the clock of a tenant for what the host has done for it without a
// token. While nobody is busy there is nobody to be ahead of.
func (q *Queue[T]) Owe(tenant string, units uint64) {
	if _, busy := q.floor(); busy {
		q.known(tenant).virtual += units
	}
}

// idle reports whether the tenant wants nothing.
func (t *tenantQueue[T]) idle() bool { return t.running+t.len() == 0 && !t.inLine }

func (t *tenantQueue[T]) len() int { return t.begun.len() + t.fresh.len() }

// catchUp takes from a tenant what it was behind while it was idle.
func (q *Queue[T]) catchUp(t *tenantQueue[T]) { t.virtual = max(t.virtual, q.level()) }

// level is where a tenant begins that was idle: with the busy one that is
// furthest behind or, if none is busy, where that was last.
func (q *Queue[T]) level() uint64 {
	// The level never falls: a tenant that comes and goes would gain by it.
	if least, busy := q.floor(); busy {
		q.clock = max(q.clock, least)
	}
	return q.clock
}

// floor is the virtual time of the busy tenant that is furthest behind, if any
// is busy.
func (q *Queue[T]) floor() (least uint64, found bool) {
	for _, t := range q.tenants {
		// A tenant that may not have a token now does not hold the others back.
		if !t.idle() && !t.held && !t.full() && (!found || t.virtual < least) {
			least, found = t.virtual, true
		}
	}
	return least, found
}

// Pop takes the next item whose tenant skip does not name, and a token.
func (q *Queue[T]) Pop(skip func(tenant string) bool) (Item[T], bool) {
	if q.tokens == 0 || q.ready == 0 {
		return Item[T]{}, false
	}
	var best *tenantQueue[T]
	for _, t := range q.tenants {
		// The name decides between equal clocks, so that the order is the same in every run.
		if t.waits() && (best == nil || t.virtual < best.virtual || t.virtual == best.virtual && t.name < best.name) && !skip(t.name) {
			best = t
		}
	}
	if best == nil {
		return Item[T]{}, false
	}
	var it Item[T]
	// A guest that resumes has paid for its start already.
	if best.begun.len() > 0 {
		it = best.begun.pop()
	} else {
		it = best.fresh.pop()
		best.virtual += StartCost
	}
	best.running++
	q.ready--
	q.tokens--
	return it, true
}

// waits reports whether the tenant could use a token.
func (t *tenantQueue[T]) waits() bool {
	return t.len() > 0 && !t.held && !t.full()
}

// full reports whether the tenant has all the tokens that it may have.
func (t *tenantQueue[T]) full() bool { return t.most > 0 && t.running >= t.most }

// Charge advances the clock of a tenant that holds a token, or waits at the gate.
func (q *Queue[T]) Charge(tenant string, units uint64) { q.tenants[tenant].virtual += units }

// Soon reports whether attempts wait that will have ended in a moment, as far as one
// can tell: not those behind guests of their own tenant that compute for long on all
// the cores.
func (q *Queue[T]) Soon() bool {
	if q.ready == 0 {
		return false
	}
	for _, t := range q.tenants {
		// With a core to spare, a new attempt of the tenant gets its turn soon.
		if t.waits() && t.fresh.len() > 0 && t.long < q.all {
			return true
		}
	}
	return false
}

// Release gives a tenant's token back.
func (q *Queue[T]) Release(tenant string) {
	q.tokens++
	// A free token that nobody wants says nothing about the speed of the cores.
	if q.ready == 0 {
		q.Speed.Rest()
	}
	t := q.tenants[tenant]
	if t.full() {
		q.catchUp(t) // it was kept from more, and that is no merit
	}
	t.running--
	q.rest(t)
}

// GiveBack gives back a token that nobody used: the tenant's clock stands where it was.
func (q *Queue[T]) GiveBack(tenant string) {
	q.tenants[tenant].virtual -= StartCost
	q.Release(tenant)
}

// rest forgets a tenant that has become idle. How far it is ahead of the others is
// remembered until no tenant is busy.
func (q *Queue[T]) rest(t *tenantQueue[T]) {
	if !t.idle() {
		return
	}
	// A tenant that is ahead stays known, or it would begin level with the others again.
	if least, busy := q.floor(); !busy {
		q.forget()
	} else if t.virtual <= least {
		delete(q.tenants, t.name)
	}
}

// forget drops the tenants that have nothing left here.
func (q *Queue[T]) forget() {
	for name, t := range q.tenants {
		if t.idle() {
			delete(q.tenants, name)
		}
	}
}

// Due reports whether another tenant, not named by skip, waits and is a turn
// behind this one.
func (q *Queue[T]) Due(tenant string, skip func(tenant string) bool) bool {
	// With a free token nobody has to give way.
	if q.tokens > 0 || q.ready == 0 {
		return false
	}
	self := q.tenants[tenant]
	for _, t := range q.tenants {
		// A difference of less than a turn is not worth a change of guests.
		if t != self && t.waits() && t.virtual+Turn <= self.virtual && !skip(t.name) {
			return true
		}
	}
	return false
}

// Hold gives a tenant no tokens until [Queue.Admit]. Its running guests continue.
func (q *Queue[T]) Hold(tenant string) {
	q.level() // notes how far the tenant came: it may be the only one
	q.held[tenant] = true
	if t := q.tenants[tenant]; t != nil {
		t.held = true
	}
}

// Admit ends a hold: the tenant comes back as from idling.
func (q *Queue[T]) Admit(tenant string) {
	delete(q.held, tenant)
	if t := q.tenants[tenant]; t != nil {
		q.catchUp(t) // while it does not count itself
		t.held = false
	}
}

// Seize takes a token for a tenant whose turn does not matter.
func (q *Queue[T]) Seize(tenant string) {
	t := q.known(tenant)
	t.virtual += StartCost
	t.running++
	q.tokens--
}

// Free is the number of tokens that nobody has, Size that of all tokens, and Ready that of
// the items that wait.
func (q *Queue[T]) Free() int { return q.tokens }

// Size is the number of tokens, free or not.
func (q *Queue[T]) Size() int { return q.all }

// Ready is the number of items that wait.
func (q *Queue[T]) Ready() int { return q.ready }

// Resize gives so many tokens more, or with a number below 0 takes free ones away.
func (q *Queue[T]) Resize(by int) {
	q.all += by
	q.tokens += by
}

// Rate is how many units all cores get done in a second.
func (q *Queue[T]) Rate() float64 { return q.Speed.Rate() }

// Clock is the virtual time of a tenant that is busy.
func (q *Queue[T]) Clock(tenant string) uint64 { return q.tenants[tenant].virtual }

// Computes notes that one guest more, or with -1 one less, of a tenant with a token
// computes for longer than a turn.
func (q *Queue[T]) Computes(tenant string, more int) { q.tenants[tenant].long += more }

// Held reports whether a tenant is kept from tokens.
func (q *Queue[T]) Held(tenant string) bool { return q.held[tenant] }

// HeldTenants gives the tenants that are kept from tokens, which the caller may admit
// meanwhile.
func (q *Queue[T]) HeldTenants() iter.Seq[string] { return maps.Keys(q.held) }

// Busy gives the tenants that the queue remembers, for tests.
func (q *Queue[T]) Busy() []string { return slices.Sorted(maps.Keys(q.tenants)) }

// Oversleeps reports whether a free token and an item are there that could come together:
// of a tenant that skip does not name.
func (q *Queue[T]) Oversleeps(skip func(tenant string) bool) bool {
	for tenant, t := range q.tenants {
		if t.waits() && q.tokens > 0 && !skip(tenant) {
			return true
		}
	}
	return false
}

// fifo is a queue of items, first in, first out.
type fifo[I any] struct {
	items []I
	head  int
}

func (f *fifo[I]) len() int { return len(f.items) - f.head }

func (f *fifo[I]) push(it I) { f.items = append(f.items, it) }

func (f *fifo[I]) pop() I {
	var none I
	it := f.items[f.head]
	// The array must not keep an item that has left the queue.
	f.items[f.head] = none
	// An empty queue begins at the front again. A long one moves forward when half of the
	// array is unused, so that each item moves once on average.
	if f.head++; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 1024 && f.head*2 > len(f.items) {
		f.items = append(f.items[:0], f.items[f.head:]...)
		f.head = 0
	}
	return it
}
