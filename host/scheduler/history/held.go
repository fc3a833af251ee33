package history

import (
	"maps"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// Held gives the records of the attempts that have not ended, by invocation.
func (l *Ledger) Held() []engine.HeldAttempt {
	out := make([]engine.HeldAttempt, 0, len(l.Records))
	// The order is fixed, so that the same session gives the same snapshot.
	for _, inv := range slices.Sorted(maps.Keys(l.Records)) {
		out = append(out, l.Records[inv].Held(inv))
	}
	return out
}

// HeldByRun are records of attempts, by the run that they are of.
type HeldByRun map[string][]engine.HeldAttempt

// HeldByRun gives the records of the attempts that have not ended.
func (p *Past) HeldByRun() HeldByRun {
	out := HeldByRun{}
	for inv, o := range p.Ledger.Records {
		// An older attempt of the invocation has ended, whatever is left of its record.
		if view, ok := p.Engine.Invocation(inv); ok && view.Attempt == o.Attempt {
			out[view.RunID] = append(out[view.RunID], o.Held(inv))
		}
	}
	return out
}

// Of returns the records of the runs that continue. Each keeps the ids under which the
// run began, because its guest has seen them.
func (h HeldByRun) Of(runs []engine.ForkedRun, session string) []engine.HeldAttempt {
	var out []engine.HeldAttempt
	for _, r := range runs {
		for _, held := range h[r.Was] {
			if held.Open != nil && held.Open.RunID == "" {
				// The record of the original run keeps its ids: the change is made on a copy.
				open := *held.Open
				open.RunID, open.SessionID = r.Was, session
				held.Open = &open
			}
			out = append(out, held)
		}
	}
	slices.SortFunc(out, func(a, b engine.HeldAttempt) int { return int(a.Invocation) - int(b.Invocation) })
	return out
}

// Part is an attempt that continues with another version: its record is played to a
// guest of that version, and the pending call must come after the record.
type Part struct {
	Key     host.SessionKey
	View    engine.Invocation
	Open    engine.AttemptOpen
	Calls   []engine.CallRecord
	Pending *engine.Pending // nil: none
}

// Cast returns the attempts of a run that continue, without the attempt of the invocation
// except (0: all of them).
func Cast(key host.SessionKey, eng *engine.Session, l *Ledger, runID string, except uint64) []Part {
	var out []Part
	for _, inv := range slices.Sorted(maps.Keys(l.Records)) {
		o := l.Records[inv]
		view, ok := eng.Invocation(inv)
		if !ok || view.RunID != runID || view.Attempt != o.Attempt || inv == except || o.Open == nil {
			continue
		}
		p := Part{Key: key, View: view, Open: *o.Open, Calls: slices.Clip(o.Calls)}
		// An older server may have known fewer limits.
		p.Open.Limits = p.Open.Limits.Complete()
		if call, waits := eng.Pending(inv); waits {
			p.Pending = &call
		}
		out = append(out, p)
	}
	return out
}
