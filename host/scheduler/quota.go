package scheduler

import (
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/usage"
)

// runs counts those of the session. The caller holds mu.
func (ss *session) runs() runs {
	waiting := ss.eng.Waiting()
	return runs{active: ss.eng.Active() - waiting, waiting: waiting}
}

// place takes the place of a run that the next tick begins. giveBack gives the place back if
// that tick is refused. The caller of both holds mu.
func (ss *session) place(waits bool) (places runs, err error) {
	if err := ss.s.cfg.Quotas.Begin(ss.key.Tenant, waits); err != nil {
		return runs{}, err
	}
	if waits {
		return runs{waiting: 1}, nil
	}
	return runs{active: 1}, nil
}

func (ss *session) giveBack(places runs) {
	if places != (runs{}) {
		ss.s.cfg.Quotas.Runs(ss.key.Tenant, -places.active, -places.waiting)
	}
}

// countRuns reports to the quota how a tick has changed the number of the session's runs,
// without the places that were taken before. The caller holds mu.
func (ss *session) countRuns(before, places runs) {
	now := ss.runs()
	active, waiting := now.active-before.active-places.active, now.waiting-before.waiting-places.waiting
	if active != 0 || waiting != 0 {
		ss.s.cfg.Quotas.Runs(ss.key.Tenant, active, waiting)
	}
}

// spend notes in an entry of the attempt what it has burnt, and gives what is billed with
// the entry. The caller holds ss.mu, before the entry is journaled.
func (at *attempt) spend(e *engine.Entry, now engine.Burnt) (fuel uint64) {
	if said, ok := e.Spending(); !ok && now != (engine.Burnt{}) || ok && said != now {
		e.Burnt = &now
	}
	return at.Bill(now)
}

// burntNow returns the units that the attempt has burnt up to its current host call.
func (at *attempt) burntNow() engine.Burnt {
	if at.tok == nil {
		return at.Burnt
	}
	return at.Burnt.With(at.tok.burnt)
}

// settle bills the units that an attempt has burnt and that no later entry of the attempt
// will bill. The bill is written without an entry. The caller holds mu.
func (ss *session) settle(p *history.Spending) {
	fuel := p.Bill(p.Burnt)
	if fuel == 0 {
		return
	}
	it := host.JournalItem{Key: ss.key, At: ss.s.now(), Spent: usage.Spent{Fuel: fuel}, Size: 64}
	ss.s.cfg.Quotas.Spend(ss.key.Tenant, it.At, it.Spent)
	ss.s.cfg.Journal.Append(ss.s.cfg.Now(), it)
}

// settleSuspended does the same for a suspended attempt, unless it continues later.
func (ss *session) settleSuspended(inv uint64) {
	o := ss.suspended[inv]
	if o == nil {
		return
	}
	// If it continues, a later entry bills it.
	if _, goesOn := ss.eng.Invocation(inv); !goesOn {
		ss.settle(&o.Spending)
	}
}

// account tells what an item has used up and how large the state is with it. The caller
// holds mu.
func (ss *session) account(it *host.JournalItem, e *engine.Entry, fuel uint64) {
	it.Spent = usage.Spent{Runs: uint64(len(it.Started)), Fuel: fuel}
	for i := range e.Logs {
		it.Spent.LogBytes += uint64(len(e.Logs[i].Message) + len(e.Logs[i].Attrs))
	}
	it.StateBytes = int64(ss.eng.State().Bytes())
	it.StateGrowth, ss.stateBytes = it.StateBytes-ss.stateBytes, it.StateBytes
	if it.Spent != (usage.Spent{}) {
		ss.s.cfg.Quotas.Spend(ss.key.Tenant, it.At, it.Spent)
	}
}
