package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/position"
)

// What has to hold of the store after every crash and at the end:
//
//   - every session's journal folds, and its state holds each effect once: a
//     counter counts the tokens in its list, no token is there twice, no call of
//     an attempt has two entries;
//   - a durable finish has all that its guest did before it;
//   - the record of an open attempt reaches from its first call to its last
//     effect, without a gap;
//   - when the server has come to rest, no attempt is open and no timer overdue;
//   - a call to the outside is answered well once at most, one of mode fail reaches
//     the outside once at most, and at rest none is left open;
//   - streams count without a gap, and end with their run's terminal event;
//   - what a client was told still holds: the run is there, what was sent has an
//     entry, what was cancelled has ended, what was purged is gone, and every
//     stream has the events that a reader saw.

type startOp struct {
	handler string
	runID   string // once a client was told of it
	ended   *host.Run
	gone    bool // a purge may have deleted it
	once    string
	session host.SessionKey // once a client was told of it
}

type sendOp struct {
	tag, run string
	session  host.SessionKey
}

type cancelOp struct {
	id    string
	purge bool
	// before are the acknowledged starts at the time of the request.
	before []*startOp
}

// facts is what clients know. Goroutines of a world write it one at a time.
type facts struct {
	starts    []*startOp
	sends     []*sendOp
	cancelled []*cancelOp
	purged    []*startOp
	pending   map[*cancelOp]bool // purges under way
	readers   []*readerOp
	crashes   int
	edits     []*outsideEdit
	deletions int
	erased    map[host.SessionKey][]string // tokens of edits that went with a session
}

type readerOp struct {
	handler string
	last    int64
	seen    []host.StreamEvent
	gone    bool
}

func newFacts() facts {
	return facts{pending: map[*cancelOp]bool{}, erased: map[host.SessionKey][]string{}}
}

func (f *facts) started(op *startOp, run host.Run, waited bool) {
	op.runID, op.session = run.RunID, host.SessionKey{Tenant: run.Tenant, Session: run.SessionID}
	if waited {
		op.ended = &run
	}
}

func (f *facts) sent(op *sendOp) { f.sends = append(f.sends, op) }

// handlerOf finds the handler that an id means.
func (f *facts) handlerOf(id string) string {
	for _, op := range f.starts {
		if op.runID == id {
			return op.handler
		}
	}
	return id
}

func (f *facts) cancelBegins(id string, purge bool) *cancelOp {
	op := &cancelOp{id: id, purge: purge}
	if purge {
		f.pending[op] = true
		for _, st := range f.starts {
			if st.handler == f.handlerOf(id) && st.runID != "" {
				op.before = append(op.before, st)
			}
		}
		f.doubt(op)
	}
	return op
}

// doubt marks what a purge may delete.
func (f *facts) doubt(op *cancelOp) {
	handler := f.handlerOf(op.id)
	for _, st := range f.starts {
		if st.handler == handler {
			st.gone = true
		}
	}
	for _, r := range f.readers {
		if r.handler == handler {
			r.gone = true
		}
	}
}

func (f *facts) cancelEnds(op *cancelOp, done bool) {
	if op.purge {
		f.doubt(op)
		if done {
			delete(f.pending, op)
		} // else its client left before it was durable, which it may still become
	}
	switch {
	case done && op.purge:
		f.purged = append(f.purged, op.before...)
	case done:
		f.cancelled = append(f.cancelled, op)
	}
}

// reader goes on where another of the handler was when the server crashed.
func (f *facts) reader(handler string) *readerOp {
	r := &readerOp{handler: handler, last: position.FromRun}
	for _, old := range f.readers {
		if old.handler == handler && !old.gone && len(old.seen) > 0 {
			r.last = old.last
		}
	}
	f.readers = append(f.readers, r)
	return r
}

// take checks that the events follow what was seen.
func (r *readerOp) take(events []host.StreamEvent) error {
	for _, ev := range events {
		if r.last >= 0 && int64(ev.Seq) != r.last+1 && !r.gone {
			return fmt.Errorf("the stream of %s goes from %d to %d", r.handler, r.last, ev.Seq)
		}
		r.last = int64(ev.Seq)
		r.seen = append(r.seen, ev)
	}
	return nil
}

