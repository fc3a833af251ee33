package engine

import (
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// ErrMoved refuses a change that was prepared on a state that the session no longer has.
// The caller must prepare the change again.
var ErrMoved = errors.New("the state has changed since the change was prepared")

// Prepared is an edit or a commit that was worked out before its tick, so that the
// session is not blocked meanwhile. It is immutable.
type Prepared struct {
	base, root *state.Node // the state before and after the change
	results    []abi.Raw
	changes    []state.Change
	encoded    []byte
	kept       []*Graph // the graphs whose schemas were checked, of an edit from outside
}

// Root returns the state after the change.
func (p *Prepared) Root() *state.Node { return p.root }

// Changes returns the changes; none if the state already is as the edit wants it.
func (p *Prepared) Changes() []state.Change { return p.changes }

// Prepare works out an [EditState] or a [CommitState] on a state, for a run of the graph
// with the limits. It needs no session, and the meter may block.
//
// # Errors
//
// An [*abi.Error] for mistakes of the guest; the error of the meter.
func Prepare(m *work.Meter, g *Graph, limits host.Limits, root *state.Node, req Request) (*Prepared, error) {
	p := &Prepared{base: root}
	var err error
	switch req := req.(type) {
	case EditState:
		p.root, p.results, p.changes, err = state.ApplyOn(m, root, req.Edits, g.defaults)
	case CommitState:
		p.root, p.changes, err = state.ReplaceOn(m, root, req.Path, req.Value)
	}
	if err == nil && len(p.changes) > 0 {
		err = g.schema.CheckOn(m, p.root, p.changes)
	}
	// The meter's own error comes first: the work was cut off, so err says nothing.
	if ended := m.Err(); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, stateRefusal(err)
	}
	// A state that is over the limit may still shrink.
	if n, most := p.root.Bytes(), limits.StateBytes; len(p.changes) > 0 && n > most && n > root.Bytes() {
		return nil, refusal("limit_exceeded", "the state would have %d bytes, more than %d", n, most)
	}
	return p, nil
}

// Encode encodes the changes for the journal, as a part of preparing the change.
func (p *Prepared) Encode(m *work.Meter) error {
	if len(p.changes) > 0 && p.encoded == nil {
		p.encoded = state.EncodeChangesOn(m, p.changes)
	}
	return m.Err()
}

// WithPrepared adds prepared work to an edit or a commit. Other requests are returned
// unchanged.
func WithPrepared(req Request, p *Prepared) Request {
	switch r := req.(type) {
	case EditState:
		r.Prepared = p
		return r
	case CommitState:
		r.Prepared = p
		return r
	}
	return req
}

// preparedOn returns the outcome of a writing request on a state: the prepared outcome,
// or one worked out now.
func (inv *invocation) preparedOn(own *work.Meter, root *state.Node, req Request, p *Prepared) (*Prepared, error) {
	if p == nil {
		return Prepare(own, inv.run.graph, inv.run.limits, root, req)
	}
	if p.base != root {
		return nil, ErrMoved
	}
	return p, nil
}

// decideWritten makes the entry of an edit or a commit, if there are changes.
func (s *Session) decideWritten(e *Entry, inv *invocation, req Request, p *Prepared) (decision, error) {
	p, err := inv.preparedOn(&s.own, s.root, req, p)
	if err != nil {
		return decision{}, err
	}
	d := decision{response: Response{Results: p.results}}
	if len(p.changes) == 0 {
		return d, nil
	}
	if err := p.Encode(&s.own); err != nil {
		return decision{}, err
	}
	e.Kind, e.Changes = EntryEdit, p.encoded
	d.entry, d.root = e, p.root
	return d, nil
}
