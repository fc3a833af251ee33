package scheduler

import (
	"container/list"
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// A call of a resource has its intent in the journal (see package engine). Here it
// is queued by its grant, made when the intent is durable and the grant has room,
// and answered by a tick. It pins no session: what is kept of it is its name, and
// of one under way its payload. So its session may leave memory; whoever answers
// loads it.
//
// A session that is loaded brings its open calls along. One that is not known here
// was left open by the server before: it is made again or, in mode fail, answered
// with an error, as nobody knows what came of it.

// callKey names an invocation, which waits for one call at a time.
type callKey struct {
	session    host.SessionKey
	invocation uint64
}

// outcall is a call of a resource that has no answer in the journal yet. Its
// fields do not change, but for those at the end, which Scheduler.mu guards.
type outcall struct {
	key     callKey
	attempt uint64
	n       uint64
	pos     uint64       // at which it may begin; 0: at once
	known   *abi.Error   // its answer: it is not to be made
	space   host.KVSpace // not zero: it is made inside, see kv.go
	pool    *callPool

	found  bool               // see callOut
	place  *list.Element      // in its pool's queue; nil: it has begun, or has no grant yet
	cancel context.CancelFunc // of one that has begun
}

// callPool is the calls of a grant.
type callPool struct {
	name    string
	most    int
	under   int       // calls under way
	waiting list.List // of *outcall, the oldest first
}

// outcalls are the calls that have no answer yet.
type outcalls struct {
	open     map[callKey]*outcall
	sessions map[host.SessionKey]int // open calls of each
	pools    map[string]*callPool
	order    []*callPool // those of pools, the oldest first
	late     []lateAnswer
}

// lateAnswer is the answer of a call whose session does not load at the moment, or,
// with again, a call that could not be made for that reason: it is made when it is due.
// With ungranted nobody could say how it may be made.
type lateAnswer struct {
	call  *outcall
	value abi.Raw
	err   *abi.Error
	due   time.Time
	again bool

	ungranted bool
}

func (c *outcalls) init() {
	c.open = map[callKey]*outcall{}
	c.sessions = map[host.SessionKey]int{}
	c.pools = map[string]*callPool{}
}

// add queues a call with its grant.
func (c *outcalls) add(o *outcall, grant host.ResourceGrant) {
	p := c.pools[grant.Pool]
	if p == nil {
		p = &callPool{name: grant.Pool}
		c.pools[grant.Pool] = p
		c.order = append(c.order, p)
	}
	p.most = max(grant.InFlight, 1)
	o.pool = p
	o.place = p.waiting.PushBack(o)
	c.hold(o)
}

// hold notes that a call is open.
func (c *outcalls) hold(o *outcall) {
	c.open[o.key] = o
	c.sessions[o.key.session]++
}

// requeue has a call made that was put off, unless nobody waits for it any more.
func (c *outcalls) requeue(o *outcall) {
	if c.open[o.key] != o {
		return
	}
	if p := c.pools[o.pool.name]; p != nil {
		o.pool = p
	} else {
		c.pools[o.pool.name] = o.pool
		c.order = append(c.order, o.pool)
	}
	o.place = o.pool.waiting.PushBack(o)
}

// remove forgets a call. Its part of the pool is its own while it is under way.
func (c *outcalls) remove(o *outcall) {
	if c.open[o.key] != o {
		return
	}
	delete(c.open, o.key)
	if c.sessions[o.key.session]--; c.sessions[o.key.session] == 0 {
		delete(c.sessions, o.key.session)
	}
	if o.place != nil {
		o.pool.waiting.Remove(o.place)
		o.place = nil
	}
}

// next gives the call of a pool's queue that may begin; nil: none.
func (p *callPool) next(durable uint64) *outcall {
	first := p.waiting.Front()
	if first == nil || p.under >= p.most {
		return nil
	}
	o := first.Value.(*outcall)
	if o.pos > durable {
		return nil
	}
	return o
}

// callOut queues the call for which an invocation waits; found says that the
// session was just loaded with it. Called with mu held.
func (ss *session) callOut(inv uint64, found bool) {
	s := ss.s
	call, ok := ss.eng.OutCall(inv)
	if !ok || ss.endedServer(call.RunID) {
		return
	}
	o := &outcall{key: callKey{ss.key, inv}, attempt: call.Attempt, n: call.N, pos: ss.lastPos}
	if call.Mode == host.ResourceReadOnly {
		o.pos = 0
	}
	grant, err := ss.grant(call.Workflow, call.Version, call.Resource)
	later := err != nil && host.CodeOf(err) == host.CodeUnavailable // of the store, not of the call
	if err != nil {
		o.known = guestError(err)
		grant = host.ResourceGrant{Pool: "refused", InFlight: 1}
	}
	if o.space = grant.Space; o.space != (host.KVSpace{}) {
		o.pos = 0 // nothing outside, and its answer comes behind its intent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.space == (host.KVSpace{}) && s.waitsForJournal(host.CoreCall, call.Version, call.Step) {
		o.pos = ss.lastPos
	}
	if old := s.calls.open[o.key]; old != nil {
		if old.attempt == o.attempt && old.n == o.n {
			return
		}
		s.dropCall(old)
	}
	if found && call.Mode == host.ResourceFail {
		o.known = engine.OutcomeUnknown(call.Resource, "the server ended while the call was under way")
	}
	if later {
		s.calls.hold(o)
		o.found = found
		s.grantLater(o)
	} else {
		s.calls.add(o, grant)
	}
	s.signal()
}

// grantLater has it asked again after a while how a call may be made. Called with mu
// held.
func (s *Scheduler) grantLater(o *outcall) {
	s.calls.late = append(s.calls.late, lateAnswer{call: o, due: s.cfg.Now().Add(readAgain), ungranted: true})
}

// grantAgain asks again how a call may be made, and queues the call.
func (s *Scheduler) grantAgain(o *outcall) {
	ss, err := s.acquire(context.Background(), o.key.session, false)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if host.CodeOf(err) == host.CodeNotFound { // it was purged
			s.calls.remove(o)
		} else if s.calls.open[o.key] == o {
			s.grantLater(o)
		}
		s.signal()
		return
	}
	defer ss.release()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.mu.Lock()
	wanted := s.calls.open[o.key] == o
	s.calls.remove(o)
	s.mu.Unlock()
	if wanted {
		ss.callOut(o.key.invocation, o.found)
	}
}

