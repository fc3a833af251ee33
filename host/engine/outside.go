package engine

import (
	"errors"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// Clients may edit the state of a session too, whether or not runs are active in the
// session, and even before its first run. Such an edit is an entry of its own, resolved
// like the edits of guests. It belongs to no run. The edited state must satisfy the
// schemas of all workflows that have run in the session, because any of them may run on
// that state again.

// EditSession edits the state from outside: by Edits, Patch or State.
type EditSession struct {
	Edits []abi.Edit
	Patch *state.Node // a merge patch (RFC 7396) of the value at At
	At    state.Path
	State *state.Node // replaces the whole state
	// Base is the state that the client has seen. If the state is another one, the edit
	// is refused with [ErrConflict]. nil: any state.
	Base *state.Node
	// StateBytes bounds the size of the state after the edit.
	StateBytes int
	// Always makes an entry even if the edit changes nothing. The edit may create the
	// session, or the request may carry a key that must be recorded.
	Always bool
	// Prepared is the result of [PrepareSession] for the edit; nil: the tick does the
	// work.
	Prepared *Prepared
}

func (EditSession) tick() {}

// maxRan bounds the list of workflows that have run: the latest ones are kept.
const maxRan = 16

// ranVersion is a workflow and the version of its latest run.
type ranVersion struct {
	workflow, version string
}

// noteRan records that a version of a workflow runs.
// The usual case, a workflow that runs again and again, allocates nothing.
func (s *Session) noteRan(workflow, version string) {
	if n := len(s.ran); n > 0 && s.ran[n-1] == (ranVersion{workflow, version}) {
		return
	}
	// Build a new list: the position of a workflow is that of its latest run.
	kept := make([]ranVersion, 0, min(len(s.ran)+1, maxRan))
	for _, r := range s.ran {
		if r.workflow != workflow {
			kept = append(kept, r)
		}
	}
	if len(kept) == maxRan {
		kept = kept[:copy(kept, kept[1:])]
	}
	kept = append(kept, ranVersion{workflow, version})
	s.ran = kept
}

// savedRan is a workflow that has run in the session, as a snapshot has it.
type savedRan struct {
	Workflow string `cbor:"1,keyasint"`
	Version  string `cbor:"2,keyasint"`
}

func (s *Session) saveRan() []savedRan {
	var out []savedRan
	for _, r := range s.ran {
		out = append(out, savedRan{Workflow: r.workflow, Version: r.version})
	}
	return out
}

func (s *Session) restoreRan(saved []savedRan) error {
	known := make(map[string]bool, len(saved))
	for _, r := range saved {
		if r.Workflow == "" || r.Version == "" || known[r.Workflow] || len(known) == maxRan {
			return badSnapshot("the workflows that have run are too many, or one of them appears twice: %s", clip(r.Workflow))
		}
		known[r.Workflow] = true
		s.ran = append(s.ran, ranVersion{r.Workflow, r.Version})
	}
	return nil
}

// ForgetRan forgets which workflows have run in the session. A snapshot that was written
// before sessions recorded these workflows does the same. So a session is equal whether
// it is loaded from that snapshot or from earlier entries.
func (s *Session) ForgetRan() { s.ran = nil }

// RanVersions returns the versions whose workflows an [EditSession] asks for, beside
// those of the active runs.
func (s *Session) RanVersions() []string {
	out := make([]string, len(s.ran))
	for i, r := range s.ran {
		out[i] = r.version
	}
	return out
}

// PrepareSession works out an [EditSession] on a state, checked with the schemas of the
// graphs keep. It needs no session, and the meter may block.
//
// # Errors
//
// A [*host.Error] for mistakes of the client; the error of the meter.
func PrepareSession(m *work.Meter, root *state.Node, t EditSession, keep []*Graph) (*Prepared, error) {
	p := &Prepared{base: root, kept: keep}
	var err error
	switch {
	case t.State != nil:
		p.root, p.changes, err = state.ReplaceOn(m, root, nil, t.State)
	case t.Patch != nil:
		p.root, p.changes, err = state.MergePatchOn(m, root, t.At, t.Patch)
	default:
		p.root, _, p.changes, err = state.ApplyOn(m, root, t.Edits, nil)
	}
	// The meter's own error comes first: the work was cut off, so err says nothing.
	if ended := m.Err(); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, editRefusal(err)
	}
	for _, g := range keep {
		// An unchanged state is not checked: it may break a schema already.
		if len(p.changes) == 0 && !t.Always {
			break
		}
		if err := g.schema.CheckOn(m, p.root, p.changes); m.Err() == nil && err != nil {
			return nil, host.Errorf(host.CodeSchemaViolation, "The state would break the schema of workflow %s at %w", g.Workflow(), schemaBreach(err))
		}
	}
	if err := p.Encode(m); err != nil {
		return nil, err
	}
	// A state that is over the limit may still shrink.
	if n := p.root.Bytes(); (len(p.changes) > 0 || t.Always) && n > t.StateBytes && n > root.Bytes() {
		return nil, host.Errorf(host.CodeLimitExceeded, "The state would have %d bytes, more than %d (limit state_bytes)", n, t.StateBytes)
	}
	return p, nil
}

