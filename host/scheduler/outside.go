package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/tickets"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// editWait is how long an edit from outside waits for the write tickets of steps.
const editWait = time.Second

// State reads a value of a session's state; see host.Sessions.
func (s *Scheduler) State(ctx context.Context, tenant, id, path string) (host.StateValue, error) {
	p, err := state.ParsePath(path)
	if err != nil {
		return host.StateValue{}, host.Errorf(host.CodeInvalidArgument, "'%s' is not a path into a state: %w", cut(path), err)
	}
	ss, err := s.table.acquire(ctx, host.SessionKey{Tenant: tenant, Session: id}, false)
	if err != nil {
		return host.StateValue{}, err
	}
	defer ss.release()
	ss.mu.Lock()
	root, pos := ss.eng.State(), ss.lastPos
	ss.mu.Unlock()
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.StateValue{}, host.Unavailable(err)
	}
	n, ok := state.Get(root, p)
	if !ok {
		return host.StateValue{}, host.Errorf(host.CodeNotFound, "The state has nothing at '%s'", cut(path))
	}
	return s.valueOf(ctx, tenant, n)
}

// cut is a client's text as an error repeats it.
func cut(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// tagUnits is the price of a byte of a value that gets a tag.
const tagUnits = 2

// valueOf is a request's reading of a value, on its tenant's clock.
func (s *Scheduler) valueOf(ctx context.Context, tenant string, node *state.Node) (host.StateValue, error) {
	n := s.native(ctx, tenant, 0)
	defer n.done()
	return valueOf(n.Meter, node)
}

// valueOf gives a value with its tag: 128 bits of the SHA-256 of its one encoding. The
// error is the meter's.
func valueOf(m *work.Meter, n *state.Node) (host.StateValue, error) {
	raw, err := n.EncodeOn(m)
	if err != nil {
		return host.StateValue{}, err
	}
	sum := sha256.New()
	for rest := raw; len(rest) > 0; {
		piece := rest[:min(len(rest), work.Look/tagUnits)]
		if err := m.Spend(tagUnits * uint64(len(piece))); err != nil {
			return host.StateValue{}, err
		}
		_, _ = sum.Write(piece) // never fails
		rest = rest[len(piece):]
	}
	return host.StateValue{Value: raw, Tag: hex.EncodeToString(sum.Sum(nil)[:16])}, nil
}

// EditState edits a session's state from outside; see host.Sessions.
func (s *Scheduler) EditState(ctx context.Context, req host.SessionEdit) (host.StateValue, bool, error) {
	e := &edit{s: s, req: &req}
	if err := e.read(ctx); err != nil {
		return host.StateValue{}, false, err
	}
	c, before, err := s.keys.Claim(ctx, req.Tenant, req.Once)
	if err != nil {
		return host.StateValue{}, false, err
	}
	// A repeated edit is answered by the state as it is now. What it deleted is not there.
	if before != nil {
		v, err := s.State(ctx, req.Tenant, req.Session, req.Path)
		if host.CodeOf(err) == host.CodeNotFound && req.Path != "" {
			v, err = gone, nil
		}
		return v, false, err
	}
	e.once = c
	err = e.make(ctx)
	c.Settle(e.pos)
	if err != nil {
		return host.StateValue{}, false, err
	}
	if err := s.cfg.Journal.Wait(ctx, e.pos); err != nil {
		return host.StateValue{}, false, host.Unavailable(err)
	}
	v := gone
	if n, ok := state.Get(e.root, e.tick.At); ok {
		v, err = s.valueOf(ctx, req.Tenant, n)
	}
	return v, e.created, err
}

// gone is the value of what an edit has deleted.
var gone = func() host.StateValue {
	n, err := state.Decode(abi.Raw{0xf6})
	if err != nil {
		panic(err) // null is a value
	}
	v, err := valueOf(nil, n)
	if err != nil {
		panic(err)
	}
	return v
}()

// edit is an edit of a session's state that a client asks for, and what comes of it.
type edit struct {
	s     *Scheduler
	req   *host.SessionEdit
	tick  engine.EditSession
	paths []state.Path // that it writes
	once  *idempotency.Claim

	size    int         // bytes of what the client sent
	base    *state.Node // the state that has one of the tags asked for
	pos     uint64      // of the entry, or of the newest before if there is none; 0: it was refused
	root    *state.Node // the state after it
	created bool
}

// editUnits is how much an edit of n bytes may take, in units, of a state that has so many:
// beyond, it is refused.
func editUnits(n, state int) uint64 { return 60_000_000 + 1_000*uint64(n) + 200*uint64(state) }

// read checks what a client asks for.
func (e *edit) read(ctx context.Context) error {
	s, req := e.s, e.req
	if err := s.taking(req.Tenant); err != nil {
		return err
	}
	if err := handlers.CheckID("the name of a session", req.Session); err != nil {
		return err
	}
	at, err := state.ParsePath(req.Path)
	if err != nil {
		return host.Errorf(host.CodeInvalidArgument, "'%s' is not a path into a state: %w", cut(req.Path), err)
	}
	edits, err := below(req.Path, req.Edits)
	if err != nil {
		return err
	}
	e.tick = engine.EditSession{At: at, Edits: edits, StateBytes: s.cfg.Limits.Limits(req.Tenant, "").StateBytes}
	e.size = len(req.State) + len(req.Patch)
	for i := range req.Edits {
		e.size += len(req.Edits[i].Path) + len(req.Edits[i].Value)
	}
	// The state is not known yet: what the edit may take by that counts later.
	own := s.native(ctx, req.Tenant, editUnits(e.size, 0))
	defer own.done()
	decode := func(raw abi.Raw, to **state.Node) error {
		// What ended the meter is the reason, whatever the decoder makes of it.
		n, err := state.DecodeOn(own.Meter, raw)
		if ended := own.Err(); ended != nil {
			return tooCostly(ended)
		}
		if err != nil {
			return host.Errorf(host.CodeInvalidArgument, "The state does not read: %w", err)
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

// below gives edits of the value at a path as edits of the whole.
func below(path string, edits []abi.Edit) ([]abi.Edit, error) {
	if path == "" {
		return edits, nil
	}
	out := slices.Clone(edits)
	for i := range out {
		switch e := &out[i]; {
		case e.Op == abi.OpClear:
			return nil, host.Errorf(host.CodeInvalidArgument, "clear is of the whole state, not of '%s'", cut(path))
		case e.Path == "":
			e.Path = path
		default:
			e.Path = path + "." + e.Path
		}
	}
	return out, nil
}

// make makes the edit.
func (e *edit) make(ctx context.Context) error {
	s := e.s
	if err := s.cfg.Quotas.Grow(ctx, e.req.Tenant); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, editWait)
	defer cancel()
	for {
		ss, err := s.table.acquire(ctx, host.SessionKey{Tenant: e.req.Tenant, Session: e.req.Session}, e.req.Make)
		if err != nil {
			return err
		}
		err = ss.edit(ctx, wait, e)
		ss.release()
		switch {
		// The session was deleted meanwhile, and is another one now.
		case errors.Is(err, errDead):
			continue
		// The end of the request's context is no refusal.
		case err == nil, ctx.Err() != nil:
			return err
		}
		return refused(err)
	}
}

// tooCostly is the error of an edit whose work was ended.
func tooCostly(err error) error {
	if over := (*work.Exceeded)(nil); errors.As(err, &over) {
		return host.Errorf(host.CodeInvalidArgument, "The edit is too costly for its size and that of the state: make it in parts")
	}
	return err
}

// edit makes an edit in the session, when no step has the write to itself. wait ends
// when that has been waited for long enough.
func (ss *session) edit(ctx, wait context.Context, e *edit) error {
	for moved := 0; ; {
		if err := ss.matches(ctx, e); err != nil {
			return err
		}
		if err := ss.recallWorkflows(); err != nil {
			return err
		}
		little, err := ss.prepareEdit(ctx, e)
		if errors.Is(err, engine.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		// A little edit that has lost once is made under the mutex, where it cannot lose.
		if little && moved > 0 {
			e.tick.Prepared = nil
		}
		free, err := ss.tryEdit(e)
		switch {
		// Steps have changed the state while the edit was worked out.
		case errors.Is(err, engine.ErrMoved):
			if moved++; wait.Err() != nil {
				return busyState
			}
			continue
		// The state is another by now, and so is its tag perhaps.
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

// busyState is the answer to an edit that does not get its turn.
var busyState = &host.Error{Code: host.CodeUnavailable, RetryAfter: time.Second, Message: "steps have this part of the state to themselves for now: try again"}

// prepareEdit works an edit out on the state as it is now, without the session's mutex;
// little: so little that it may be done under the mutex.
func (ss *session) prepareEdit(ctx context.Context, e *edit) (little bool, err error) {
	ss.mu.Lock()
	fresh, err := ss.takes(e)
	var keep []*engine.Graph
	if err == nil {
		keep, err = ss.eng.KeptSchemas()
	}
	root, t := ss.eng.State(), e.asked(fresh)
	ss.mu.Unlock()
	if err == nil && e.base != nil && e.base != root {
		err = engine.ErrConflict // it is matched anew
	}
	if err != nil {
		return false, err
	}
	n := ss.s.native(ctx, ss.key.Tenant, editUnits(e.size, root.Bytes()))
	defer n.done()
	e.tick.Prepared, err = engine.PrepareSession(n.Meter, root, t, keep)
	return n.Spent() <= work.Look, tooCostly(err)
}

// asked is the edit's tick, for a session that is fresh or not.
func (e *edit) asked(fresh bool) engine.EditSession {
	t := e.tick
	t.Always = fresh || e.once != nil
	return t
}

// matches looks whether the value has one of the tags that the edit names, without
// the session's mutex: the edit is then made on that state, or not at all.
func (ss *session) matches(ctx context.Context, e *edit) error {
	if len(e.req.Match) == 0 {
		return nil
	}
	root := ss.state.Load()
	if root == e.base {
		return nil
	}
	have, there := state.Get(root, e.tick.At)
	if there && !slices.Contains(e.req.Match, host.AnyTag) {
		v, err := ss.s.valueOf(ctx, ss.key.Tenant, have)
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

// recallWorkflows has the workflows that an edit is checked by brought into memory:
// the reducer is to find them there.
func (ss *session) recallWorkflows() error {
	ss.mu.Lock()
	versions := ss.eng.RanVersions()
	ss.mu.Unlock()
	for _, version := range versions {
		if _, err := ss.s.cfg.Modules.ByDigest(version); host.CodeOf(err) == host.CodeUnavailable {
			return err
		}
	}
	return nil
}

// takes reports whether the session is fresh, or why it does not take the edit. Called
// with mu held.
func (ss *session) takes(e *edit) (fresh bool, err error) {
	fresh = ss.eng.Seq() == 0
	switch {
	case ss.dead:
		return fresh, errDead
	case fresh && !e.req.Make:
		return fresh, history.ErrNoSession
	case fresh && len(e.req.Match) > 0, !fresh && e.req.New:
		return fresh, host.Errorf(host.CodePreconditionFailed, "The session does not exist, or does, against what the request says")
	}
	return fresh, nil
}

// tryEdit ticks an edit, unless a step's ticket covers what it writes: then it says
// when to try again.
func (ss *session) tryEdit(e *edit) (free chan struct{}, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	fresh, err := ss.takes(e)
	if err != nil {
		return nil, err
	}
	if free = ss.tickets.Await(e.paths); free != nil {
		return free, nil
	}
	t := e.asked(fresh)
	if len(e.req.Match) > 0 && (len(t.At) > 0 || !slices.Contains(e.req.Match, host.AnyTag)) {
		t.Base = e.base
	}
	_, pos, err := ss.tick(t, extras{repeats: e.once.Rows(e.req.Session)})
	if err != nil {
		return nil, err
	}
	e.pos, e.root, e.created = pos, ss.eng.State(), fresh
	return nil, nil
}