// endedServer reports whether a run is blocked because the server ended while it ran:
// its resource calls wait until it is resumed, as one of them may be why. Called with
// mu held.
func (ss *session) endedServer(runID string) bool {
	rec, ok := ss.eng.Record(runID)
	return ok && rec.Blocked != nil && rec.Blocked.Code == host.BlockedHostCrash
}

// callAgain queues the calls of a run that was blocked. Called with mu held.
func (ss *session) callAgain(runID string) {
	for _, inv := range ss.eng.OutCalls() {
		if call, ok := ss.eng.OutCall(inv); ok && call.RunID == runID {
			ss.callOut(inv, true)
		}
	}
}

// grant asks how a workflow of the session's tenant may use a resource.
func (ss *session) grant(workflow, version, resource string) (host.ResourceGrant, error) {
	g, err := ss.s.graph(version)
	if err != nil {
		return host.ResourceGrant{}, err
	}
	decl, _ := g.Resource(resource)
	return ss.s.cfg.Resources.Grant(host.ResourceUser{Tenant: ss.key.Tenant, Workflow: workflow, Digest: version}, decl)
}

// takeBack ends the call of an invocation, if it has made one that is not
// answered. Called with the session's mu held.
func (s *Scheduler) takeBack(key host.SessionKey, inv uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.calls.open[callKey{key, inv}]; o != nil {
		s.dropCall(o)
	}
}

// dropCall forgets a call and ends it if it has begun. Called with mu held.
func (s *Scheduler) dropCall(o *outcall) {
	s.calls.remove(o)
	if o.cancel != nil {
		o.cancel()
	}
}

