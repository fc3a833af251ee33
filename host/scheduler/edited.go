package scheduler

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/edits"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/state"
)

// edited is the session of an edit as package edits sees it, and the result of the edit.
type edited struct {
	t       *table
	repeats []host.Repeat
	*session

	root    *state.Node // the state after the edit
	pos     uint64      // of the edit's entry, or of the newest entry if the edit changed nothing; 0: it was refused
	created bool
}

// Pin implements requests.Edited.
func (d *edited) Pin(ctx context.Context, key host.SessionKey, create bool) (_ edits.Session, err error) {
	d.session, err = d.t.acquire(ctx, key, create)
	return d, err
}

// State implements edits.Session.
func (d *edited) State() *state.Node { return d.state.Load() }

// Ran implements edits.Session.
func (d *edited) Ran() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.eng.RanVersions()
}

// View implements edits.Session.
func (d *edited) View(e *edits.Edit) (v edits.View, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v = edits.View{Fresh: d.eng.Seq() == 0, State: d.eng.State()}
	if d.dead {
		return v, refusal.ErrGone
	}
	if err = e.Takes(v.Fresh); err == nil {
		v.Keep, err = d.eng.KeptSchemas()
	}
	return v, err
}

// Make implements edits.Session.
func (d *edited) Make(e *edits.Edit) (free <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, refusal.ErrGone
	}
	fresh := d.eng.Seq() == 0
	if err := e.Takes(fresh); err != nil {
		return nil, err
	}
	if free := d.tickets.Await(e.Paths()); free != nil {
		return free, nil
	}
	_, pos, err := d.tick(e.Tick(fresh), extras{repeats: d.repeats})
	if err != nil {
		return nil, err
	}
	d.pos, d.root, d.created = pos, d.eng.State(), fresh
	return nil, nil
}

// Release implements edits.Session.
func (d *edited) Release() { d.release() }

// Result implements requests.Edited.
func (d *edited) Result() (root *state.Node, pos uint64, created bool) {
	return d.root, d.pos, d.created
}