// checkDurable holds what the store has against what clients know.
func (s *sim) checkDurable() {
	for op := range s.facts.pending {
		s.facts.doubt(op)
	}
	s.forgetDropped()
	sessions := map[host.SessionKey][]engine.Entry{}
	for _, tenant := range []string{"t", "u"} {
		for i := range simHandlers {
			s.checkSession(host.SessionKey{Tenant: tenant, Session: fmt.Sprint(tenant, i)}, sessions)
		}
		for i := range simSessions {
			s.checkSession(host.SessionKey{Tenant: tenant, Session: fmt.Sprint("s", i)}, sessions)
		}
	}
	s.checkChildren(sessions)
	s.checkOnce()
	ctx := context.Background()
	for _, op := range s.facts.starts {
		if op.runID == "" || op.gone {
			continue
		}
		run, err := s.store.Run(ctx, tenantOf(op.handler), op.runID)
		switch {
		case err != nil:
			s.failf("run %s of handler %s was acknowledged and is lost: %v", op.runID, op.handler, err)
		case op.ended != nil && (!op.ended.Status.Final() || op.ended.Status != run.Status || op.ended.Completed != run.Completed):
			s.failf("a client was told that run %s is %+v, and it is %+v", op.runID, *op.ended, run)
		}
	}
	s.checkSends(sessions)
	s.checkEdits()
	s.checkCancels()
	s.checkReaders()
	s.checkSpent()
}

// checkOnce wants one run of all the starts under a key.
func (s *sim) checkOnce() {
	runs := map[string]string{}
	for _, op := range s.facts.starts {
		if op.once == "" || op.runID == "" {
			continue
		}
		if other, again := runs[op.once]; again {
			if s.total.Repeated++; other != op.runID {
				s.failf("the start %s gave the runs %s and %s", op.once, other, op.runID)
			}
		}
		runs[op.once] = op.runID
	}
}

// checkChildren looks at the sessions that children have of their own, and at
// rest whether every child whose parent is over is over too.
func (s *sim) checkChildren(sessions map[host.SessionKey][]engine.Entry) {
	for known := -1; known != len(sessions); {
		known = len(sessions)
		for key, entries := range sessions {
			for i := range entries {
				if c := entries[i].Child; c != nil && c.Session != "" {
					if at := (host.SessionKey{Tenant: key.Tenant, Session: c.Session}); sessions[at] == nil {
						s.checkSession(at, sessions)
					}
				}
			}
		}
	}
	if !s.atRest {
		return
	}
	ctx := context.Background()
	for key, entries := range sessions {
		for i := range entries {
			c := entries[i].Child
			if c == nil || c.Start == nil {
				continue
			}
			parent, err := s.store.Run(ctx, key.Tenant, entries[i].RunID)
			child, kidErr := s.store.Run(ctx, key.Tenant, c.RunID)
			if err == nil && parent.Status.Final() && kidErr == nil && !child.Status.Final() {
				s.failf("run %s is over, its child %s in %q is not", parent.RunID, c.RunID, c.Session)
			}
		}
	}
}

func (s *sim) checkSends(sessions map[host.SessionKey][]engine.Entry) {
	gone := map[string]bool{}
	for _, op := range s.facts.starts {
		if op.gone {
			gone[op.runID] = true
		}
	}
	for _, op := range s.facts.sends {
		n := 0
		for _, e := range sessions[op.session] {
			if e.Kind == engine.EntryPost && tagOf(e.Event) == op.tag {
				n++
			}
		}
		known := slices.ContainsFunc(s.facts.starts, func(st *startOp) bool { return st.runID == op.run })
		if n != 1 && known && !gone[op.run] {
			s.failf("event %s was accepted and has %d entries", op.tag, n)
		}
	}
}