// callWork begins the calls that may begin now, and answers again those that could
// not be; next is when to look again, zero: when something happens. Called with mu
// held.
func (s *Scheduler) callWork(now time.Time) (work []func(), next time.Time) {
	c := &s.calls
	durable := s.cfg.Journal.Durable()
	s.lanes.settle(durable)
	late := c.late[:0]
	for _, l := range c.late {
		if l.due.After(now) {
			if late = append(late, l); next.IsZero() || l.due.Before(next) {
				next = l.due
			}
			continue
		}
		if l.again {
			c.requeue(l.call)
			continue
		}
		if l.ungranted {
			work = append(work, func() { s.grantAgain(l.call) })
			continue
		}
		work = append(work, func() { s.answerCall(l.call, l.value, l.err) })
	}
	clear(c.late[len(late):])
	c.late = late
	kept := c.order[:0]
	for _, p := range c.order {
		for o := p.next(durable); o != nil; o = p.next(durable) {
			work = append(work, s.beginCall(o))
		}
		if p.under == 0 && p.waiting.Len() == 0 {
			delete(c.pools, p.name)
			continue
		}
		kept = append(kept, p)
	}
	clear(c.order[len(kept):])
	c.order = kept
	return work, next
}

// beginCall takes a call out of its pool's queue. Called with mu held.
func (s *Scheduler) beginCall(o *outcall) (work func()) {
	o.pool.waiting.Remove(o.place)
	o.place = nil
	o.pool.under++
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	return func() { s.makeCall(ctx, o) }
}

// makeCall makes a call that was begun, and brings its answer.
func (s *Scheduler) makeCall(ctx context.Context, o *outcall) {
	value, fail := abi.Raw(nil), o.known
	wanted := true
	var away error // why the store could not be asked
	inside := fail == nil && o.space != (host.KVSpace{})
	switch {
	case inside:
		away = s.operate(ctx, o)
	case fail == nil:
		value, fail, wanted, away = s.outside(ctx, o)
	}
	if wanted && !inside && away == nil && ctx.Err() == nil {
		s.answerCall(o, value, fail)
	}
	s.cameBack(o.suspectKey())
	again := s.retryAfter(o.key.session, readAgain)
	s.mu.Lock()
	o.pool.under--
	if away != nil && ctx.Err() == nil {
		s.calls.late = append(s.calls.late, lateAnswer{call: o, due: again, again: true})
	}
	o.cancel()
	o.cancel = nil
	if !wanted {
		s.calls.remove(o)
	}
	s.mu.Unlock()
	s.signal()
}

// outside makes the call; wanted is false if nobody waits for it any more. away says
// why the call was not made and is to be made later: what the store cannot do at the
// moment is nothing that a resource has answered.
func (s *Scheduler) outside(ctx context.Context, o *outcall) (value abi.Raw, fail *abi.Error, wanted bool, away error) {
	ss, err := s.acquire(ctx, o.key.session, false)
	if err != nil {
		if host.CodeOf(err) == host.CodeNotFound || ctx.Err() != nil {
			return nil, nil, false, nil
		}
		return nil, nil, true, err
	}
	ss.mu.Lock()
	call, ok := ss.eng.OutCall(o.key.invocation)
	span := ss.tracedCall(&call)
	ss.mu.Unlock()
	ss.release()
	if !ok || call.Attempt != o.attempt || call.N != o.n {
		return nil, nil, false, nil
	}
	s.count(&s.counters.Calls)
	out := callOf(o, &call)
	out.Stream = &host.ResourceStream{Published: call.Streamed, Hash: call.Hash, Publish: func(ctx context.Context, d host.ResourceDelta) error {
		return s.noteDelta(ctx, o, d)
	}}
	if span != nil {
		out.Trace = s.cfg.Tracer.Outgoing(span)
	}
	noted := s.noteCall(o, call.Version, call.Step)
	out.Waits = noted.wait
	value, fail = s.cfg.Resources.Call(ctx, out)
	noted.leave()
	if span != nil {
		span.Ended, span.Code = s.now(), host.FailureCode(fail)
		s.cfg.Tracer.Called(span)
	}
	return value, fail, true, nil
}

