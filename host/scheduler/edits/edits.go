// Package edits makes the edits of a session's state that clients ask for: it checks an
// edit, prepares it without the session's mutex, and tries until no step has the write to
// itself. It gives values their tags.
//
// It must not depend on how a session is loaded, or how an edit becomes durable.
package edits

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/tickets"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// editWait is how long an edit waits for the write tickets of steps.
const editWait = time.Second

// Session is the session that is edited. It is pinned until Release. If the session was
// purged, the error of its methods is [Config].Gone.
type Session interface {
	// State returns the present state, without waiting.
	State() *state.Node
	// Ran returns the versions of workflows that check the state.
	Ran() []string
	// View returns what the edit is prepared on, or why the session refuses the edit; see
	// [Edit.Takes].
	View(e *Edit) (View, error)
	// Make makes the edit, or returns why the session refuses it. free is not nil if the
	// ticket of a step covers one of the edit's paths: the edit was not made, and free is
	// closed when the caller may try again.
	Make(e *Edit) (free <-chan struct{}, err error)
	Release()
}

// View is a session at a time.
type View struct {
	Fresh bool // it has no entries
	State *state.Node
	Keep  []*engine.Graph // workflows whose schemas the state keeps
}

// Config says what an editor works with. All fields must be set.
type Config struct {
	// Work begins work of at most so many units for a request, on its tenant's clock; 0:
	// any number. The caller calls done at the end of the work.
	Work func(ctx context.Context, tenant string, most uint64) (m *work.Meter, done func())
	// Readable brings a version of a workflow into memory; the error says why not.
	Readable func(version string) error
	// Grow refuses what exceeds the quotas of a tenant.
	Grow   func(ctx context.Context, tenant string) error
	Limits *limit.Table
	Gone   error // of a session that was purged
}

// Editor makes edits and reads values. Its methods may be called from any goroutine. The
// caller must hold no mutex.
type Editor struct{ cfg Config }

// New returns an editor.
func New(cfg Config) *Editor { return &Editor{cfg} }

// Edit is an edit of a session's state that a client asks for. One goroutine uses it.
type Edit struct {
	d     *Editor
	req   *host.SessionEdit
	tick  engine.EditSession
	paths []state.Path // that it writes
	size  int          // bytes of what the client sent
	base  *state.Node  // the state that has one of the tags asked for

	Once bool // the request has a key, which the journal must record
}

// Paths returns the paths that the edit writes.
func (e *Edit) Paths() []state.Path { return e.paths }

// At returns the path of the value that is edited.
func (e *Edit) At() state.Path { return e.tick.At }

// units limits the work on an edit of n bytes, in units, for a state of so many bytes. An
// edit that needs more is refused.
func units(n, state int) uint64 { return 60_000_000 + 1_000*uint64(n) + 200*uint64(state) }

// Read checks an edit that a client asks for.
func (d *Editor) Read(ctx context.Context, req *host.SessionEdit) (*Edit, error) {
	e := &Edit{d: d, req: req}
	if err := e.read(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Edit) read(ctx context.Context) error {
	req := e.req
	at, err := ParsePath(req.Path)
	if err != nil {
		return err
	}
	edits, err := below(req.Path, req.Edits)
	if err != nil {
		return err
	}
	e.tick = engine.EditSession{At: at, Edits: edits, StateBytes: e.d.cfg.Limits.Limits(req.Tenant, "").StateBytes}
	e.size = len(req.State) + len(req.Patch)
	for i := range req.Edits {
		e.size += len(req.Edits[i].Path) + len(req.Edits[i].Value)
	}
	// The state is not known yet: its bytes raise the limit later.
	m, done := e.d.cfg.Work(ctx, req.Tenant, units(e.size, 0))
	defer done()
	decode := func(raw abi.Raw, to **state.Node) error {
		// If the meter has ended, that is the reason, whatever the decoder reports.
		n, err := state.DecodeOn(m, raw)
		if ended := m.Err(); ended != nil {
			return tooCostly(ended)
		}
		if err != nil {
			return host.Errorf(host.CodeInvalidArgument, "The state cannot be decoded: %w", err)
		}
		if !n.IsMap() {
			return host.Errorf(host.CodeInvalidArgument, "A session's state is an object, and so is a patch of it")
		}
		*to = n
		return nil
	}
	switch {
	case req.State != nil:
		e.paths = []state.Path{nil}
		return decode(req.State, &e.tick.State)
	case req.Patch != nil:
		err := decode(req.Patch, &e.tick.Patch)
		if err == nil {
			e.paths = tickets.OfPatch(at, e.tick.Patch)
		}
		return err
	}
	e.paths = tickets.OfEdits(edits)
	return nil
}

// below returns edits of the value at a path as edits of the whole state.
func below(path string, edits []abi.Edit) ([]abi.Edit, error) {
	if path == "" {
		return edits, nil
	}
	out := slices.Clone(edits)
	for i := range out {
		switch e := &out[i]; {
		case e.Op == abi.OpClear:
			return nil, host.Errorf(host.CodeInvalidArgument, "clear is of the whole state, not of '%s'", abi.Clip(path, maxShown))
		case e.Path == "":
			e.Path = path
		default:
			e.Path = path + "." + e.Path
		}
	}
	return out, nil
}

// Make makes the edit. pin pins the session, and loads it if necessary; with create, pin
// makes the session if the store does not have it. Make returns the session's errors
// unchanged.
func (e *Edit) Make(ctx context.Context, pin func(ctx context.Context, key host.SessionKey, create bool) (Session, error)) error {
	if err := e.d.cfg.Grow(ctx, e.req.Tenant); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, editWait)
	defer cancel()
	for {
		ss, err := pin(ctx, host.SessionKey{Tenant: e.req.Tenant, Session: e.req.Session}, e.req.Make)
		if err != nil {
			return err
		}
		err = e.in(ctx, wait, ss)
		ss.Release()
		// The session was purged meanwhile: the key may belong to a new session now.
		if !errors.Is(err, e.d.cfg.Gone) {
			return err
		}
	}
}

