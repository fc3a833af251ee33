package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// A step may run a workflow as a child. The invocation is suspended until the child's run
// has ended, and then gets the child's stop event or error. A child in the parent's
// session begins and ends by entries of that session. A child in another session does so
// by messages (see message.go).
//
// A child to which the step gave an id belongs to the invocation: a later attempt that
// asks for the id gets the same child. Any other child belongs to the attempt and its
// call. A child that no attempt can ask for any more is cancelled.

// child is a run that an invocation has begun.
type child struct {
	key      string // names the child in its invocation
	inv      *invocation
	workflow string
	run      string
	handler  string
	session  string // "": the parent's own
	begun    bool   // its session has the run, so clients can find it
	stream   bool   // the parent's stream shows the child's events
	seen     uint64 // number of the last event shown from another session
	since    int64
	start    *StartPart // of a child in another session that has not ended: a fork begins it again

	// The end of the child: a result or an error.
	result *abi.Event
	err    *abi.Error
}

func (c *child) ended() bool { return c.result != nil || c.err != nil }

// parentLink is what a run knows of the run that began it.
type parentLink struct {
	session string
	stream  bool
	shown   uint64 // number of events passed on to the parent
	depth   int    // of this run: 1 for the child of a run without a parent
}

// childKey names a child in its invocation: by the id that the step gave, or by the
// attempt and its call.
func childKey(id string, attempt, n uint64) string {
	if id != "" {
		return "=" + id
	}
	return fmt.Sprintf("#%d/%d", attempt, n)
}

// derive returns bytes that depend on a place in the run. Nobody can predict them without
// the run's seed.
func (r *run) derive(what string, inv *invocation, n uint64) [32]byte {
	h := sha256.New()
	h.Write(r.seed[:])
	h.Write([]byte(what))
	var b [24]byte
	binary.BigEndian.PutUint64(b[:], inv.id)
	binary.BigEndian.PutUint64(b[8:], inv.attempt)
	binary.BigEndian.PutUint64(b[16:], n)
	h.Write(b[:])
	return [32]byte(h.Sum(nil))
}

// derivedID returns an id of 12 letters and digits, like the ids that are drawn at
// random.
func derivedID(from [32]byte) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	id := make([]byte, 0, 12)
	for {
		for _, b := range from {
			// 248 is the largest multiple of 62 in a byte, so no letter is more likely.
			if b < 248 {
				if id = append(id, letters[b%62]); len(id) == cap(id) {
					return string(id)
				}
			}
		}
		from = sha256.Sum256(from[:])
	}
}

// decideRun decides a run_workflow: its child has ended, is still running, or begins.
func (s *Session) decideRun(e *Entry, inv *invocation, req RunWorkflow) (decision, error) {
	key := childKey(req.ID, e.Attempt, e.N)
	c := inv.children[key]
	// The id decides which child a retry gets, so it must not name two workflows.
	switch {
	case c != nil && c.workflow != req.Workflow:
		return decision{}, refusal("failed_precondition", "step %s runs %s by the id %s, by which it has run %s: give each child an id of its own", inv.step.name, clip(req.Workflow), clip(req.ID), c.workflow)
	case c != nil && c.err != nil:
		return decision{}, c.err
	case c != nil && c.ended():
		return decision{response: Response{Event: *c.result}}, nil
	}
	e.Kind, e.Child = EntryChild, &ChildPart{Key: key, Workflow: req.Workflow}
	if c != nil { // begun by an earlier attempt, and still running
		return s.decideSuspension(e, inv)
	}
	// Without a bound a workflow that runs itself would nest for ever.
	if depth, most := inv.run.depth()+1, inv.run.limits.ChildDepth; depth > most {
		return decision{}, refusal(host.RunLimitExceeded, "step %s runs %s as a child of a child, %d deep: more than %d (limit child_depth)", inv.step.name, clip(req.Workflow), depth, most)
	}
	// The engine has no access to other workflows: the caller must resolve the start.
	if req.Start == nil {
		return decision{}, ErrUnresolved
	}
	return s.decideChild(e, inv, req)
}

