package engine

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// The effects of an atomic step take place together when the step succeeds, as a part of
// the entry that finishes the attempt, or not at all. Until then the caller that answers
// the guest keeps them. The step reads one snapshot of the state, with its own edits on
// top. When the step finishes, every value that it read or edited must still be as in the
// snapshot. Its edits are then made again on the present state, with the same result.

// Stage is what an atomic step has done.
type Stage struct {
	// Seen lists the values of the snapshot that the step read or edited. A path may
	// occur more than once.
	Seen []Seen
	// Effects are the step's edits, sends and stream writes, in order: EditState,
	// CommitState, SendEvent and WriteStream.
	Effects []Request
	// Base is the snapshot, and Root the state after the step's own edits. Changes leads
	// from Base to Root. If Base is nil, the edits are always made again.
	Base, Root *state.Node
	Changes    []state.Change
}

// Tried is the outcome of a call of an atomic step.
type Tried struct {
	Response Response
	After    *state.Node    // the state after the call
	Changes  []state.Change // from the state before the call to After
	Effect   bool           // the call has an effect that must be kept
}

// Seen is a value of a snapshot. A nil Node: the path had no value.
type Seen struct {
	Path state.Path
	Node *state.Node
}

// Try works out a call of an atomic step on root, the state that the step sees. Try does
// not change the session.
//
// # Errors
//
// [ErrStale], and [*abi.Error] for the guest's mistakes.
func (s *Session) Try(invocation, attempt uint64, root *state.Node, req Request) (Tried, error) {
	s.own = *work.New(mostOwn, nil)
	inv, err := s.openAttempt(invocation, attempt)
	if err != nil {
		return Tried{}, err
	}
	switch req := req.(type) {
	case EditState:
		return inv.tryWrite(&s.own, root, req, req.Prepared)
	case CommitState:
		return inv.tryWrite(&s.own, root, req, req.Prepared)
	case SendEvent:
		return Tried{After: root, Effect: true}, inv.step.checkSend(inv.run.graph, req.Event.Type, inv.addressed(req.Step))
	case WriteStream:
		warning, err := inv.checkWrite(req.Event.Type)
		return Tried{Response: Response{Warning: warning}, After: root, Effect: warning == ""}, err
	}
	// A suspended guest would need a record to replay, and an atomic step has none.
	return Tried{}, refusal(abi.StatusFailedPrecondition.Code(),
		"step %s is atomic: it may edit the state, send events and write to the stream, and neither wait, sleep, collect events, run workflows nor call resources", inv.step.name)
}

// tryWrite implements Try for an edit or a commit.
func (inv *invocation) tryWrite(own *work.Meter, root *state.Node, req Request, p *Prepared) (Tried, error) {
	p, err := inv.preparedOn(own, root, req, p)
	if err != nil {
		return Tried{}, err
	}
	return Tried{Response: Response{Results: p.results}, After: p.root, Changes: p.changes, Effect: true}, nil
}

// decideStage turns the effects of an atomic step into parts of the entry that finishes
// the step, and returns the state after the entry. It returns ErrConflict if the state is
// not as the step saw it.
func (s *Session) decideStage(e *Entry, inv *invocation, stage *Stage) (*state.Node, error) {
	// Nodes are immutable: an equal pointer is an unchanged value, an absent value
	// included.
	for i := range stage.Seen {
		s.visited++
		if now, _ := state.Get(s.root, stage.Seen[i].Path); now != stage.Seen[i].Node {
			return nil, ErrConflict
		}
	}
	root := s.root
	var all []state.Change
	same := stage.Base == s.root // then the edits have the same result as before
	if same {
		root, all = stage.Root, stage.Changes
	}
	for _, effect := range stage.Effects {
		s.visited++
		switch req := effect.(type) {
		case EditState, CommitState:
			if same {
				continue
			}
			p, err := inv.preparedOn(&s.own, root, req, nil)
			if err != nil { // a part of the state that the step did not read now forbids the edit
				return nil, ErrConflict // what it did not see has changed so that it may not
			}
			root, all = p.root, append(all, p.changes...)
		case SendEvent:
			e.Finish.Staged = append(e.Finish.Staged, StagedPart{Event: inv.correlatedOne(req.Event), Step: inv.addressed(req.Step)})
		case WriteStream:
			e.Finish.Staged = append(e.Finish.Staged, StagedPart{Event: sanitized(req.Event), Stream: true})
		}
	}
	if len(all) > 0 {
		e.Changes = state.EncodeChanges(all)
	}
	return root, nil
}

// sent lists what a step is about to send and to return, in order. A nil stage belongs to
// a step that is not atomic.
func (stage *Stage) sent(inv *invocation, returned parcel) []parcel {
	var out []parcel
	if stage != nil {
		for _, effect := range stage.Effects {
			if send, ok := effect.(SendEvent); ok {
				out = append(out, parcel{[]abi.Event{inv.correlatedOne(send.Event)}, inv.addressed(send.Step), inv.in.leadsTo})
			}
		}
	}
	return append(out, returned)
}

// foldStaged performs the sends and stream writes of an atomic step. It returns false if
// they end the run.
func (s *Session) foldStaged(e *Entry, inv *invocation) (bool, error) {
	r := inv.run
	for i := range e.Finish.Staged {
		p := &e.Finish.Staged[i]
		if !r.graph.knows(p.Event.Type) {
			return false, corrupt(e, "it has no event of a known type")
		}
		on := s.sent
		if p.Stream {
			on = s.written
		}
		if !on(inv, p.Event, p.Step) {
			return false, nil
		}
	}
	return true, nil
}

// sent routes an event that a step sent. It returns false if the event ends the run.
func (s *Session) sent(inv *invocation, ev abi.Event, step string) bool {
	r := inv.run
	asks := r.kind(ev) == abi.KindInputRequired
	// Clients must see a question before steps react to it.
	if !s.admit(inv, 1) || asks && !s.published(inv, ev) {
		return false
	}
	s.route(r, emission{event: ev, in: inv.in, lineage: inv.lineage, step: step, shown: asks})
	return true
}

// written puts an event that a step wrote on the stream. It returns false if the event
// ends the run.
func (s *Session) written(inv *invocation, ev abi.Event, _ string) bool { return s.published(inv, ev) }

// checkWrite reports whether the step may write an event of the type to the stream. With
// a warning the event is left out, and the call succeeds.
func (inv *invocation) checkWrite(typ string) (warning string, err error) {
	kind, known := inv.run.graph.Kind(typ)
	switch {
	case IsRuntimeType(typ):
		return "", refuseRuntimeType(typ)
	case !known:
		return "", refusal(host.RunInvalidOutput, "step %s writes %s to the stream, which is not declared: declare it in events", inv.step.name, clip(typ))
	// Clients would take a stop event for the end of the run.
	case kind == abi.KindStop:
		return "step " + inv.step.name + " wrote the stop event " + typ + " to the stream: it was left out, the run's result follows when a step returns it", nil
	}
	return "", nil
}
