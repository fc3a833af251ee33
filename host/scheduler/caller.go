package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/quarantine"
	"github.com/weftrun/weft/host/traced"
)

// grantLater has it asked again after a while how a call may be made. Called with
// Scheduler.mu held.
func (c *caller) grantLater(o *calls.Call) {
	c.book.Later(calls.Late{Call: o, Due: c.s.cfg.Now().Add(quarantine.ReadAgain), Ungranted: true})
}

// grantAgain asks again how a call may be made, and queues the call.
func (c *caller) grantAgain(o *calls.Call) {
	ss, err := c.s.table.acquire(context.Background(), o.Key.Session, false)
	if err != nil {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		// A session that is not found was purged. Any other error may pass.
		if host.CodeOf(err) == host.CodeNotFound {
			c.book.Remove(o)
		} else if c.book.Has(o) {
			c.grantLater(o)
		}
		c.s.signal()
		return
	}
	defer ss.release()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	c.s.mu.Lock()
	// callOut makes the call anew, with its grant. Another call may be in its place by now.
	wanted := c.book.Has(o)
	c.book.Remove(o)
	c.s.mu.Unlock()
	if wanted {
		ss.callOut(o.Key.Invocation, o.Found)
	}
}

// takeBack ends the call of an invocation, if it has made one that is not
// answered. Called with the session's mu held.
func (c *caller) takeBack(key host.SessionKey, inv uint64) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if o := c.book.Find(calls.Key{Session: key, Invocation: inv}); o != nil {
		c.book.Drop(o)
	}
}

// work begins the calls that may begin now, and answers again those that could
// not be; next is when to look again, zero: when something happens. Called with
// Scheduler.mu held.
func (c *caller) work(now time.Time) (work []func(), next time.Time) {
	durable := c.s.cfg.Journal.Durable()
	c.spaces.Settle(durable)
	late, next := c.book.Due(now)
	for _, l := range late {
		if l.Ungranted {
			work = append(work, func() { c.grantAgain(l.Call) })
			continue
		}
		work = append(work, func() { c.answer(l.Call, l.Value, l.Err) })
	}
	c.book.Ready(durable, func(o *calls.Call) { work = append(work, c.begin(o)) })
	return work, next
}

// begin begins a call. Called with Scheduler.mu held.
func (c *caller) begin(o *calls.Call) (work func()) {
	ctx := c.book.Begin(o)
	return func() { c.make(ctx, o) }
}

// make makes a call that was begun, and brings its answer.
func (c *caller) make(ctx context.Context, o *calls.Call) {
	value, fail := abi.Raw(nil), o.Known
	wanted := true
	var away error // why the store could not be asked
	within := fail == nil && o.Space != (host.KVSpace{})
	switch {
	case within:
		away = c.inside(ctx, o)
	case fail == nil:
		value, fail, wanted, away = c.outside(ctx, o)
	}
	// A call that was cancelled has no answer: it stays open in the journal, or nobody wants
	// it. A call inside has brought its own answer, in one item with its write.
	if wanted && !within && away == nil && ctx.Err() == nil {
		c.answer(o, value, fail)
	}
	c.s.suspicion.cameBack(callKey(o))
	again := c.s.table.retryAfter(o.Key.Session, quarantine.ReadAgain)
	c.s.mu.Lock()
	if away != nil && ctx.Err() == nil { // before End, which ends the context
		c.book.Later(calls.Late{Call: o, Due: again, Again: true})
	}
	c.book.End(o)
	if !wanted {
		c.book.Remove(o)
	}
	c.s.mu.Unlock()
	c.s.signal()
}

// outside makes the call; wanted is false if nobody waits for it any more. away says
// why the call was not made and is to be made later: what the store cannot do at the
// moment is nothing that a resource has answered.
func (c *caller) outside(ctx context.Context, o *calls.Call) (value abi.Raw, fail *abi.Error, wanted bool, away error) {
	ss, err := c.s.table.acquire(ctx, o.Key.Session, false)
	if err != nil {
		if host.CodeOf(err) == host.CodeNotFound || ctx.Err() != nil {
			return nil, nil, false, nil
		}
		return nil, nil, true, err
	}
	ss.mu.Lock()
	call, ok := ss.eng.OutCall(o.Key.Invocation)
	span := ss.tracedCall(&call)
	ss.mu.Unlock()
	// The call takes as long as it takes: its session may leave memory meanwhile.
	ss.release()
	// The invocation may wait for another call by now, or for none.
	if !ok || call.Attempt != o.Attempt || call.N != o.N {
		return nil, nil, false, nil
	}
	c.s.count(&c.s.counters.Calls)
	out := callOf(o, &call)
	out.Stream = &host.ResourceStream{Published: call.Streamed, Hash: call.Hash, Publish: func(ctx context.Context, d host.ResourceDelta) error {
		return c.noteDelta(ctx, o, d)
	}}
	if span != nil {
		out.Trace = c.s.cfg.Tracer.Outgoing(span)
	}
	noted := c.noteCall(o, call.Version, call.Step)
	out.Waits = noted.wait
	value, fail = c.s.cfg.Resources.Call(ctx, out)
	noted.leave()
	if span != nil {
		span.Ended, span.Code = c.s.now(), traced.FailureCode(fail)
		c.s.cfg.Tracer.Called(span)
	}
	return value, fail, true, nil
}

