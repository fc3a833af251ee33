package history

import (
	"context"
	"math"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// finder looks for a position, and for the last one before it where a run can be
// forked.
type finder struct {
	run     string
	at      uint64
	nearest uint64
	met     bool // the position is there
}

// See implements Onlooker.
func (f *finder) See(_ *Past, e *engine.Entry) bool { return e.Seq <= f.at }

// Seen implements Onlooker.
func (f *finder) Seen(p *Past, e *engine.Entry, _ []engine.Command) error {
	f.met = e.Seq == f.at
	// A fork needs a run that has begun, and attempts that can all be replayed.
	if p.Engine.Begun(f.run) && p.Ledger.Restful() {
		f.nearest = e.Seq
	}
	return nil
}

// At folds a session up to a position at which a run can be forked; see Fork of
// [host.Runs] for the errors.
func (r *Reader) At(ctx context.Context, key host.SessionKey, runID string, at uint64) (*Past, error) {
	p, f := r.Past(key), &finder{run: runID, at: at}
	if err := p.Walk(ctx, at, f); err != nil {
		return nil, err
	}
	switch {
	case p.First > at && at != 0:
		return nil, CutAway(p.First)
	case !f.met:
		return nil, noEntry(at)
	// The walk has stopped at the position, so the past is the session as it was there.
	case f.nearest == at:
		return p, nil
	case f.nearest != 0 && p.Engine.Begun(runID):
		return nil, host.Errorf(host.CodeConflict, "Entry %d is within what was written as one: no fork can begin there, the nearest entry before where one can is %d", at, f.nearest)
	case f.nearest != 0:
		return nil, host.Errorf(host.CodeConflict, "The run had ended at entry %d: the nearest entry before where a fork can begin is %d", at, f.nearest)
	}
	return nil, host.Errorf(host.CodeInvalidArgument, "The run was not active at entry %d, nor shortly before", at)
}

// noEntry is the error for a position that the journal does not have.
func noEntry(at uint64) error {
	return host.Errorf(host.CodeInvalidArgument, "The journal has no entry %d", at)
}

// RootAt returns the state of a run's session just after the entry at a position; see
// [host.Runs] for the errors.
func (r *Reader) RootAt(ctx context.Context, tenant, id string, at uint64) (*state.Node, error) {
	run, err := r.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if at == 0 || at > math.MaxInt64 {
		return nil, noEntry(at)
	}
	p := r.Past(host.SessionKey{Tenant: tenant, Session: run.SessionID})
	switch err := p.Walk(ctx, at, until(at+1)); {
	case err != nil:
		return nil, err
	case p.First > at:
		return nil, CutAway(p.First)
	case p.Engine.Seq() != at:
		return nil, noEntry(at)
	}
	return p.Engine.State(), nil
}

// Failure is the entry by which a run began to end.
type Failure struct {
	At         uint64 // its position; 0: there is none
	Invocation uint64 // that failed; 0: none did

	run   string
	begun bool
}

// See implements Onlooker.
func (f *Failure) See(*Past, *engine.Entry) bool { return f.At == 0 }

// Seen implements Onlooker.
func (f *Failure) Seen(p *Past, e *engine.Entry, _ []engine.Command) error {
	goesOn := p.Engine.Begun(f.run) && !p.Engine.Ending(f.run)
	switch {
	case goesOn:
		f.begun = true
	// The first entry after which the run does not continue is the entry that failed it.
	case f.begun:
		f.At, f.Invocation = e.Seq, e.Invocation
	}
	return nil
}

// FailureOf finds how a run failed. CodeGone: the journal has been cut behind the failure.
// CodeConflict: the run failed before it began.
func (r *Reader) FailureOf(ctx context.Context, key host.SessionKey, runID string) (*Failure, error) {
	p, f := r.Past(key), &Failure{run: runID}
	err := p.Walk(ctx, 1, f)
	switch {
	case err != nil:
		return nil, err
	case f.At == 0 && p.First > 1:
		return nil, CutAway(p.First)
	case f.At == 0:
		return nil, host.Errorf(host.CodeConflict, "The run failed before it began: start another")
	}
	return f, nil
}

// until folds the entries before a position.
type until uint64

// See implements Onlooker.
func (u until) See(_ *Past, e *engine.Entry) bool { return e.Seq < uint64(u) }

// Seen implements Onlooker.
func (u until) Seen(*Past, *engine.Entry, []engine.Command) error { return nil }

// Before folds a session up to the entry before a position.
func (r *Reader) Before(ctx context.Context, key host.SessionKey, position uint64) (*Past, error) {
	p := r.Past(key)
	return p, p.Walk(ctx, position-1, until(position))
}
