package hostcall

import (
	"time"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// stage is what an atomic step has done and seen in one run of its guest.
type stage struct {
	base *state.Node // the snapshot
	root *state.Node // the snapshot with the step's own edits
	done engine.Stage
	// alone is set when the step holds the write ticket of the whole state, because it
	// lost too often. Its limits are those of an open edit.
	alone *region
}

func (s *stage) region() *region {
	if s == nil {
		return nil
	}
	return s.alone
}

// Stage returns what an atomic step has done, for the tick that finishes it. It is nil
// for other steps, and for an atomic step that made no call.
func (a *Attempt) Stage() *engine.Stage {
	if a.stage == nil {
		return nil
	}
	return &a.stage.done
}

// Lost records that the state has changed since the atomic step began. The step must run
// again.
func (a *Attempt) Lost() { a.losses++ }

// checkStage takes the snapshot at the first call. It also enforces the limits of a step
// that holds the ticket of the whole state.
func (a *Attempt) checkStage() error {
	if a.stage == nil {
		s := &stage{}
		if a.losses >= ticketAfter {
			if _, _, err := a.live.Begin(nil, true); err != nil {
				return err
			}
			s.alone = &region{begin: a.n, start: a.live.Now()}
		}
		s.base = a.live.State()
		s.root = s.base
		a.stage = s
	}
	if a.stage.alone != nil {
		return a.burnAlone(0)
	}
	return nil
}

func (a *Attempt) burnAlone(units uint64) error {
	r := a.stage.alone
	r.fuel += units
	took := time.Duration(a.live.Now() - r.start)
	switch l := a.open.Limits; {
	case r.fuel > l.RegionFuel:
		return limitf("an atomic step that had lost %d times burnt %d units with the state to itself, more than %d (limit region_fuel)", a.losses, r.fuel, l.RegionFuel)
	case a.n-r.begin > uint64(l.RegionCalls):
		return limitf("an atomic step that had lost %d times made %d host calls with the state to itself, more than %d (limit region_calls)", a.losses, a.n-r.begin, l.RegionCalls)
	case took > l.RegionTime:
		return limitf("an atomic step that had lost %d times had the state to itself for %s, longer than %s (limit region_time)", a.losses, took.Round(time.Millisecond), l.RegionTime)
	}
	return nil
}

// read returns the value at a path as the step sees it.
func (a *Attempt) read(p state.Path) (*state.Node, bool) {
	if a.stage == nil {
		return state.Get(a.live.State(), p)
	}
	a.stage.see(p)
	return state.Get(a.stage.root, p)
}

// see records that the step depends on the snapshot's value at a path.
func (s *stage) see(p state.Path) {
	n, _ := state.Get(s.base, p)
	s.done.Seen = append(s.done.Seen, engine.Seen{Path: p, Node: n})
}

// try makes a call of an atomic step.
func (a *Attempt) try(req []byte, r engine.Request, encode func(engine.Response) ([]byte, error)) ([]byte, error) {
	t, err := a.live.Try(a.meter, a.stage.root, r)
	if ended := a.meter.Err(); ended != nil {
		return nil, ended
	}
	a.stage.seeEdits(r, err != nil)
	if err != nil {
		return nil, err
	}
	if t.Effect {
		s := a.stage
		s.root = t.After
		s.done.Effects, s.done.Changes = append(s.done.Effects, r), append(s.done.Changes, t.Changes...)
		s.done.Base, s.done.Root = s.base, s.root
		if a.bytes += len(req); a.bytes > a.open.Limits.RecordBytes {
			return nil, limitf("the edits and events of an atomic step exceed %d bytes (limit record_bytes)", a.open.Limits.RecordBytes)
		}
	}
	return encode(t.Response)
}

// seeEdits records the paths that a request edits. A failed request tells the step
// something too, perhaps about a value above the path.
func (s *stage) seeEdits(r engine.Request, failed bool) {
	see := func(p state.Path) {
		if failed && len(p) > 1 {
			p = p[:1]
		}
		s.see(p)
	}
	switch r := r.(type) {
	case engine.CommitState:
		see(r.Path)
	case engine.EditState:
		for i := range r.Edits {
			if p, err := state.Touches(r.Edits[i]); err == nil { // else the edit fails on every state
				see(p)
			}
		}
	}
}
