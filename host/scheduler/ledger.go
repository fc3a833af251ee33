package scheduler

import (
	"slices"

	"github.com/weftrun/weft/host/engine"
)

// opened is what is written of an attempt that has not ended: what a replay of it
// needs.
type opened struct {
	attempt uint64
	open    *engine.AttemptOpen
	record  []engine.CallRecord
	// short: an entry of the attempt was written without its part of the record,
	// as its finish followed in the same batch. Until then nobody can replay it.
	short bool
	spending
	// unserved is the time without a core that has moved no timeout yet.
	unserved int64
}

// spent gives what was burnt, for a HeldAttempt.
func (o *opened) spent() *engine.Burnt {
	if o.burnt == (engine.Burnt{}) {
		return nil
	}
	b := o.burnt
	return &b
}

// restored is the spending of an attempt of which so much is written.
func restored(b *engine.Burnt) (p spending) {
	if b != nil {
		p.burnt, p.billed = *b, b.Billed()
	}
	return p
}

// ledger gathers the records of attempts that have not ended, from the entries of
// a session in their order.
type ledger struct {
	records map[uint64]*opened // by invocation
	short   int                // of them
}

func newLedger() *ledger { return &ledger{records: map[uint64]*opened{}} }

// restful reports whether the position after the newest entry is a resting point:
// one where every attempt that has done something can be replayed.
func (l *ledger) restful() bool { return l.short == 0 }

func (l *ledger) remove(inv uint64) {
	if o := l.records[inv]; o != nil && o.short {
		l.short--
	}
	delete(l.records, inv)
}

// follow takes an entry that the session has just folded, and its commands.
func (l *ledger) follow(eng *engine.Session, e *engine.Entry, cmds []engine.Command) {
	if e.Snapshot != nil {
		l.adopt(e)
		return
	}
	if e.OfAttempt() {
		l.attempt(e)
	}
	l.add(e.Held)
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.Abandon:
			if _, resumable := eng.Invocation(c.Invocation); e.Kind != engine.EntryBlock || !resumable {
				l.remove(c.Invocation)
			}
		case engine.RunEnded:
			l.prune(eng)
		}
	}
}

// prune lets go of invocations that ended with their run while they waited for a
// worker: nobody was told to abandon them.
func (l *ledger) prune(eng *engine.Session) {
	for inv := range l.records {
		if _, ok := eng.Invocation(inv); !ok {
			l.remove(inv)
		}
	}
}

// adopt takes what stands with a snapshot: it is all that there is.
func (l *ledger) adopt(e *engine.Entry) {
	*l = *newLedger()
	l.add(e.Held)
}

// add takes records of attempts that go on.
func (l *ledger) add(held []engine.HeldAttempt) {
	for i := range held {
		if h := &held[i]; h.Open != nil || len(h.Calls) > 0 {
			l.records[h.Invocation] = &opened{attempt: h.Attempt, open: h.Open, record: slices.Clip(h.Calls), spending: restored(h.Burnt)}
		}
	}
}

// copies gives the records for others, who may add to them.
func (l *ledger) copies() map[uint64]*opened {
	out := make(map[uint64]*opened, len(l.records))
	for inv, o := range l.records {
		out[inv] = &opened{attempt: o.attempt, open: o.open, record: slices.Clip(o.record), spending: o.spending}
	}
	return out
}

// attempt adds what an attempt's entry has of its record.
func (l *ledger) attempt(e *engine.Entry) {
	o := l.records[e.Invocation]
	if o == nil || o.attempt != e.Attempt {
		l.remove(e.Invocation)
		o = &opened{attempt: e.Attempt}
		l.records[e.Invocation] = o
	}
	if e.Open != nil {
		o.open = e.Open
	}
	o.record = append(o.record, e.Calls...)
	if b, ok := e.Spending(); ok {
		o.spending = restored(&b)
	}
	if e.Finish != nil {
		l.remove(e.Invocation)
		return
	}
	if !o.short && uint64(len(o.record)) < e.Replayed() {
		o.short = true
		l.short++
	}
}
