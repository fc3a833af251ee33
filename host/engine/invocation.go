package engine

import (
	"container/list"
	"math/bits"
	"strconv"

	"github.com/weftrun/weft/abi"
)

// phase is the state of an invocation.
type phase uint8

const (
	phaseQueued    phase = iota // waits for a worker slot
	phaseRunning                // an attempt holds a worker slot
	phaseWaiting                // waits for the time of its next attempt
	phaseSuspended              // waits for an event, or sleeps, in mid-attempt
)

// invocation is the processing of one trigger by a step, over all attempts.
type invocation struct {
	id      uint64
	run     *run
	step    *step
	trigger []abi.Event
	in      *collection
	lineage lineage

	attempt uint64
	lastErr *abi.Error
	began   bool
	start   int64 // of the first attempt, Unix nanoseconds
	phase   phase
	worker  int
	seat    uint64 // number of the slot grant, for the order of Open
	timer   *timer // of the attempt's timeout, or of the wait for the next attempt
	calls   collectCalls

	suspended   *suspension   // in phaseSuspended
	suspensions int           // in all attempts
	line        *list.Element // its place in run.standing
	since       int64         // since when it stands still
	waiters     map[string]*waiter
	children    map[string]*child
	asked       map[string]*outcall // calls of resources, by callID
	askedBytes  int                 // bytes of their payloads and answers
	slept       uint64              // the call of this attempt whose sleep is over
	halfway     bool                // in phaseQueued: the attempt was suspended, and continues

	ahead, behind *invocation // in the step's queue
	older, newer  *invocation // of the run
}

// pool holds the workers of a step in a run, and the queue for them.
type pool struct {
	busy        int
	taken       [(abi.MaxWorkers + 63) / 64]uint64 // worker numbers, a bit each
	first, last *invocation
	waiting     int // length of the queue
	suspended   int // suspended invocations
}

// acquire takes the smallest free worker number.
func (p *pool) acquire() int {
	p.busy++
	for i, word := range p.taken {
		if ^word != 0 {
			n := bits.TrailingZeros64(^word)
			p.taken[i] |= 1 << n
			return i*64 + n
		}
	}
	return -1 // not reached: busy is below the number of workers
}

func (p *pool) release(worker int) {
	p.busy--
	p.taken[worker/64] &^= 1 << (worker % 64)
}

// push puts an invocation at the end of the queue.
func (p *pool) push(inv *invocation) {
	inv.ahead = p.last
	if p.last == nil {
		p.first = inv
	} else {
		p.last.behind = inv
	}
	p.last = inv
	p.waiting++
}

// leave takes an invocation out of the queue, at any position.
func (p *pool) leave(inv *invocation) {
	if inv.ahead == nil {
		p.first = inv.behind
	} else {
		inv.ahead.behind = inv.behind
	}
	if inv.behind == nil {
		p.last = inv.ahead
	} else {
		inv.behind.ahead = inv.ahead
	}
	inv.ahead, inv.behind = nil, nil
	p.waiting--
}

// invoke creates an invocation of a step and gives it a slot, or queues it.
func (s *Session) invoke(r *run, st *step, trigger []abi.Event, in *collection, from lineage) {
	s.visited++
	s.lastInvocation++
	inv := &invocation{id: s.lastInvocation, run: r, step: st, trigger: trigger, in: in, lineage: from, attempt: 1}
	s.invocations[inv.id] = inv
	// The invocation keeps its collection open until its own results are routed.
	in.alive++
	r.alive++
	inv.older = r.newest
	if r.newest == nil {
		r.oldest = inv
	} else {
		r.newest.newer = inv
	}
	r.newest = inv
	s.seatOrQueue(inv)
}

// seatOrQueue gives the invocation's attempt a worker slot if one is free and the queue
// is empty.
func (s *Session) seatOrQueue(inv *invocation) {
	p := &inv.run.pools[inv.step.index]
	// Nobody overtakes the queue, even if a slot is free at the moment.
	if p.busy < inv.step.workers && p.first == nil && !inv.run.held() {
		s.seat(inv)
		return
	}
	inv.phase = phaseQueued
	p.push(inv)
	s.publishState(inv, "preparing", "<enqueued>", "")
}

// seat starts the current attempt in a free slot.
func (s *Session) seat(inv *invocation) {
	inv.worker = inv.run.pools[inv.step.index].acquire()
	inv.phase, inv.halfway = phaseRunning, false
	s.seats++
	inv.run.seated++
	s.count(inv.run)
	s.lastSeat++
	inv.seat = s.lastSeat
	// Retry policies count the time since the first attempt, queues before it excluded.
	if !inv.began {
		inv.began, inv.start = true, s.now
	}
	// An attempt that was suspended keeps the timer that it began with.
	if span := int64(inv.step.decl.Timeout); span > 0 && inv.timer == nil {
		inv.timer = s.arm(&timer{kind: timerAttempt, at: later(s.now, span), span: span, run: inv.run, inv: inv})
	}
	s.publishState(inv, "running", strconv.Itoa(inv.worker), "")
	s.emit(StartAttempt{Invocation: inv.id})
}

// unseat takes the slot, or the place in the queue, from an attempt that has ended.
// output is the type of the event that it returned, "" for none. A suspended attempt has
// neither a slot nor a place.
func (s *Session) unseat(inv *invocation, output string) {
	s.disarm(inv.timer)
	inv.timer = nil
	switch inv.phase {
	case phaseSuspended:
		s.wake(inv)
	case phaseQueued: // its wait was answered, but its time ran out before a worker was free
		inv.run.pools[inv.step.index].leave(inv)
		inv.halfway = false
		s.publishState(inv, "not_running", "<enqueued>", "")
	default:
		s.vacate(inv, output)
	}
}

// vacate takes the slot from an attempt.
func (s *Session) vacate(inv *invocation, output string) {
	inv.run.pools[inv.step.index].release(inv.worker)
	s.seats--
	inv.run.seated--
	s.count(inv.run)
	s.publishState(inv, "not_running", strconv.Itoa(inv.worker), output)
}

// refill gives a free slot of the step to the invocation that has waited longest.
func (s *Session) refill(r *run, st *step) {
	p := &r.pools[st.index]
	if p.first != nil && p.busy < st.workers && !r.held() {
		s.visited++
		next := p.first
		p.leave(next)
		s.seat(next)
	}
}

// remove takes out an invocation that has ended and is in no queue. The caller releases
// its part of the collection after routing its events.
func (s *Session) remove(inv *invocation) {
	r := inv.run
	delete(s.invocations, inv.id)
	s.leave(inv, true)
	r.last = inv.step
	r.alive--
	if inv.older == nil {
		r.oldest = inv.newer
	} else {
		inv.older.newer = inv.newer
	}
	if inv.newer == nil {
		r.newest = inv.older
	} else {
		inv.newer.older = inv.older
	}
	inv.older, inv.newer = nil, nil
}
