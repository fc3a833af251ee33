package engine

import (
	"crypto/sha256"
	"slices"

	"github.com/weftrun/weft/host"
)

// A fork is a run that goes on a second time from a position of its past, in a
// session of its own, as if it had come there just now.
//
// # Ids of a fork
//
// Clients name runs and handlers, so those of a fork are new: the run's are given,
// its children's in the same session are derived from the fork's seed and the old
// ids. Ids that only the session itself uses (invocations, events, timers, waits,
// collections, calls) stay: the attempts under way have seen them.
//
// Every run of the fork gets a new seed, from which the ids of children to come and
// the jitter of retries to come are derived: derived from the old seed, the next
// child would have the id of the one that the old run has begun from the same
// place. What was derived before is not derived again. An attempt under way is
// replayed from its record, which has the answers and not the seeds: its random
// numbers come from its own AttemptOpen, which stays, and its input keeps the run
// and session ids under which it began (AttemptOpen.RunID, SessionID), as a guest
// that has sent or stored them would depart from its record otherwise. A child that
// it waits for is known to the replay by its place (attempt and call), never by id.
//
// Attempts that begin after the fork see the new ids.

// ForkTarget says what a fork is to be.
type ForkTarget struct {
	Key       host.SessionKey // a session that does not exist
	RunID     string
	HandlerID string
	Seed      [32]byte
	At        int64 // Unix nanoseconds
	// Trace is that of who asked for the fork; nil: none. The children that go on
	// with the run have the same.
	Trace *host.Trace
}

// ForkedRun is a run that goes on in a fork.
type ForkedRun struct {
	RunID, HandlerID string // in the fork
	Was              string // its run id
}

// Fork turns the session into that of a fork: the state, the run and its children
// of the same session, with the time that has passed since the newest entry taken
// out of it. Without a run (its id is "") the state alone stays. Everything else is dropped. The session is of no further use but for
// [Session.Snapshot], for an [Adopt]; after an error for nothing.
//
// # Errors
//
// [ErrUnknownRun]; a [*host.Error] for a run that has not begun.
func (s *Session) Fork(runID string, t ForkTarget) (runs []ForkedRun, anew []host.Renewed, err error) {
	f := &forker{s: s, t: t, lost: t.At - s.now}
	var top *run
	if runID != "" {
		if top, err = s.activeRun(runID); err != nil {
			return nil, nil, err
		}
		f.gather(top)
	}
	f.leaveOthers()
	s.turns, s.outbox, s.ended = turns{}, outbox{}, host.Run{}
	s.key, s.seq, s.now = t.Key, 0, t.At
	s.handlers, s.children = make(map[string]*handler), make(map[string]*child)
	for _, r := range f.runs {
		runs = append(runs, f.rename(r, r == top))
	}
	s.runs = make(map[string]*run, len(f.runs))
	s.ForgetRan()
	for _, r := range f.runs {
		s.runs[r.rec.RunID] = r
		s.noteRan(r.graph.Workflow(), r.rec.Version)
	}
	for _, r := range f.runs {
		renewed, err := f.children(r)
		if err != nil {
			return nil, nil, err
		}
		anew = append(anew, renewed...)
	}
	f.delay()
	for _, r := range f.runs {
		if r.ending == nil {
			r.rec.WaitingFor = r.waitingFor(r.alive == r.outside, s.now)
		}
	}
	s.out = nil // of messages: Adopt tells of them
	return runs, anew, nil
}

// Limit gives every run of the session, and every child that it has begun, the
// limits that a version has. What limits says no to ends it: the session is of no
// use then.
func (s *Session) Limit(limits func(version string) (host.Limits, error)) error {
	for _, id := range sortedKeys(s.runs) {
		r := s.runs[id]
		l, err := limits(r.rec.Version)
		if err != nil {
			return err
		}
		r.limits = l.Complete()
	}
	for _, id := range sortedKeys(s.children) {
		c := s.children[id]
		if c.start == nil {
			continue
		}
		l, err := limits(c.start.Version)
		if err != nil {
			return err
		}
		start := *c.start
		start.Limits = l.Complete()
		c.start = &start
	}
	return nil
}

// forker makes a fork.
type forker struct {
	s     *Session
	t     ForkTarget
	lost  int64 // nanoseconds since the newest entry; negative if its clock was ahead
	runs  []*run
	names map[string]ForkedRun // by old run id
}

// gather finds the run's descendants in the session, parents first.
func (f *forker) gather(top *run) {
	f.runs = []*run{top}
	for i := 0; i < len(f.runs); i++ {
		for inv := f.runs[i].oldest; inv != nil; inv = inv.newer {
			for _, key := range sortedKeys(inv.children) {
				c := inv.children[key]
				if r := f.s.runs[c.run]; r != nil && r.parent != nil && c.session == "" && !c.ended() && !slices.Contains(f.runs, r) {
					f.runs = append(f.runs, r)
				}
			}
		}
	}
}

// leaveOthers takes all other runs out of the session, without ending them.
func (f *forker) leaveOthers() {
	s := f.s
	for _, r := range s.runs {
		if slices.Contains(f.runs, r) {
			continue
		}
		s.disarm(r.deadline)
		for inv := r.oldest; inv != nil; inv = inv.newer {
			s.disarm(inv.timer)
			if inv.suspended != nil {
				s.disarm(inv.suspended.timer)
			}
			if inv.phase == phaseRunning && r.rec.Blocked == nil {
				s.seats--
			}
			delete(s.invocations, inv.id)
			delete(s.calls, inv.id)
		}
	}
}