// tooCostly returns the error for an edit whose work exceeded its limit; other errors
// unchanged.
func tooCostly(err error) error {
	if over := (*work.Exceeded)(nil); errors.As(err, &over) {
		return host.Errorf(host.CodeInvalidArgument, "The edit is too costly for its size and that of the state: make it in parts")
	}
	return err
}

// in makes the edit in a session, when no step holds a ticket for its paths. wait ends when
// the edit has waited long enough.
func (e *Edit) in(ctx, wait context.Context, ss Session) error {
	for moved := 0; ; {
		if err := e.matches(ctx, ss); err != nil {
			return err
		}
		if err := e.recall(ss); err != nil {
			return err
		}
		little, err := e.prepare(ctx, ss)
		if errors.Is(err, engine.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		// A small edit that has lost once is worked out under the mutex, where it cannot
		// lose again.
		if little && moved > 0 {
			e.tick.Prepared = nil
		}
		free, err := ss.Make(e)
		switch {
		// A step changed the state while the edit was worked out.
		case errors.Is(err, engine.ErrMoved):
			if moved++; wait.Err() != nil {
				return busyState
			}
			continue
		// The state has changed since its tag was compared: compare again.
		case errors.Is(err, engine.ErrConflict):
			continue
		case err != nil || free == nil:
			return err
		}
		select {
		case <-free:
		case <-wait.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return busyState
		}
	}
}

// busyState is the error of an edit that has waited too long for the tickets of steps.
var busyState = &host.Error{Code: host.CodeUnavailable, RetryAfter: time.Second, Message: "steps have this part of the state to themselves for now: try again"}

// prepare works the edit out on the present state, without the session's mutex. little
// reports whether the work is small enough for the mutex.
func (e *Edit) prepare(ctx context.Context, ss Session) (little bool, err error) {
	v, err := ss.View(e)
	if err != nil {
		return false, err
	}
	if e.base != nil && e.base != v.State {
		return false, engine.ErrConflict // compare the tag again
	}
	m, done := e.d.cfg.Work(ctx, e.req.Tenant, units(e.size, v.State.Bytes()))
	defer done()
	e.tick.Prepared, err = engine.PrepareSession(m, v.State, e.asked(v.Fresh), v.Keep)
	return m.Spent() <= work.Look, tooCostly(err)
}

// Takes returns why a session refuses the edit, or nil. fresh: the session has no entries.
func (e *Edit) Takes(fresh bool) error {
	switch req := e.req; {
	case fresh && !req.Make:
		return history.ErrNoSession
	case fresh && len(req.Match) > 0, !fresh && req.New:
		return host.Errorf(host.CodePreconditionFailed, "The session does not exist, or does, against what the request says")
	}
	return nil
}

// asked returns the edit's tick, for any state.
func (e *Edit) asked(fresh bool) engine.EditSession {
	t := e.tick
	t.Always = fresh || e.Once
	return t
}

// Tick returns the edit's tick for a session that does not refuse the edit. The tick
// requires the state whose tag was compared.
func (e *Edit) Tick(fresh bool) engine.EditSession {
	t := e.asked(fresh)
	if len(e.req.Match) > 0 && (len(t.At) > 0 || !slices.Contains(e.req.Match, host.AnyTag)) {
		t.Base = e.base
	}
	return t
}

// matches checks whether the value has one of the tags that the edit names, without the
// session's mutex. The edit is then made on the same state, or not at all.
func (e *Edit) matches(ctx context.Context, ss Session) error {
	if len(e.req.Match) == 0 {
		return nil
	}
	root := ss.State()
	if root == e.base {
		return nil
	}
	have, there := state.Get(root, e.tick.At)
	if there && !slices.Contains(e.req.Match, host.AnyTag) {
		v, err := e.d.Value(ctx, e.req.Tenant, have)
		if err != nil {
			return err
		}
		there = slices.Contains(e.req.Match, v.Tag)
	}
	if !there {
		return host.Errorf(host.CodePreconditionFailed, "The state is another than that of the tag: read it again")
	}
	e.base = root
	return nil
}

// recall brings the workflows that check the edit into memory, where the reducer must find
// them.
func (e *Edit) recall(ss Session) error {
	for _, version := range ss.Ran() {
		if err := e.d.cfg.Readable(version); host.CodeOf(err) == host.CodeUnavailable {
			return err
		}
	}
	return nil
}