func (s *sim) checkCancels() {
	ctx := context.Background()
	for _, op := range s.facts.cancelled {
		if run, err := s.store.Run(ctx, tenantOf(s.facts.handlerOf(op.id)), op.id); err == nil && !run.Status.Final() {
			s.failf("run %s was cancelled and is %s", op.id, run.Status)
		}
	}
	for _, op := range s.facts.purged {
		if run, err := s.store.Run(ctx, tenantOf(op.handler), op.runID); err == nil {
			s.failf("run %s was purged and is there: %+v", op.runID, run)
		}
	}
}

func (s *sim) checkReaders() {
	ctx := context.Background()
	for _, r := range s.facts.readers {
		if r.gone || len(r.seen) == 0 {
			continue
		}
		stored, err := s.store.Stream(ctx, tenantOf(r.handler), r.handler, int64(r.seen[0].Seq)-1, 1<<30)
		if err != nil || len(stored) < len(r.seen) {
			s.failf("a reader of %s saw %d events, the store has %d: %v", r.handler, len(r.seen), len(stored), err)
			continue
		}
		for i := range r.seen {
			if a, b := r.seen[i], stored[i]; a.Seq != b.Seq || a.Type != b.Type || a.RunID != b.RunID || string(a.Body) != string(b.Body) {
				s.failf("a reader of %s saw %+v, the store has %+v", r.handler, a, b)
			}
		}
	}
}

func tagOf(ev *abi.Event) string {
	if ev == nil {
		return ""
	}
	tag, _ := fieldsOf(ev.Body)["tag"].(string)
	return tag
}

// rowHeader is what stands before the entries in a journal row.
const rowHeader = 5

// checkSession folds a session and looks at its effects.
func (s *sim) checkSession(key host.SessionKey, sessions map[host.SessionKey][]engine.Entry) {
	name := key.Session
	stored, err := s.store.LoadSession(context.Background(), key)
	if err != nil {
		return
	}
	rows := s.rows(key)
	eng := engine.New(key, func(v string) (*engine.Graph, error) { return s.modules[v], nil })
	a := &audit{sim: s, session: name, calls: map[attemptKey]*callsOf{}, effects: map[effect]int{}, next: map[string]uint64{}, ended: map[string]bool{}, asked: map[uint64]string{}, answered: map[string]bool{}, was: map[attemptKey]attemptKey{}}
	for _, row := range rows {
		var entries []engine.Entry
		if err := abi.Unmarshal(row.Data[rowHeader:], &entries); err != nil {
			s.failf("session %s: %v", name, err)
			return
		}
		for i := range entries {
			cmds, err := eng.Fold(&entries[i])
			if err != nil {
				s.failf("session %s does not fold: %v", name, err)
				return
			}
			a.entry(eng, &entries[i], cmds)
			a.outcalls(eng, &entries[i])
		}
		sessions[key] = append(sessions[key], entries...)
	}
	s.total.Entries += int(eng.Seq())
	if eng.WakeAt() != stored.WakeAt {
		s.failf("session %s wakes at %d, the store says %d", name, eng.WakeAt(), stored.WakeAt)
	}
	if at := eng.WakeAt(); s.atRest && at != host.WakeNever && at < s.clock().Add(-time.Second).UnixNano() {
		s.failf("session %s has an attempt or a timer that nobody sees to:\n%s", name, eng.Dump())
	}
	if mail := eng.MailTo(); s.atRest && len(mail) > 0 {
		s.failf("session %s has messages that nobody carries:\n%s", name, eng.Dump())
	}
	a.state(eng)
	a.attempts(eng)
	s.checkLoaded(&stored, key, eng.Dump())
}

// audit gathers what a journal says.
type audit struct {
	sim     *sim
	session string
	calls   map[attemptKey]*callsOf
	effects map[effect]int
	next    map[string]uint64 // of a handler's stream
	ended   map[string]bool   // runs
	// Calls of resources by their keys: those asked, by invocation, and those that
	// were answered well.
	asked    map[uint64]string
	answered map[string]bool
	// Attempts that have gone on in a run that was retried, by what they are there.
	was map[attemptKey]attemptKey
}

