package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// The session's part of a call of a resource: its grant, its place in the queue, and its
// answer. Package calls makes the call.
//
// A session that is loaded adds its open calls. A call that is not known here was left
// open by the previous server. It is made again or, in mode fail, answered with an error,
// because its outcome is unknown.

// callOut queues the call for which an invocation waits; found says that the
// session was just loaded with it. The caller holds mu.
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
		o.Known = refusal.ToGuest(err)
		grant = host.ResourceGrant{Pool: "refused", InFlight: 1}
	}
	if o.Space = grant.Space; o.Space != (kv.Space{}) {
		o.Pos = 0 // nothing outside, and its answer comes behind its intent
	}
	// In mode fail nobody makes a call a second time that perhaps was made before.
	if found && call.Mode == host.ResourceFail {
		o.Known = engine.OutcomeUnknown(call.Resource, "the server ended while the call was under way")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Space == (kv.Space{}) && s.suspicion.waitsForJournal(deaths.CoreCall, call.Version, call.Step) {
		o.Pos = ss.lastPos
	}
	if later {
		o.Found = found
		s.calls.QueueUngranted(o)
	} else {
		s.calls.Queue(o, grant)
	}
	s.signal()
}

// endedServer reports whether a run is blocked because the server ended while it ran:
// its resource calls wait until it is resumed, as one of them may be why. The caller holds
// mu.
func (ss *session) endedServer(runID string) bool {
	rec, ok := ss.eng.Record(runID)
	return ok && rec.Blocked != nil && rec.Blocked.Code == host.BlockedHostCrash
}

// callAgain queues the calls of a run that was blocked. The caller holds mu.
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
		return "", refusal.Lasting(err)
	}
	return grant.ModeOf(method), nil
}

// callHost is the scheduler as the caller of resources sees it.
type callHost struct{ *Scheduler }

// Acquire implements calls.Host.
func (h callHost) Acquire(ctx context.Context, key host.SessionKey) (calls.Session, error) {
	ss, err := h.table.acquire(ctx, key, false)
	if err != nil {
		return nil, err // not ss: an interface that holds a nil pointer is not nil
	}
	return calling{ss}, nil
}

// RetryAfter implements calls.Host.
func (h callHost) RetryAfter(key host.SessionKey, after time.Duration) time.Time {
	return h.table.retryAfter(key, after)
}

// Note implements calls.Host.
func (h callHost) Note(o *calls.Call, call *host.ResourceCall) (wait func() (back func()), leave func()) {
	n := h.noteCall(o, call)
	return n.Wait, n.Leave
}

// CameBack implements calls.Host.
func (h callHost) CameBack(o *calls.Call) { h.suspicion.cameBack(callKey(o)) }

// Read implements calls.Host.
func (h callHost) Read(failed bool) { h.reads.Note(h.now(), failed) }

// Signal implements calls.Host.
func (h callHost) Signal() { h.signal() }

// Log implements calls.Host.
func (h callHost) Log(level slog.Level, message string, o *calls.Call, args ...any) {
	h.log.Session(context.Background(), level, message, o.Key.Session, args)
}

// calling is a session as the caller of resources sees it.
type calling struct{ *session }

// Open implements calls.Session.
func (ss calling) Open(o *calls.Call) (calls.Open, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	call, ok := ss.eng.OutCall(o.Key.Invocation)
	if !ok || call.Attempt != o.Attempt || call.N != o.N {
		return calls.Open{}, false
	}
	return calls.Open{
		Call: host.ResourceCall{
			User: host.ResourceUser{Tenant: ss.key.Tenant, Workflow: call.Workflow, Digest: call.Version},
			Step: call.Step, RunID: call.RunID, Resource: call.Resource, Method: call.Method,
			Payload: call.Payload, Key: call.Key, Mode: call.Mode,
		},
		Streamed: call.Streamed, Hash: call.Hash, Span: ss.tracedCall(&call),
	}, true
}

// Ask implements calls.Session.
func (ss calling) Ask(o *calls.Call) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.s.calls.Take(o) {
		ss.callOut(o.Key.Invocation, o.Found)
	}
}

// Delta implements calls.Session.
func (ss calling) Delta(o *calls.Call, d host.ResourceDelta) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.note(engine.ResourceDelta{Invocation: o.Key.Invocation, Attempt: o.Attempt, N: o.N, Delta: d})
}

// Answer implements calls.Session.
func (ss calling) Answer(o *calls.Call, value abi.Raw, fail *abi.Error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.note(engine.ResourceAnswered{Invocation: o.Key.Invocation, Attempt: o.Attempt, N: o.N, Value: value, Err: fail})
}

// AnswerInside implements calls.Session.
func (ss calling) AnswerInside(o *calls.Call, answer *kv.Answer, write *kv.Write) (pos uint64, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	var with extras
	if write != nil {
		with.kv = []kv.Write{*write}
	}
	_, pos, err := ss.tick(engine.ResourceAnswered{Invocation: o.Key.Invocation, Attempt: o.Attempt, N: o.N, Value: answer.Value, Err: answer.Err}, with)
	if err != nil && !refusal.TooLate(err) {
		ss.log(context.Background(), slog.LevelError, "the answer of a resource is refused", "error", err)
	}
	return pos, err == nil
}

// Release implements calls.Session.
func (ss calling) Release() { ss.release() }
