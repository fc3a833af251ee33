package scheduler

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/traced"
)

// traceOf is the trace of the request that asks for a run; with was, the run that
// the new one continues.
func (s *Scheduler) traceOf(ctx context.Context, was *host.Run) *host.Trace {
	if s.cfg.Tracer == nil {
		return nil
	}
	from := traced.OriginOf(ctx).Trace
	if was == nil {
		return from
	}
	run := traced.Of(was)
	t := host.Trace{Link: s.cfg.Tracer.Span(&run)}
	if from != nil {
		t.Parent, t.State = from.Parent, from.State
	}
	return &t
}

// traced is what the spans of a run's parts need of it. The caller holds mu.
func (ss *session) traced(runID string) traced.Run {
	run, ok := ss.eng.Record(runID)
	if !ok { // it has ended some time ago
		return traced.Run{Tenant: ss.key.Tenant, RunID: runID}
	}
	return traced.Of(&run)
}

// trace notes what the span of an attempt will say, if there are spans. The attempt is
// being opened. The caller holds the session's mu.
func (at *attempt) trace(o *engine.AttemptOpen) {
	if at.ss.s.cfg.Tracer == nil {
		return
	}
	at.traced = &traced.Attempt{
		Run: at.ss.traced(at.view.RunID), Step: at.view.Step, Invocation: at.inv, Attempt: at.view.Attempt, Started: o.Clock, Replayed: at.replay,
	}
}

// tell makes the span of an attempt that has ended. The caller holds the session's mu.
func (at *attempt) tell(fuel uint64, fail *abi.Error, abandoned bool) {
	if at.traced == nil {
		return
	}
	t := at.traced
	t.Ended, t.Fuel, t.Code, t.Abandoned = at.ss.s.now(), fuel, traced.FailureCode(fail), abandoned
	at.ss.s.cfg.Tracer.Attempted(t)
	at.traced = nil // once
}

// tellSuspended makes the span of an attempt that was waiting when it was given up.
// The caller holds mu.
func (ss *session) tellSuspended(c engine.Abandon) {
	o := ss.suspended[c.Invocation]
	if ss.s.cfg.Tracer == nil || c.Held || o == nil || o.Open == nil || ss.attempts[c.Invocation] != nil {
		return
	}
	ss.s.cfg.Tracer.Attempted(&traced.Attempt{
		Run: ss.traced(c.RunID), Step: c.Step, Invocation: c.Invocation, Attempt: c.Attempt,
		Started: o.Open.Clock, Ended: ss.s.now(), Replayed: true, Abandoned: true,
	})
}

// tracedCall is a call that is about to be made; nil: there are no spans. The caller holds
// mu.
func (ss *session) tracedCall(call *engine.OutCall) *traced.Call {
	if ss.s.cfg.Tracer == nil {
		return nil
	}
	return &traced.Call{
		Attempt:  traced.Attempt{Run: ss.traced(call.RunID), Step: call.Step, Invocation: call.Invocation, Attempt: call.Attempt},
		Resource: call.Resource, Method: call.Method, Mode: call.Mode, Key: call.Key, Started: ss.s.now(),
	}
}

// tracePost makes the span of an event that a run was given. The caller holds mu.
func (ss *session) tracePost(ctx context.Context, runID, typ string) {
	if ss.s.cfg.Tracer == nil {
		return
	}
	ss.s.cfg.Tracer.Posted(&traced.Post{Run: ss.traced(runID), Type: typ, From: traced.OriginOf(ctx).Trace, At: ss.s.now()})
}
