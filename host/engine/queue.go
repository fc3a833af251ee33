package engine

import (
	"container/list"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// A start may ask to wait while another run of the session is active. A queued run
// exists, its record says that it runs, and its handler is taken, but it has not begun:
// it has no timeout, takes no events, and its workflow's defaults are not in the state.
// When no run has begun, the run that has waited longest begins, by a tick of its own
// ([BeginRun]), because the start depends on the state at that time.

// turns holds the starts that wait, oldest first.
type turns struct {
	line  list.List                // of *queued
	byRun map[string]*list.Element // by run id
}

// queued is a start that waits for its turn.
type queued struct {
	rec   host.Run
	start *StartPart
	graph *Graph
}

func (t *turns) push(q *queued) {
	if t.byRun == nil {
		t.byRun = make(map[string]*list.Element)
	}
	t.byRun[q.rec.RunID] = t.line.PushBack(q)
}

// of returns the start of a queued run.
func (t *turns) of(runID string) (*queued, bool) {
	at, ok := t.byRun[runID]
	if !ok {
		return nil, false
	}
	return at.Value.(*queued), true
}

// first is the start that is next, nil if none waits.
func (t *turns) first() *queued {
	if at := t.line.Front(); at != nil {
		return at.Value.(*queued)
	}
	return nil
}

func (t *turns) remove(q *queued) {
	t.line.Remove(t.byRun[q.rec.RunID])
	delete(t.byRun, q.rec.RunID)
}

// TurnDue reports whether a queued run can begin. The caller must then give the session a
// [BeginRun].
func (s *Session) TurnDue() bool { return len(s.runs) == 0 && s.turns.line.Len() > 0 }

// Waiting is the number of queued runs.
func (s *Session) Waiting() int { return s.turns.line.Len() }

// waitsForTurn reports whether a start that may queue must queue.
func (s *Session) waitsForTurn() bool { return len(s.runs)+s.turns.line.Len() > 0 }

// notBegun returns an error for a queued run, which only a run that has begun would
// accept; nil for other runs.
func (s *Session) notBegun(runID string) error {
	if _, ok := s.turns.of(runID); ok {
		return host.Errorf(host.CodeConflict, "Run %s has not begun: it waits for its session's turn", clip(runID))
	}
	return nil
}

// decideQueue decides a start that must wait.
func (s *Session) decideQueue(e *Entry, part *StartPart) (decision, error) {
	if n := s.turns.line.Len(); n >= part.Limits.QueuedStarts {
		full := host.Errorf(host.CodeLimitExceeded, "%d starts wait for session %s already (limit queued_starts): try again later", n, clip(s.key.Session))
		full.RetryAfter = 1e9 // a second
		return decision{}, full
	}
	e.Kind, e.Start = EntryQueue, part
	return decision{entry: e}, nil
}

// decideBegin decides how the next queued run begins: with the defaults of its workflow
// added to the present state or, if that is impossible, as a failed run.
func (s *Session) decideBegin(e *Entry) decision {
	if !s.TurnDue() {
		return decision{}
	}
	q := s.turns.first()
	e.Kind, e.RunID = EntryBegin, q.rec.RunID
	root, changes, err := s.stateFor(q.graph, q.start.Limits)
	var refused *host.Error
	// The client got its answer when the start was queued: the run can only fail.
	if errors.As(err, &refused) {
		e.Fault = sanitizedError(&abi.Error{Code: string(refused.Code), Message: refused.Message})
		return decision{entry: e}
	}
	e.Changes = changes
	return decision{entry: e, root: root}
}

// stateFor returns the state on which a run of the workflow begins, and the encoded
// changes that lead to it. Errors are [*host.Error]s.
func (s *Session) stateFor(g *Graph, limits host.Limits) (root *state.Node, encoded []byte, err error) {
	root, changes := state.FillDefaults(s.root, g.defaults)
	err = g.schema.CheckOn(&s.own, root, nil)
	if over := (*work.Exceeded)(nil); errors.As(err, &over) {
		return nil, nil, host.Errorf(host.CodeLimitExceeded,
			"checking the session's state with the schema of workflow %s takes more than %d units of work, a fixed limit: make the state smaller, or its schema simpler", g.Workflow(), over.Limit)
	}
	if err != nil {
		return nil, nil, host.Errorf(host.CodeSchemaViolation, "The session's state breaks the schema of workflow %s at %w", g.Workflow(), schemaBreach(err))
	}
	if root.Bytes() > limits.StateBytes {
		return nil, nil, host.Errorf(host.CodeLimitExceeded, "the state of the session has %d bytes, more than %d (limit state_bytes)", root.Bytes(), limits.StateBytes)
	}
	if len(changes) > 0 {
		encoded = state.EncodeChanges(changes)
	}
	return root, encoded, nil
}

// foldQueue puts a start at the end of the queue.
func (s *Session) foldQueue(e *Entry) error {
	g, err := s.newRun(e, e.RunID, e.Start)
	if err != nil {
		return err
	}
	h := s.handlerOf(e.Start.HandlerID)
	h.run = e.RunID
	q := &queued{start: e.Start, graph: g, rec: s.record(e.RunID, e.Start, g)}
	q.rec.WaitingFor = []host.Waiting{{Reason: host.WaitsForTurn, Since: e.At}}
	s.turns.push(q)
	s.emit(RunChanged{Run: q.rec})
	return nil
}

// foldBegin begins a queued run, or ends a run that cannot begin.
func (s *Session) foldBegin(e *Entry, root *state.Node) error {
	q := s.turns.first()
	if q == nil || q.rec.RunID != e.RunID || len(s.runs) > 0 {
		return corrupt(e, "another run is first, or has not ended")
	}
	s.turns.remove(q)
	if e.Fault != nil {
		f := failure{err: e.Fault}
		s.endQueued(q, host.StatusFailed, runtimeEvent(abi.TypeWorkflowFailed, f.body(nil)), e.Fault.Message, e.Fault.Code)
		return nil
	}
	if err := s.change(e, root); err != nil {
		return err
	}
	r := s.begin(e.RunID, q.start, q.graph)
	// Clients have seen the time of the request as the start of the run.
	r.rec.Started = q.rec.Started
	s.launch(r, q.start.Event)
	return nil
}

// cancelQueued removes a run that has not begun.
func (s *Session) cancelQueued(q *queued) {
	s.turns.remove(q)
	s.endQueued(q, host.StatusCancelled, runtimeEvent(abi.TypeWorkflowCancelled, abi.EmptyMap), "", host.RunCancelled)
}

// endQueued ends a run that has not begun and has left the queue.
func (s *Session) endQueued(q *queued, status host.Status, last host.StreamEvent, message, code string) {
	// A run that has not begun needs only the parts that its last event and record use.
	r := &run{rec: q.rec, graph: q.graph, handler: s.handlers[q.rec.HandlerID]}
	last.Terminal = true
	s.publish(r, last)
	r.rec.Status, r.rec.Completed, r.rec.WaitingFor = status, s.now, nil
	r.rec.Error, r.rec.ErrorCode = message, code
	s.over(r)
}

// newRun checks the start in an entry and returns its workflow.
func (s *Session) newRun(e *Entry, runID string, p *StartPart) (*Graph, error) {
	if _, queued := s.turns.of(runID); p == nil || runID == "" || s.runs[runID] != nil || queued {
		return nil, corrupt(e, "it does not start a new run")
	}
	if _, active, _ := s.HandlerRun(p.HandlerID); active {
		return nil, corrupt(e, "the handler is active")
	}
	g, err := s.graphs(p.Version)
	if err != nil {
		return nil, fmt.Errorf("entry %d: find the workflow of version %s: %w", e.Seq, p.Version, err)
	}
	if !g.mayStart(p.Event.Type) {
		return nil, corrupt(e, "%s does not start a run", clip(p.Event.Type))
	}
	return g, nil
}