func (s *Session) decideOutside(e *Entry, t EditSession) (decision, error) {
	// Nodes are immutable: an equal pointer is an equal state.
	if t.Base != nil && t.Base != s.root {
		return decision{}, ErrConflict
	}
	keep, err := s.KeptSchemas()
	if err != nil {
		return decision{}, err
	}
	p := t.Prepared
	switch {
	case p == nil:
		if p, err = PrepareSession(&s.own, s.root, t, keep); err != nil {
			return decision{}, err
		}
	// The edit was prepared for another state, or another workflow has run since.
	case p.base != s.root, slices.ContainsFunc(keep, func(g *Graph) bool { return !slices.Contains(p.kept, g) }):
		return decision{}, ErrMoved
	}
	if len(p.changes) == 0 && !t.Always {
		return decision{}, nil
	}
	e.Kind = EntryPatch
	if len(p.changes) > 0 {
		e.Changes = p.encoded
	}
	return decision{entry: e, root: p.root}, nil
}

// KeptSchemas returns the graphs whose schemas an [EditSession] must satisfy: those of
// the workflows that have run in the session, and those of the active runs, which may
// have older versions.
func (s *Session) KeptSchemas() (keep []*Graph, err error) {
	seen := make(map[*Graph]bool, len(s.ran))
	add := func(g *Graph) {
		if !seen[g] {
			seen[g] = true
			keep = append(keep, g)
		}
	}
	for i := len(s.ran) - 1; i >= 0; i-- {
		g, err := s.graphs(s.ran[i].version)
		if err != nil {
			return nil, &host.Error{Code: host.CodeInternal, Cause: err,
				Message: "Workflow " + clip(s.ran[i].workflow) + " has run in the session, but its stored version cannot be loaded"}
		}
		add(g)
	}
	for _, id := range sortedKeys(s.runs) {
		add(s.runs[id].graph)
	}
	return keep, nil
}

// editRefusal turns an error of package state into an error for a client.
func editRefusal(err error) error {
	var refused *state.Error
	if !errors.As(err, &refused) {
		return err
	}
	code := host.CodeInvalidArgument
	switch refused.Code {
	case abi.StatusConflict.Code():
		code = host.CodeConflict
	case abi.StatusFailedPrecondition.Code():
		code = host.CodeFailedPrecondition
	case abi.StatusLimitExceeded.Code():
		code = host.CodeLimitExceeded
	}
	if refused.Path == "" {
		return host.Errorf(code, "%s", refused.Message)
	}
	return host.Errorf(code, "%q: %s", refused.Path, refused.Message)
}