// callsOf is what the journal has of one attempt.
type callsOf struct {
	last     uint64 // call of the newest effect
	recorded uint64 // calls in the record
	finished bool
	open     bool // its input is there
}

// retried notes which attempts go on: their guests know the run in which they began.
func (a *audit) retried(eng *engine.Session, e *engine.Entry) {
	for i := range e.Held {
		h := &e.Held[i]
		if view, ok := eng.Invocation(h.Invocation); ok && h.Open != nil {
			a.was[attemptKey{view.RunID, h.Invocation, h.Attempt}] = attemptKey{h.Open.RunID, h.Invocation, h.Attempt}
		}
	}
}

func (a *audit) entry(eng *engine.Session, e *engine.Entry, cmds []engine.Command) {
	for _, c := range cmds {
		p, ok := c.(engine.Publish)
		if !ok {
			continue
		}
		if p.Event.Seq != a.next[p.HandlerID] {
			a.sim.failf("the stream of %s goes from %d to %d", p.HandlerID, a.next[p.HandlerID], p.Event.Seq)
		}
		a.next[p.HandlerID] = p.Event.Seq + 1
		if a.ended[p.Event.RunID] {
			a.sim.failf("run %s has an event after its terminal one", p.Event.RunID)
		}
		a.ended[p.Event.RunID] = p.Event.Terminal
	}
	if e.Finish != nil {
		for i := range e.Finish.Staged {
			kind := "send"
			if e.Finish.Staged[i].Stream {
				kind = "note"
			}
			a.effects[effect{kind, tagOf(&e.Finish.Staged[i].Event)}]++
		}
	}
	switch e.Kind {
	case engine.EntryDelivered:
		a.sim.total.Messages++
	case engine.EntryStream:
		a.effects[effect{"note", tagOf(e.Event)}]++
	case engine.EntryQueue:
		a.sim.total.Queued++
	case engine.EntryBegin:
		a.sim.total.Turns++
	case engine.EntrySend:
		a.effects[effect{"send", tagOf(e.Event)}]++
	}
	if e.Kind == engine.EntryRetry {
		a.retried(eng, e)
	}
	if !e.OfAttempt() {
		return
	}
	key := attemptKey{e.RunID, e.Invocation, e.Attempt}
	if was, goesOn := a.was[key]; goesOn {
		key = was
	}
	c := a.calls[key]
	if c == nil {
		c = &callsOf{}
		a.calls[key] = c
	}
	c.finished = c.finished || e.Finish != nil
	c.open = c.open || e.Open != nil
	if e.N != 0 {
		if e.N <= c.last {
			a.sim.failf("session %s: call %d of %+v has an entry after call %d", a.session, e.N, key, c.last)
		}
		c.last = e.N
		if e.Kind == engine.EntrySleep || e.Kind == engine.EntryChild || e.Kind == engine.EntryResource || e.Kind == engine.EntryWait && e.Wait.Taken == 0 {
			c.last-- // it has no answer yet
		}
	}
	for _, r := range e.Calls {
		if r.N != c.recorded+1 {
			a.sim.failf("session %s: the record of %+v goes from call %d to %d", a.session, key, c.recorded, r.N)
		}
		c.recorded = r.N
	}
}

// state counts the tokens in the state.
func (a *audit) state(eng *engine.Session) {
	root := fieldsOf(eng.State().Encode())
	counts, _ := root["c"].(map[string]any)
	lists, _ := root["l"].(map[string]any)
	for k, list := range lists {
		tokens, _ := list.([]any)
		if n, _ := counts[k].(int64); int(n) != len(tokens) {
			a.sim.failf("session %s: c.%s counts %v, its list holds %d", a.session, k, counts[k], len(tokens))
		}
		a.edits(tokens)
	}
	regions, _ := root["r"].(map[string]any)
	for k, v := range regions {
		m, _ := v.(map[string]any)
		tokens, _ := m["t"].([]any)
		if n, _ := m["n"].(int64); int(n) != len(tokens) {
			a.sim.failf("session %s: r.%s counts %d, its list holds %d", a.session, k, n, len(tokens))
		}
		a.edits(tokens)
	}
	sets, _ := root["g"].([]any)
	a.edits(sets)
	for e, n := range a.effects {
		if n > 1 {
			a.sim.failf("session %s: %v is there %d times", a.session, e, n)
		}
	}
}

