package engine

import (
	"errors"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// The state of a session is edited from outside too, by clients, whether runs are
// active in it or not, and before the first has begun. Such an edit is an entry of
// its own, resolved like those of guests. It belongs to no run: it has to keep the
// schemas of all workflows that have run in the session, as any of them may go on
// with the state.

// EditSession edits the state from outside, by one of the first three.
type EditSession struct {
	Edits []abi.Edit
	Patch *state.Node // a merge patch of the value at At: RFC 7396
	At    state.Path
	State *state.Node // in place of all that is there
	// Base is what the state has to be still, else the edit is refused with
	// [ErrConflict]; nil: anything.
	Base *state.Node
	// StateBytes is how large the state may become.
	StateBytes int
	// Always makes an entry, even if the state is as the edit wants it: of a session
	// that is made by it, or of a request that is not to count twice.
	Always bool
	// Prepared is what [PrepareSession] has made of the edit; nil: it is worked out in
	// the tick.
	Prepared *Prepared
}

func (EditSession) tick() {}

// maxRan bounds the workflows that a session keeps in mind: those that ran last.
const maxRan = 16

// ranVersion is the version of a workflow with which it ran last.
type ranVersion struct {
	workflow, version string
}

// noteRan keeps in mind that a version runs.
func (s *Session) noteRan(workflow, version string) {
	if n := len(s.ran); n > 0 && s.ran[n-1] == (ranVersion{workflow, version}) {
		return
	}
	kept := make([]ranVersion, 0, min(len(s.ran)+1, maxRan))
	for _, r := range s.ran {
		if r.workflow != workflow {
			kept = append(kept, r)
		}
	}
	if len(kept) == maxRan {
		kept = kept[:copy(kept, kept[1:])]
	}
	s.ran = append(kept, ranVersion{workflow, version})
}

// savedRan is a workflow that has run in the session.
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
			return badSnapshot("the workflows that have run are too many, or one of them is there twice: %s", clip(r.Workflow))
		}
		known[r.Workflow] = true
		s.ran = append(s.ran, ranVersion{r.Workflow, r.Version})
	}
	return nil
}

// ForgetRan forgets which workflows have run in the session: an EntrySnapshot does
// that was written when sessions did not keep it in mind, so that a session is the
// same whether it is loaded from there or from further back.
func (s *Session) ForgetRan() { s.ran = nil }

// RanVersions gives the versions of which an [EditSession] asks for the workflows,
// beside those of the runs that are active.
func (s *Session) RanVersions() []string {
	out := make([]string, len(s.ran))
	for i, r := range s.ran {
		out[i] = r.version
	}
	return out
}

// PrepareSession works out an [EditSession] on a state, for a session that keeps the
// schemas of the graphs. It needs no session, and the meter may wait.
//
// # Errors
//
// [*host.Error] for the client's mistakes; that of the meter.
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
	if ended := m.Err(); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, editRefusal(err)
	}
	for _, g := range keep {
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
	if n := p.root.Bytes(); (len(p.changes) > 0 || t.Always) && n > t.StateBytes && n > root.Bytes() {
		return nil, host.Errorf(host.CodeLimitExceeded, "The state would have %d bytes, more than %d (limit state_bytes)", n, t.StateBytes)
	}
	return p, nil
}

func (s *Session) decideOutside(e *Entry, t EditSession) (decision, error) {
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

// KeptSchemas gives the graphs whose schemas an [EditSession] has to keep: those of the
// workflows that have run in the session, and of those that run, perhaps with older
// versions.
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
				Message: "Workflow " + clip(s.ran[i].workflow) + " has run in the session, and what is stored of it cannot be had"}
		}
		add(g)
	}
	for _, id := range sortedKeys(s.runs) {
		add(s.runs[id].graph)
	}
	return keep, nil
}

// editRefusal turns an error of package state into one for a client.
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