// decideChild decides the beginning of a child.
func (s *Session) decideChild(e *Entry, inv *invocation, req RunWorkflow) (decision, error) {
	part, r := e.Child, inv.run
	// Ids are derived, not drawn: deciding the same call again gives the same child.
	id := derivedID(r.derive("handler", inv, e.N))
	part.RunID, part.Stream = derivedID(r.derive("run", inv, e.N)), req.Stream
	switch {
	case req.Shared || req.Session == s.key.Session:
	case req.Session != "":
		part.Session = req.Session
	default:
		// A session of the child's own has the name of its handler.
		part.Session = id
	}
	t := *req.Start
	t.RunID, t.HandlerID, t.Seed = part.RunID, id, r.derive("seed", inv, e.N)
	t.Parent = &Parent{Session: s.key.Session, Stream: req.Stream, Depth: r.depth() + 1, RunID: r.rec.RunID, Step: inv.step.name}
	t.Age = r.firstStart()
	d := decision{entry: e}
	part.Start = t.part()
	var err error
	// Only a child in this session can be checked here. Another session checks its own.
	if part.Session == "" {
		var g *Graph
		if part.Start, g, err = s.checkStart(t); err == nil {
			d.root, e.Changes, err = s.stateFor(g, part.Start.Limits)
		}
	}
	// A refused start is an error for the guest, which may handle it.
	if refused := (*host.Error)(nil); errors.As(err, &refused) {
		return decision{}, &abi.Error{Code: string(refused.Code), Message: refused.Error()}
	} else if err != nil {
		return decision{}, err
	}
	if _, err := s.decideSuspension(e, inv); err != nil {
		return decision{}, err
	}
	d.response.Suspended = true
	return d, nil
}

// part returns the start in the form of an entry.
func (t StartRun) part() *StartPart {
	return &StartPart{
		HandlerID: t.HandlerID, Version: t.Version, Event: sanitized(t.Event), Seed: t.Seed,
		Timeout: max(t.Timeout, 0), Limits: t.Limits.Complete(), Parent: t.Parent, Trace: t.Trace, Work: t.Work, Age: max(t.Age, 0), Stalls: true,
	}
}

// depth is the number of runs above this one.
func (r *run) depth() int {
	if r.parent == nil {
		return 0
	}
	return r.parent.depth
}

func (s *Session) foldChild(e *Entry, inv *invocation, root *state.Node) error {
	p := e.Child
	if p == nil {
		return corrupt(e, "no child")
	}
	c := inv.children[p.Key]
	switch {
	case c == nil && (p.Start == nil || s.children[p.RunID] != nil):
		return corrupt(e, "it does not begin the child %s", clip(p.Key))
	case c != nil && (p.Start != nil || c.ended()):
		return corrupt(e, "the child %s has begun before, or has ended", clip(p.Key))
	// A retry waits for the child that an earlier attempt began.
	case c != nil:
		s.suspend(inv, suspension{n: e.N, child: c})
		s.settle(inv.run, false)
		return nil
	}
	c = &child{key: p.Key, inv: inv, workflow: p.Workflow, run: p.RunID, handler: p.Start.HandlerID, session: p.Session, begun: p.Session == "", stream: p.Stream, since: s.now}
	if inv.children == nil {
		inv.children = make(map[string]*child)
	}
	inv.children[p.Key] = c
	s.children[p.RunID] = c
	s.suspend(inv, suspension{n: e.N, child: c})
	s.settle(inv.run, false)
	if p.Session == "" {
		return s.foldRun(e, p.RunID, p.Start, root)
	}
	c.start = p.Start
	s.postStart(c)
	return nil
}

// postStart posts the message that begins a child in another session.
func (s *Session) postStart(c *child) {
	p := c.start
	s.post(Message{To: c.session, Start: &StartRun{
		RunID: c.run, HandlerID: p.HandlerID, Version: p.Version, Event: p.Event, Seed: p.Seed,
		Timeout: p.Timeout, Limits: p.Limits, Parent: p.Parent, Trace: p.Trace, Work: p.Work, Age: p.Age,
	}})
}

// tellParent reports the end of a run to the run that began it.
func (s *Session) tellParent(r *run) {
	if r.parent == nil {
		return
	}
	end := ChildEnd{RunID: r.rec.RunID, Result: r.result}
	if end.Result == nil {
		end.Err = r.failedChild()
	}
	if r.parent.session == s.key.Session {
		s.childEnded(end)
		return
	}
	s.post(Message{To: r.parent.session, Ended: &end})
}

// childEnded answers the invocation that waits for a child.
func (s *Session) childEnded(end ChildEnd) {
	c := s.children[end.RunID]
	if c == nil {
		return // no invocation can ask for the child any more
	}
	delete(s.children, end.RunID)
	c.result, c.err, c.start = end.Result, end.Err, nil
	inv := c.inv
	if inv.phase != phaseSuspended || inv.suspended.child != c {
		return // the next attempt will ask for the result
	}
	s.resume(inv)
	s.settle(inv.run, false)
}

