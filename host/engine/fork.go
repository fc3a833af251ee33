package engine

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/weftrun/weft/host"
)

// A fork continues a run a second time from a point in its past, in a session of its own,
// as if the run had reached that point just now.
//
// # Ids of a fork
//
// Clients use the names of runs and handlers, so the names in a fork are new. The caller
// chooses those of the run. Those of its children in the same session are derived from
// the fork's seed and the old names. Ids that only the session itself uses (invocations,
// events, timers, waits, collections, calls) stay, because open attempts have seen them.
//
// Every run of the fork gets a new seed. The ids of later children and the jitter of
// later retries are derived from it. With the old seed, the next child would get the id
// of the child that the old run began from the same point. Values that were derived
// before are not derived again. An open attempt is replayed from its record, which
// contains the answers and not the seeds. Its random numbers come from its own
// AttemptOpen, which stays. Its input keeps the run and session ids under which it began
// (AttemptOpen.RunID, SessionID): a guest that has sent or stored these ids would
// otherwise depart from its record. The replay identifies a child that the attempt waits
// for by its place (attempt and call), never by its id.
//
// Attempts that begin after the fork see the new ids.

// ForkTarget describes the fork.
type ForkTarget struct {
	Key       host.SessionKey // a session that does not exist
	RunID     string
	HandlerID string
	Seed      [32]byte
	At        int64 // Unix nanoseconds
	// After is the position after which the fork begins; 0: that of the newest entry. It is
	// earlier if the past was changed for the fork.
	After uint64
	// Trace is the trace context of the caller that asked for the fork; nil: none.
	// Children that continue with the run have the same.
	Trace *host.Trace
	// Retry: the run continues in the place of the one that failed.
	Retry bool
}

// ForkedRun is a run that continues in a fork.
type ForkedRun struct {
	RunID, HandlerID string // in the fork
	Was              string // its run id before the fork
}

// Fork turns the session into the fork: the state, the run and the run's children in the
// same session. Time that has passed since the newest entry does not count. With runID ""
// only the state remains. Everything else is dropped. Afterwards the session is only good
// for a [Session.Snapshot], for an [Adopt]. After an error it must not be used at all.
//
// # Errors
//
// [ErrUnknownRun]; a [*host.Error] for a run that has not begun.
func (s *Session) Fork(runID string, t ForkTarget) (runs []ForkedRun, anew []host.Renewed, err error) {
	f := &forker{s: s, t: t, lost: t.At - s.now, at: cmp.Or(t.After, s.seq)}
	var top *run
	if runID != "" {
		if top, err = s.activeRun(runID); err != nil {
			return nil, nil, err
		}
		f.gather(top)
	}
	f.leaveOthers()
	// What concerns other runs, other sessions and the past stays behind.
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
	// A child is renamed before its parent's link to it, so all runs have new names here.
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
	s.out = nil // of messages: the fold of the Adopt repeats them
	return runs, anew, nil
}

// Limit gives every run of the session, and every child that it has begun elsewhere, the
// limits of its version. An error of limits ends Limit, and the session must not be used
// any more.
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
		start := *c.start // others may hold the old start
		start.Limits = l.Complete()
		c.start = &start
	}
	return nil
}

// forker makes a fork.
type forker struct {
	s     *Session
	t     ForkTarget
	at    uint64 // position of the fork
	lost  int64  // nanoseconds since the newest entry; negative if its clock was ahead
	runs  []*run
	names map[string]ForkedRun // by old run id
}

// gather collects the run and its descendants in the session, parents first.
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

// leaveOthers removes all other runs from the session, without ending them.
func (f *forker) leaveOthers() {
	s := f.s
	for _, r := range s.runs {
		if slices.Contains(f.runs, r) {
			continue
		}
		// Their timers would fire in the fork.
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

// derive returns bytes for a run of the fork, derived from the fork's seed.
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
		r.parent = nil // the parent does not wait for the fork
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
	switch {
	case !top:
	case f.t.Retry: // in the place of the run, whose parent waits for it no more
		r.rec.RetriedFrom = was
	default:
		r.rec.ParentRun, r.rec.ParentStep, r.rec.RetriedFrom = "", "", ""
		r.rec.ForkedFrom, r.rec.ForkedAt = was, f.at
	}
	return out
}

// children gives the children of a run their new names. Children in other sessions begin
// again. Calls of resources are made again, under new keys, because a key is derived from
// the run's seed.
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
				s.runs[c.run].rec.ParentRun = r.rec.RunID
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

// renew begins a child in another session again. A child that had a session of its own
// gets a new one.
func (f *forker) renew(r *run, inv *invocation, c *child) host.Renewed {
	was := c.handler
	if c.session == was {
		c.session = derivedID(f.derive("handler", c.run))
	}
	start := *c.start
	start.HandlerID = derivedID(f.derive("handler", c.run))
	start.Seed = f.derive("seed", c.run)
	start.Trace = f.t.Trace
	start.Parent = &Parent{Session: f.t.Key.Session, Stream: c.stream, Depth: r.depth() + 1, RunID: r.rec.RunID, Step: inv.step.name}
	start.Age = r.firstStart()
	c.run, c.handler = derivedID(f.derive("run", c.run)), start.HandlerID
	c.start, c.begun, c.seen = &start, false, 0
	f.s.postStart(c)
	return host.Renewed{Kind: host.RenewedChild, Step: inv.step.name, Workflow: c.workflow, HandlerID: c.handler, Was: was}
}

// delay moves all times of the runs by the time since the newest entry: an event that was
// due in an hour is due an hour from now.
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

// still moves a timer that is stopped. Running timers move with the heap.
func (f *forker) still(t *timer) {
	if t != nil && t.slot < 0 {
		t.at = later(t.at, f.lost)
	}
}