func (a *audit) edits(tokens []any) {
	for _, t := range tokens {
		a.effects[effect{"edit", fmt.Sprint(t)}]++
	}
}

// attempts checks that finished ones have all their effects, and open ones all
// their record.
func (a *audit) attempts(eng *engine.Session) {
	open := map[uint64]bool{}
	for _, id := range eng.Open() {
		open[id] = true
	}
	for key, c := range a.calls {
		view, _ := eng.Invocation(key.inv)
		if open[key.inv] && view.Attempt == key.attempt && !c.finished && (c.recorded != c.last || !c.open) {
			a.sim.failf("session %s: of open attempt %+v call %d is an effect, its record has %d calls (input: %v)",
				a.session, key, c.last, c.recorded, c.open)
		}
		if !c.finished {
			continue
		}
		a.sim.mu.Lock()
		done, known := a.sim.attempt[key]
		a.sim.mu.Unlock()
		if !known {
			continue // its guest was ended by a limit
		}
		for _, e := range done {
			if kind, undone := strings.CutPrefix(e.kind, "no "); undone {
				if n := a.effects[effect{kind, e.token}]; n != 0 {
					a.sim.failf("session %s: atomic %+v has failed, its %s %s is there", a.session, key, kind, e.token)
				}
				continue
			}
			if a.effects[e] != 1 {
				a.sim.failf("session %s: %+v has finished, its %s %s is there %d times", a.session, key,
					e.kind, strings.TrimSpace(e.token), a.effects[e])
			}
		}
	}
}

// rows are a session's whole journal.
func (s *sim) rows(key host.SessionKey) []host.JournalRow {
	rows, err := s.store.History(context.Background(), key, 0, 0, 1<<20)
	if err != nil {
		return nil
	}
	return rows
}

// checkLoaded: a session that is loaded from its newest snapshot is the one that
// is folded from all of its entries.
func (s *sim) checkLoaded(stored *host.StoredSession, key host.SessionKey, want string) {
	eng := engine.New(key, func(v string) (*engine.Graph, error) { return s.modules[v], nil })
	for _, row := range stored.Rows {
		var entries []engine.Entry
		if err := abi.Unmarshal(row[rowHeader:], &entries); err != nil {
			s.failf("session %s: %v", key.Session, err)
			return
		}
		for i := range entries {
			if eng.Skips(&entries[i]) {
				continue
			}
			if entries[i].Kind == engine.EntrySnapshot && eng.Seq() == 0 {
				s.total.FromSnapshots++
			}
			if _, err := eng.Fold(&entries[i]); err != nil {
				s.failf("session %s does not fold from its snapshot: %v", key.Session, err)
				return
			}
		}
	}
	if got := eng.Dump(); got != want {
		s.failf("session %s is from its snapshot\n%s\nand from its entries\n%s", key.Session, got, want)
	}
}

// stateOf is the state of a stored session.
func (s *sim) stateOf(key host.SessionKey) abi.Raw {
	return s.stored(key).State().Encode()
}

// dump shows a stored session to whoever has to find out.
func (s *sim) dump(key host.SessionKey) string { return s.stored(key).Dump() }

// stored folds a stored session, as far as it folds.
func (s *sim) stored(key host.SessionKey) *engine.Session {
	eng := engine.New(key, func(v string) (*engine.Graph, error) { return s.modules[v], nil })
	for _, row := range s.rows(key) {
		var entries []engine.Entry
		if err := abi.Unmarshal(row.Data[rowHeader:], &entries); err != nil {
			return eng
		}
		for i := range entries {
			if _, err := eng.Fold(&entries[i]); err != nil {
				return eng
			}
		}
	}
	return eng
}