// failedChild is the error of a run as the step that began it gets it. The message does
// not name the workflow: the caller adds the name in front, like every SDK and every
// flow.
func (r *run) failedChild() *abi.Error {
	what := "failed: " + r.rec.Error
	if r.rec.Status == host.StatusCancelled {
		what = "was cancelled"
	}
	return &abi.Error{Code: r.rec.ErrorCode, Message: fmt.Sprintf("the child run (handler %s) %s", r.rec.HandlerID, what)}
}

// leave cancels the children that no attempt can ask for any more: all children if the
// invocation is over, else the children of the attempt that has ended.
func (s *Session) leave(inv *invocation, over bool) {
	if len(inv.children) == 0 {
		return
	}
	for _, key := range sortedKeys(inv.children) {
		c := inv.children[key]
		if !over && key[0] == '=' { // the child belongs to the invocation
			continue
		}
		s.visited++
		delete(inv.children, key)
		if s.children[c.run] != c {
			continue // the child has ended
		}
		delete(s.children, c.run)
		if c.session != "" {
			s.post(Message{To: c.session, Cancel: c.run})
		} else if r := s.runs[c.run]; r != nil {
			s.cancel(r)
		}
	}
}

// decideEnded decides the end of a child that another session reports.
func (s *Session) decideEnded(e *Entry, t ChildEnded) (decision, error) {
	c := s.children[t.End.RunID]
	// The message was delivered before, or the child is not wanted any more.
	if c == nil || c.session == "" {
		return decision{}, ErrStale
	}
	// The error comes from outside this session: bound it.
	end := t.End
	if end.Err != nil {
		end.Err = sanitizedError(end.Err)
	}
	e.Kind, e.RunID, e.Ended = EntryChildEnded, c.inv.run.rec.RunID, &end
	return decision{entry: e}, nil
}

func (s *Session) foldEnded(e *Entry) error {
	if e.Ended == nil || s.children[e.Ended.RunID] == nil || (e.Ended.Err == nil) == (e.Ended.Result == nil) {
		return corrupt(e, "it does not end a running child")
	}
	s.childEnded(*e.Ended)
	return nil
}

// passOn shows an event of a run on the parent's stream, if the parent asked for that.
func (s *Session) passOn(r *run, ev host.StreamEvent) {
	// Internal events concern the child only, and its end reaches the parent as an
	// answer.
	if r.parent == nil || !r.parent.stream || ev.Internal || ev.Terminal {
		return
	}
	r.parent.shown++
	shown := ChildShow{RunID: r.rec.RunID, Seq: r.parent.shown, Type: ev.Type, Types: ev.Types, Base: ev.Base, Body: ev.Body, Workflow: ev.Workflow}
	if r.parent.session == s.key.Session {
		s.show(shown)
		return
	}
	s.post(Message{To: r.parent.session, Shown: &shown})
}

// show puts an event of a child on the stream of its parent.
func (s *Session) show(shown ChildShow) {
	c := s.children[shown.RunID]
	if c == nil {
		return
	}
	c.seen = shown.Seq
	r := c.inv.run
	ev := host.StreamEvent{
		Seq: r.handler.next, RunID: r.rec.RunID, Type: shown.Type, Types: shown.Types, Base: shown.Base,
		Body: shown.Body, Workflow: shown.Workflow,
	}
	r.handler.next++
	// The parent may be a child itself: then its own parent shows the event, too.
	s.emit(Publish{HandlerID: r.handler.id, Event: ev})
	s.passOn(r, ev)
}

func (s *Session) decideShown(e *Entry, t ChildShown) (decision, error) {
	c := s.children[t.Show.RunID]
	// Messages may arrive more than once: show each event once.
	if c == nil || t.Show.Seq <= c.seen {
		return decision{}, ErrStale
	}
	show := t.Show
	e.Kind, e.RunID, e.Shown = EntryChildShown, c.inv.run.rec.RunID, &show
	return decision{entry: e}, nil
}

func (s *Session) foldShown(e *Entry) error {
	if e.Shown == nil || s.children[e.Shown.RunID] == nil || e.Shown.Seq <= s.children[e.Shown.RunID].seen {
		return corrupt(e, "it has no new event of a child")
	}
	s.show(*e.Shown)
	return nil
}
