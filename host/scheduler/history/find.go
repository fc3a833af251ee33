package history

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// finder looks for a position at which a run can be forked.
type finder struct {
	run    string
	at     uint64
	met    bool // the position is there
	rests  bool // a fork can begin at it
	active bool // the run was active at it, or before
}

// See implements Onlooker.
func (f *finder) See(_ *Past, e *engine.Entry) bool { return e.Seq <= f.at }

// Seen implements Onlooker.
func (f *finder) Seen(p *Past, e *engine.Entry, _ []engine.Command) error {
	begun := p.Engine.Begun(f.run)
	f.met, f.active = e.Seq == f.at, f.active || begun
	// A fork needs a run that has begun, and attempts that can all be replayed.
	f.rests = f.met && begun && p.Ledger.Restful()
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
	case f.rests:
		return p, nil
	case !f.active:
		return nil, host.Errorf(host.CodeInvalidArgument, "The run was not active at entry %d, nor shortly before", at)
	}
	why := "The run had ended at entry %d"
	if p.Engine.Begun(runID) {
		why = "Entry %d is within what was written as one: no fork can begin there"
	}
	near, err := r.nearest(ctx, host.TimelineQuery{Tenant: key.Tenant, ID: runID, Limit: host.MaxTimeline, Cut: 1}, at)
	if err != nil {
		return nil, err
	}
	refusal := host.Errorf(host.CodeConflict, why, at)
	refusal.Nearest = &near
	if near.Before != 0 {
		refusal.Message += fmt.Sprintf(": the nearest entry before where a fork can begin is %d", near.Before)
	}
	if near.After != 0 {
		refusal.Message += fmt.Sprintf("; the nearest one after it is %d", near.After)
	}
	return nil, refusal
}

// nearest finds the entries of a run next to a position where a fork can begin, among the
// [host.MaxTimeline] before it and after it.
func (r *Reader) nearest(ctx context.Context, q host.TimelineQuery, at uint64) (near host.Nearest, err error) {
	for _, side := range []struct {
		after, before uint64
		found         *uint64
	}{{before: at, found: &near.Before}, {after: at, found: &near.After}} {
		q.After, q.Before, q.Newest = side.after, side.before, side.before != 0
		t, err := r.Timeline(ctx, q)
		if err != nil {
			return near, err
		}
		if i := slices.IndexFunc(t.Entries, func(e host.TimelineEntry) bool { return e.Forkable }); i >= 0 {
			*side.found = t.Entries[i].Seq
		}
	}
	return near, nil
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
