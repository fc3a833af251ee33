package engine

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// What an atomic step does takes effect with its success, as a part of the entry
// that finishes the attempt, or not at all. Until then it is kept by whoever
// answers the guest: the step reads one snapshot of the state and its own edits.
// When it finishes, everything that it read or edited must be as it was in that
// snapshot; its edits are then made anew on the state of that time, and come to
// the same.

// Stage is what an atomic step has done.
type Stage struct {
	// Seen is what the step read or edited in its snapshot. It may name a path
	// more than once.
	Seen []Seen
	// Effects are its edits, sends and stream writes, in order: EditState,
	// CommitState, SendEvent and WriteStream.
	Effects []Request
	// Base is the snapshot, Root the state with the step's own edits on it, and Changes
	// leads from one to the other. A nil Base: the edits are made anew in any case.
	Base, Root *state.Node
	Changes    []state.Change
}

// Tried is what a call of an atomic step comes to.
type Tried struct {
	Response Response
	After    *state.Node    // the state after it
	Changes  []state.Change // that lead there
	Effect   bool           // the call has an effect to be kept
}

// Seen is a value of a snapshot; a nil node: there was none.
type Seen struct {
	Path state.Path
	Node *state.Node
}

// Try works out a call of an atomic step on the state that the step sees, root.
// It changes nothing of the session.
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
	return Tried{}, refusal(abi.StatusFailedPrecondition.Code(),
		"step %s is atomic: it may edit the state, send events and write to the stream, and neither wait, sleep, collect events, run workflows nor call resources", inv.step.name)
}

// tryWrite is Try for an edit or a commit.
func (inv *invocation) tryWrite(own *work.Meter, root *state.Node, req Request, p *Prepared) (Tried, error) {
	p, err := inv.preparedOn(own, root, req, p)
	if err != nil {
		return Tried{}, err
	}
	return Tried{Response: Response{Results: p.results}, After: p.root, Changes: p.changes, Effect: true}, nil
}

// decideStage turns what an atomic step has done into parts of the entry that
// finishes it, and gives the state after it. ErrConflict: the state is not what it
// was for the step any more.
func (s *Session) decideStage(e *Entry, inv *invocation, stage *Stage) (*state.Node, error) {
	for i := range stage.Seen {
		s.visited++
		if now, _ := state.Get(s.root, stage.Seen[i].Path); now != stage.Seen[i].Node {
			return nil, ErrConflict
		}
	}
	root := s.root
	var all []state.Change
	same := stage.Base == s.root // then the edits come to what they came to
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
			if err != nil {
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

// sent is what a step is about to send and to return, in order; a nil stage is that
// of a step that is not atomic.
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

// foldStaged carries out what an atomic step has sent and written; false if the
// run is over by that.
func (s *Session) foldStaged(e *Entry, inv *invocation) (bool, error) {
	r := inv.run
	for i := range e.Finish.Staged {
		p := &e.Finish.Staged[i]
		if !r.graph.knows(p.Event.Type) {
			return false, corrupt(e, "no event of a known type")
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

// sent brings an event that a step sent on its way; false if the run is over by
// that.
func (s *Session) sent(inv *invocation, ev abi.Event, step string) bool {
	r := inv.run
	asks := r.kind(ev) == abi.KindInputRequired
	if !s.admit(inv, 1) || asks && !s.published(inv, ev) {
		return false
	}
	s.route(r, emission{event: ev, in: inv.in, lineage: inv.lineage, step: step, shown: asks})
	return true
}

// written puts an event that a step wrote on the stream; false if the run is over
// by that.
func (s *Session) written(inv *invocation, ev abi.Event, _ string) bool { return s.published(inv, ev) }

// checkWrite says whether the step may write such an event to the stream; a
// warning says that it is left out.
func (inv *invocation) checkWrite(typ string) (warning string, err error) {
	kind, known := inv.run.graph.Kind(typ)
	switch {
	case IsRuntimeType(typ):
		return "", refuseRuntimeType(typ)
	case !known:
		return "", refusal(host.RunInvalidOutput, "step %s writes %s to the stream, which is not declared: declare it in events", inv.step.name, clip(typ))
	case kind == abi.KindStop:
		return "step " + inv.step.name + " wrote the stop event " + typ + " to the stream: it was left out, the run's result follows when a step returns it", nil
	}
	return "", nil
}
