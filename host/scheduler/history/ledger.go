package history

import (
	"slices"

	"github.com/weftrun/weft/host/engine"
)

// Record is what the journal has of an attempt that has not ended: what a replay of the
// attempt needs.
type Record struct {
	Attempt uint64
	Open    *engine.AttemptOpen
	Calls   []engine.CallRecord
	Spending
	// Unserved is the time without a core that has moved no timeout yet, in nanoseconds.
	// A ledger leaves it at 0: the scheduler counts it.
	Unserved int64
	// short: an entry of the attempt was written without its part of the record,
	// as its finish followed in the same batch. Until then nobody can replay it.
	short bool
}

// Held is the record as a snapshot has it.
func (o *Record) Held(invocation uint64) engine.HeldAttempt {
	h := engine.HeldAttempt{Invocation: invocation, Attempt: o.Attempt, Open: o.Open, Calls: slices.Clip(o.Calls)}
	if o.Burnt != (engine.Burnt{}) {
		burnt := o.Burnt
		h.Burnt = &burnt
	}
	return h
}

// Spending is what an attempt has burnt, and how much of that was billed: written in
// the journal's queue, or with an entry that was.
//
// What is billed is what the attempt has burnt by its entries, each unit once, as a
// replay burns the same again; replays count beyond ten times that. What a guest has
// burnt since its last entry is billed when the attempt is abandoned, but not if it
// continues later: with a crash of the server or a block of its run it is done again.
type Spending struct {
	Burnt  engine.Burnt // at the beginning of the guest's current run
	billed uint64
}

// Bill returns the units to bill after so many were burnt, and records them as billed.
func (p *Spending) Bill(now engine.Burnt) (fuel uint64) {
	if now.Billed() > p.billed {
		fuel = now.Billed() - p.billed
		p.billed = now.Billed()
	}
	return fuel
}

// restored is the spending of an attempt of which so much is written.
func restored(b *engine.Burnt) (p Spending) {
	if b != nil {
		p.Burnt, p.billed = *b, b.Billed()
	}
	return p
}

// Ledger gathers the records of attempts that have not ended, from the entries of
// a session in their order. One goroutine at a time uses it.
type Ledger struct {
	Records map[uint64]*Record // by invocation
	short   int                // of them
}

// NewLedger makes a ledger of a session without entries.
func NewLedger() *Ledger { return &Ledger{Records: map[uint64]*Record{}} }

// Restful reports whether the position after the newest entry is a resting point:
// one where every attempt that has done something can be replayed.
func (l *Ledger) Restful() bool { return l.short == 0 }

func (l *Ledger) remove(inv uint64) {
	if o := l.Records[inv]; o != nil && o.short {
		l.short--
	}
	delete(l.Records, inv)
}

// Follow takes an entry that the session has just folded, and its commands.
func (l *Ledger) Follow(eng *engine.Session, e *engine.Entry, cmds []engine.Command) {
	if e.Snapshot != nil {
		l.Adopt(e)
		return
	}
	if e.OfAttempt() {
		l.attempt(e)
	}
	l.Add(e.Held)
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.Abandon:
			// A blocked run may be resumed later, and its attempts continue by their records
			// then.
			if _, resumable := eng.Invocation(c.Invocation); e.Kind != engine.EntryBlock || !resumable {
				l.remove(c.Invocation)
			}
		case engine.RunEnded:
			l.prune(eng)
		}
	}
}

// prune forgets invocations that ended with their run while they waited for a worker: no
// command abandons them.
func (l *Ledger) prune(eng *engine.Session) {
	for inv := range l.Records {
		if _, ok := eng.Invocation(inv); !ok {
			l.remove(inv)
		}
	}
}

// Adopt takes what stands with a snapshot: it is all that there is.
func (l *Ledger) Adopt(e *engine.Entry) {
	*l = *NewLedger()
	l.Add(e.Held)
}

// Add takes records of attempts that continue.
func (l *Ledger) Add(held []engine.HeldAttempt) {
	for i := range held {
		// A record without calls or an opening says nothing that a new attempt would not do.
		if h := &held[i]; h.Open != nil || len(h.Calls) > 0 {
			l.Records[h.Invocation] = &Record{Attempt: h.Attempt, Open: h.Open, Calls: slices.Clip(h.Calls), Spending: restored(h.Burnt)}
		}
	}
}

// Copies gives the records for others, who may add to them.
func (l *Ledger) Copies() map[uint64]*Record {
	out := make(map[uint64]*Record, len(l.Records))
	for inv, o := range l.Records {
		// Appending to the clipped calls makes a copy, so the ledger's own record stays
		// unchanged.
		out[inv] = &Record{Attempt: o.Attempt, Open: o.Open, Calls: slices.Clip(o.Calls), Spending: o.Spending}
	}
	return out
}

// attempt adds what an attempt's entry has of its record.
func (l *Ledger) attempt(e *engine.Entry) {
	if e.Finish != nil {
		l.remove(e.Invocation)
		return
	}
	o := l.Records[e.Invocation]
	// A new attempt begins without the record of the attempt before.
	if o == nil || o.Attempt != e.Attempt {
		l.remove(e.Invocation)
		o = &Record{Attempt: e.Attempt}
		l.Records[e.Invocation] = o
	}
	if e.Open != nil {
		o.Open = e.Open
	}
	o.Calls = append(o.Calls, e.Calls...)
	if b, ok := e.Spending(); ok {
		o.Spending = restored(&b)
	}
	// The entry says how many calls the guest had made, and the record has fewer of them.
	if !o.short && uint64(len(o.Calls)) < e.Replayed() {
		o.short = true
		l.short++
	}
}
