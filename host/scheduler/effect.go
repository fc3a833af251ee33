package scheduler

import (
	"errors"
	"log/slog"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// maxMoved is how often a change of the state is prepared for nothing before the
// attempt has the state to itself.
const maxMoved = 3

// Try works out a call of an atomic step; see hostcall.Live.
func (l live) Try(m *work.Meter, root *state.Node, req engine.Request) (engine.Tried, error) {
	at, ss := l.at, l.at.ss
	p, err := l.prepare(m, root, req)
	if err != nil {
		return engine.Tried{}, err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if at.abandoned || ss.dead {
		return engine.Tried{}, engine.ErrStale
	}
	t, err := ss.eng.Try(at.inv, at.view.Attempt, root, engine.WithPrepared(req, p))
	if t.Response.Warning != "" {
		at.log([]engine.LogRecord{{Level: int64(slog.LevelWarn), Message: t.Response.Warning}})
	}
	return t, err
}

// Effect makes an effect of the attempt; see hostcall.Live. What is long is done before
// the session's mutex is taken, on the state of that time. If that is another by then,
// it is done again: on the tenant's clock, and not on the guest's bill, which does not
// depend on others.
func (l live) Effect(m *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error {
	before := m.Spent()
	for moved := 0; ; moved++ {
		p, err := l.prepare(m, l.State(), req)
		if err == nil && p != nil {
			err = p.Encode(m)
		}
		if err != nil {
			l.End() // the write is refused
			return err
		}
		// A little work is done under the mutex once it has lost: there it cannot lose again.
		if moved > 0 && m.Spent()-before <= work.Look {
			p = nil
		}
		if err = l.resolved(m, n, engine.WithPrepared(req, p), attach); !errors.Is(err, engine.ErrMoved) {
			return err
		}
		m, before = m.Anew(), 0
		// It has lost often enough: with the write ticket of the whole state nobody else
		// changes it meanwhile.
		if moved+1 == maxMoved {
			if _, _, err := l.Begin(nil, true); err != nil {
				return err
			}
		}
	}
}

// prepare works out an edit or a commit on a state; nil for other requests.
func (l live) prepare(m *work.Meter, root *state.Node, req engine.Request) (*engine.Prepared, error) {
	switch req := req.(type) {
	case engine.EditState:
	case engine.CommitState:
		// The value has changed since the guest read it: the commit loses, whatever it says.
		// For an atomic step the root is what it reads on, and its finish decides.
		if now, _ := state.Get(root, req.Path); now != req.Base && !l.Atomic() {
			return nil, engine.ErrConflict
		}
	default:
		return nil, nil
	}
	mod, err := l.at.ss.s.cfg.Modules.ByDigest(l.at.view.Version)
	if err != nil {
		return nil, err
	}
	return engine.Prepare(m, mod.Graph, l.at.view.Limits, root, req)
}

// resolved makes an effect, and finds out what the reducer has to know for it.
func (l live) resolved(m *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error {
	// The reducer asks for what it cannot know, once, and has changed nothing by then.
	err := l.effect(n, req, attach)
	if !errors.Is(err, engine.ErrUnresolved) {
		return err
	}
	switch ask := req.(type) {
	case engine.RunWorkflow:
		// Until the entry is in the journal's queue, the child's version must stay.
		defer l.at.ss.s.cfg.Modules.Starting()()
		ask.Start, err = l.at.resolve(m, ask)
		req = ask
	case engine.CallResource:
		ask.Mode, err = l.at.granted(ask.Resource, ask.Method)
		req = ask
	}
	if err != nil {
		return err
	}
	return l.effect(n, req, attach)
}
