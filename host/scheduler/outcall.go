package scheduler

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/calls"
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

// caller makes the calls of resources that sessions wait for, and brings the answers.
type caller struct {
	s      *Scheduler
	spaces calls.Spaces
	book   calls.Book // guarded by Scheduler.mu
}

func (c *caller) init(s *Scheduler) {
	c.s = s
	c.spaces.Init(calls.SpacesConfig{Store: s.cfg.Store, Resources: s.cfg.Resources, Grow: s.cfg.Quotas.Grow})
	c.book.Init()
}

// callOut queues the call for which an invocation waits; found says that the
// session was just loaded with it. Called with mu held.
func (ss *session) callOut(inv uint64, found bool) {
	s := ss.s
	call, ok := ss.eng.OutCall(inv)
	if !ok || ss.endedServer(call.RunID) {
		return
	}
	o := &calls.Call{Key: calls.Key{Session: ss.key, Invocation: inv}, Attempt: call.Attempt, N: call.N, Pos: ss.lastPos}
	// A call that only reads may be made before its intent is durable: made twice it does
	// no harm.
	if call.Mode == host.ResourceReadOnly {
		o.Pos = 0
	}
	grant, err := ss.grant(call.Workflow, call.Version, call.Resource)
	later := err != nil && host.CodeOf(err) == host.CodeUnavailable // of the store, not of the call
	// A refusal is the call's answer. It goes through a queue like all answers, as no tick can
	// be made here, within another.
	if err != nil {
		o.Known = guestError(err)
		grant = host.ResourceGrant{Pool: "refused", InFlight: 1}
	}
	if o.Space = grant.Space; o.Space != (host.KVSpace{}) {
		o.Pos = 0 // nothing outside, and its answer comes behind its intent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Space == (host.KVSpace{}) && s.suspicion.waitsForJournal(deaths.CoreCall, call.Version, call.Step) {
		o.Pos = ss.lastPos
	}
	if old := s.calls.book.Find(o.Key); old != nil {
		if old.Attempt == o.Attempt && old.N == o.N {
			return
		}
		s.calls.book.Drop(old)
	}
	// In mode fail nobody makes a call a second time that perhaps was made before.
	if found && call.Mode == host.ResourceFail {
		o.Known = engine.OutcomeUnknown(call.Resource, "the server ended while the call was under way")
	}
	if later {
		o.Found = found
		s.calls.book.Hold(o)
		s.calls.grantLater(o)
	} else {
		s.calls.book.Add(o, grant)
	}
	s.signal()
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
	g, err := ss.s.cfg.graph(version)
	if err != nil {
		return host.ResourceGrant{}, err
	}
	decl, _ := g.Resource(resource)
	return ss.s.cfg.Resources.Grant(host.ResourceUser{Tenant: ss.key.Tenant, Workflow: workflow, Digest: version}, decl)
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