// derive makes what belongs to a run of the fork, from its seed.
func (f *forker) derive(what, of string) [32]byte {
	h := sha256.New()
	h.Write(f.t.Seed[:])
	h.Write(appendText(appendText(nil, what), of))
	return [32]byte(h.Sum(nil))
}

// rename gives a run its ids in the fork.
func (f *forker) rename(r *run, top bool) ForkedRun {
	s, was := f.s, r.rec.RunID
	out := ForkedRun{RunID: f.t.RunID, HandlerID: f.t.HandlerID, Was: was}
	if top {
		r.parent = nil // it does not wait for this one
	} else {
		out.RunID, out.HandlerID = derivedID(f.derive("run", was)), derivedID(f.derive("handler", was))
		r.parent.session = f.t.Key.Session
	}
	if f.names == nil {
		f.names = make(map[string]ForkedRun)
	}
	f.names[was] = out
	r.seed = f.derive("seed", was)
	r.handler = &handler{id: out.HandlerID, run: out.RunID}
	s.handlers[out.HandlerID] = r.handler
	r.rec.Tenant, r.rec.SessionID = f.t.Key.Tenant, f.t.Key.Session
	r.rec.RunID, r.rec.HandlerID = out.RunID, out.HandlerID
	r.rec.Started, r.rec.Updated, r.age = s.now, s.now, 0
	r.rec.Trace = f.t.Trace
	return out
}

// children gives the children of a run their new names; those of other sessions
// are begun anew, and so are calls of resources: under a new key, as that is made
// of the run's seed.
func (f *forker) children(r *run) (anew []host.Renewed, err error) {
	s := f.s
	for inv := r.oldest; inv != nil; inv = inv.newer {
		if c := s.calls[inv.id]; c != nil {
			anew = append(anew, host.Renewed{Kind: host.RenewedResource, Step: inv.step.name, Resource: c.part.Resource})
		}
		for _, key := range sortedKeys(inv.children) {
			c := inv.children[key]
			if c.ended() {
				continue
			}
			if c.session == "" {
				name, ok := f.names[c.run]
				if !ok || s.runs[name.RunID].parent == nil {
					return nil, corruptChild(c)
				}
				c.run, c.handler = name.RunID, name.HandlerID
				s.runs[c.run].parent.depth = r.depth() + 1
			} else {
				if c.start == nil {
					return nil, corruptChild(c)
				}
				anew = append(anew, f.renew(r, inv, c))
			}
			s.children[c.run] = c
		}
	}
	return anew, nil
}

func corruptChild(c *child) error {
	return host.Errorf(host.CodeInternal, "the child %s (handler %s) is not known well enough to go on in a fork", clip(c.workflow), clip(c.handler))
}

// renew begins a child in another session: in one of its own again, if it has one.
func (f *forker) renew(r *run, inv *invocation, c *child) host.Renewed {
	was := c.handler
	if c.session == was {
		c.session = derivedID(f.derive("handler", c.run))
	}
	start := *c.start
	start.HandlerID = derivedID(f.derive("handler", c.run))
	start.Seed = f.derive("seed", c.run)
	start.Trace = f.t.Trace
	start.Parent = &Parent{Session: f.t.Key.Session, Stream: c.stream, Depth: r.depth() + 1}
	start.Age = r.firstStart()
	c.run, c.handler = derivedID(f.derive("run", c.run)), start.HandlerID
	c.start, c.begun, c.seen = &start, false, 0
	f.s.postStart(c)
	return host.Renewed{Kind: host.RenewedChild, Step: inv.step.name, Workflow: c.workflow, HandlerID: c.handler, Was: was}
}

// delay takes the time that has passed since the newest entry out of the runs: what
// was to be in an hour is in an hour from now.
func (f *forker) delay() {
	s := f.s
	for _, t := range s.timers.heap {
		t.at = later(t.at, f.lost)
	}
	move := func(at *int64) { *at = later(*at, f.lost) }
	for _, r := range f.runs {
		move(&r.begun)
		if r.held() {
			move(&r.heldAt)
		}
		if f.still(r.deadline); r.deadline != nil && r.deadline.slot < 0 {
			move(&r.stopped)
		}
		r.rec.WaitingFor = slices.Clone(r.rec.WaitingFor)
		for i := range r.rec.WaitingFor {
			move(&r.rec.WaitingFor[i].Since)
		}
		for inv := r.oldest; inv != nil; inv = inv.newer {
			if inv.began {
				move(&inv.start)
			}
			f.still(inv.timer)
			if inv.line != nil {
				move(&inv.since)
			}
			if on := inv.suspended; on != nil {
				f.still(on.timer)
			}
			for _, w := range inv.waiters {
				move(&w.since)
			}
			for _, c := range inv.children {
				move(&c.since)
			}
		}
	}
}

// still moves a timer that does not run on; those that do are moved with the heap.
func (f *forker) still(t *timer) {
	if t != nil && t.slot < 0 {
		t.at = later(t.at, f.lost)
	}
}