// callOf is a call as resources see it.
func callOf(o *calls.Call, call *engine.OutCall) host.ResourceCall {
	return host.ResourceCall{
		User: host.ResourceUser{Tenant: o.Key.Session.Tenant, Workflow: call.Workflow, Digest: call.Version},
		Step: call.Step, RunID: call.RunID, Resource: call.Resource, Method: call.Method,
		Payload: call.Payload, Key: call.Key, Mode: call.Mode,
	}
}

// noteDelta brings a part of an answer to its session, which shows it. Nothing waits
// until it is durable: what is shown is, and the rest comes in this order.
func (c *caller) noteDelta(ctx context.Context, o *calls.Call, d host.ResourceDelta) error {
	ss, err := c.s.table.acquire(ctx, o.Key.Session, false)
	if err != nil {
		return err
	}
	ss.mu.Lock()
	ss.note(engine.ResourceDelta{Invocation: o.Key.Invocation, Attempt: o.Attempt, N: o.N, Delta: d})
	ss.mu.Unlock()
	ss.release()
	return nil
}

// answer brings an answer to its session.
func (c *caller) answer(o *calls.Call, value abi.Raw, fail *abi.Error) {
	ss, err := c.s.table.acquire(context.Background(), o.Key.Session, false)
	switch {
	case err == nil:
		ss.mu.Lock()
		ss.note(engine.ResourceAnswered{Invocation: o.Key.Invocation, Attempt: o.Attempt, N: o.N, Value: value, Err: fail})
		ss.mu.Unlock()
		ss.release()
	// The resource has answered, and must not be asked again: the answer is kept until the
	// session loads. A session that is not found was purged, and wants none.
	case host.CodeOf(err) != host.CodeNotFound:
		c.s.log.session(context.Background(), slog.LevelError, "the answer of a resource cannot be noted, and is kept", o.Key.Session, []any{"error", err})
		again := c.s.table.retryAfter(o.Key.Session, retryLoad)
		c.s.mu.Lock()
		c.book.Later(calls.Late{Call: o, Value: value, Err: fail, Due: again})
		c.s.mu.Unlock()
		c.s.signal()
		return
	}
	c.s.mu.Lock()
	c.book.Remove(o)
	c.s.mu.Unlock()
}

// cancel ends the calls under way without an answer; they stay open in the
// journal.
func (c *caller) cancel() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.book.Cancel()
}

// inside makes a call of a resource that is kept with the journal, and brings its
// answer. The error says why the call was not made and is to be made later: what the
// store cannot do at the moment is no answer.
func (c *caller) inside(ctx context.Context, o *calls.Call) (away error) {
	ss, err := c.s.table.acquire(ctx, o.Key.Session, false)
	if err != nil && host.CodeOf(err) != host.CodeNotFound && ctx.Err() == nil {
		return err
	}
	if err != nil { // nobody wants it
		c.s.mu.Lock()
		c.book.Remove(o)
		c.s.mu.Unlock()
		return nil
	}
	defer ss.release()
	// The turn comes before the session's lock: whoever holds that must not wait for a turn.
	sp := c.spaces.Enter(o.Space)
	defer c.spaces.Leave(sp)
	ss.mu.Lock()
	call, ok := ss.eng.OutCall(o.Key.Invocation)
	span := ss.tracedCall(&call)
	ss.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	if ok && call.Attempt == o.Attempt && call.N == o.N {
		c.s.count(&c.s.counters.Calls)
		noted := c.noteCall(o, call.Version, call.Step)
		answer, write, err := c.spaces.Answer(ctx, sp, callOf(o, &call), c.s.now())
		noted.leave()
		// Cancelled while it was made: nothing was written, and there is no answer.
		if ctx.Err() != nil {
			return nil
		}
		c.s.reads.note(c.s.now(), err != nil)
		if err != nil {
			ss.log(ctx, slog.LevelError, "a call of a resource is put off: the store cannot be read", "resource", call.Resource, "error", err)
			return err
		}
		if span != nil {
			span.Ended, span.Code = c.s.now(), traced.FailureCode(answer.Err)
			c.s.cfg.Tracer.Called(span)
		}
		ss.answerKV(o, sp, &answer, write)
	}
	c.s.mu.Lock()
	c.book.Remove(o)
	c.s.mu.Unlock()
	return nil
}

// answerKV brings an answer and its write to the session, both or none of them.
func (ss *session) answerKV(o *calls.Call, sp *calls.Space, answer *host.KVAnswer, write *host.KVWrite) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	var with extras
	if write != nil {
		with.kv = []host.KVWrite{*write}
	}
	_, pos, err := ss.tick(engine.ResourceAnswered{Invocation: o.Key.Invocation, Attempt: o.Attempt, N: o.N, Value: answer.Value, Err: answer.Err}, with)
	switch {
	case err == nil && write != nil:
		ss.s.calls.spaces.Wrote(sp, write, pos)
	case err != nil && !tooLate(err):
		ss.log(context.Background(), slog.LevelError, "the answer of a resource is refused", "error", err)
	}
}