// callOf is a call as resources see it.
func callOf(o *outcall, call *engine.OutCall) host.ResourceCall {
	return host.ResourceCall{
		User: host.ResourceUser{Tenant: o.key.session.Tenant, Workflow: call.Workflow, Digest: call.Version},
		Step: call.Step, RunID: call.RunID, Resource: call.Resource, Method: call.Method,
		Payload: call.Payload, Key: call.Key, Mode: call.Mode,
	}
}

// noteDelta brings a part of an answer to its session, which shows it. Nothing waits
// until it is durable: what is shown is, and the rest comes in this order.
func (s *Scheduler) noteDelta(ctx context.Context, o *outcall, d host.ResourceDelta) error {
	ss, err := s.acquire(ctx, o.key.session, false)
	if err != nil {
		return err
	}
	ss.mu.Lock()
	ss.note(engine.ResourceDelta{Invocation: o.key.invocation, Attempt: o.attempt, N: o.n, Delta: d})
	ss.mu.Unlock()
	ss.release()
	return nil
}

// answerCall brings an answer to its session.
func (s *Scheduler) answerCall(o *outcall, value abi.Raw, fail *abi.Error) {
	ss, err := s.acquire(context.Background(), o.key.session, false)
	switch {
	case err == nil:
		ss.mu.Lock()
		ss.note(engine.ResourceAnswered{Invocation: o.key.invocation, Attempt: o.attempt, N: o.n, Value: value, Err: fail})
		ss.mu.Unlock()
		ss.release()
	case host.CodeOf(err) != host.CodeNotFound: // else it was purged
		s.logOf(context.Background(), slog.LevelError, "the answer of a resource cannot be noted, and is kept", o.key.session, []any{"error", err})
		again := s.retryAfter(o.key.session, retryLoad)
		s.mu.Lock()
		s.calls.late = append(s.calls.late, lateAnswer{call: o, value: value, err: fail, due: again})
		s.mu.Unlock()
		s.signal()
		return
	}
	s.mu.Lock()
	s.calls.remove(o)
	s.mu.Unlock()
}

// cancelCalls ends the calls under way without an answer; they stay open in the
// journal.
func (s *Scheduler) cancelCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.calls.open {
		if o.cancel != nil {
			o.cancel()
		}
	}
}

// granted says how the attempt's workflow may call a method of a resource; its error is the
// guest's.
func (at *attempt) granted(resource, method string) (host.ResourceMode, error) {
	grant, err := at.ss.grant(at.view.Workflow, at.view.Version, resource)
	if err != nil {
		return "", childError(err)
	}
	return grant.ModeOf(method), nil
}

// checkResources refuses a workflow that needs a resource which is not granted.
func (s *Scheduler) checkResources(tenant string, mod Module) error {
	for _, asked := range mod.Graph.Manifest().Resources {
		decl, _ := mod.Graph.Resource(asked.Name) // what all plugins say of it
		if decl.Optional {
			continue
		}
		user := host.ResourceUser{Tenant: tenant, Workflow: mod.Graph.Workflow(), Digest: mod.Digest}
		if _, err := s.cfg.Resources.Grant(user, decl); err != nil {
			return host.Errorf(host.CodeOf(err), "workflow '%s' cannot start: %w", user.Workflow, err)
		}
	}
	return nil
}

// noResources grants nothing.
type noResources struct{}

// Grant implements host.Resources.
func (noResources) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	return host.ResourceGrant{}, host.Errorf(host.CodePermissionDenied, "the resource '%s' (kind %s) is not granted to workflow '%s': this server has no resources", decl.Name, decl.Kind, user.Workflow)
}

// Call implements host.Resources.
func (noResources) Call(context.Context, host.ResourceCall) (abi.Raw, *abi.Error) {
	return nil, &abi.Error{Code: string(host.CodePermissionDenied), Message: "this server has no resources"}
}

// Operate implements host.Resources.
func (noResources) Operate(host.ResourceCall, host.KVSpace, host.KVData) host.KVAnswer {
	return host.KVAnswer{Err: &abi.Error{Code: string(host.CodePermissionDenied), Message: "this server has no resources"}}
}
