package scheduler

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/tickets"
	"github.com/weftrun/weft/host/state"
)

// open begins an invocation's attempt: fresh, or with what is stored of it.
// It wants a core since a time. The caller holds ss.mu.
func (ss *session) open(inv uint64, stored *history.Record, since int64) {
	view, ok := ss.eng.Invocation(inv)
	if !ok {
		return
	}
	// The guest is still leaving a wait that is over by now: at.end runs it again.
	if old := ss.attempts[inv]; old != nil && old.view.Attempt == view.Attempt {
		old.resumed = true
		return
	}
	at := &attempt{ss: ss, inv: inv, view: view}
	o := engine.AttemptOpen{Limits: view.Limits}
	var record []engine.CallRecord
	var unserved int64
	// An attempt that began earlier keeps its limits and clock, so that its replay sees the
	// same. An older server may have had fewer limits.
	if stored != nil && stored.Open != nil && stored.Attempt == view.Attempt {
		o, record = *stored.Open, stored.Calls
		o.Limits = o.Limits.Complete()
		at.replay, at.Spending, unserved = true, stored.Spending, stored.Unserved
		at.kept = uint64(len(record))
	} else {
		o.Clock, o.Prices = max(ss.s.now(), ss.eng.Now()), state.Prices
		ss.s.cfg.Entropy(o.Seed[:])
	}
	at.trace(&o)
	at.answers = ss.s.cfg.Answers(live{at}, o, record)
	ss.attempts[inv] = at
	ss.demands(at)
	ss.enlist(at, unserved, since)
	ss.s.cores.ready(at)
}

// abandon ends an attempt that is no longer wanted. The caller holds ss.mu.
func (ss *session) abandon(inv uint64, held bool) {
	at := ss.attempts[inv]
	if at == nil {
		return
	}
	delete(ss.attempts, inv)
	ss.undemand(at)
	at.abandoned, at.held = true, held
	at.leave()
	_, at.goesOn = ss.eng.Invocation(inv)
	// The end of the current run settles the attempt. An attempt that only waits for a
	// core has no run: its span ends here, if it has begun at all.
	if at.cancel != nil {
		at.cancel()
	} else if at.replay && !held {
		at.tell(0, nil, true)
	}
	ss.tickets.GiveUp(at)
	// A parked attempt has its pin, and no run that would give the pin back.
	if at.parked {
		at.parked = false
		ss.release()
	}
}

// run is one run of an attempt's guest, with a token in hand. The run is noted until
// its end is settled: what routing its output does is its doing.
func (s *Scheduler) run(at *attempt) {
	if !s.cores.codeReady(at) {
		return
	}
	tok := s.cores.newToken(at.ss.key.Tenant, at)
	ctx, ok := at.begin(tok)
	// It was abandoned while it waited for its token.
	if !ok {
		tok.release(0, 0)
		at.ss.release()
		s.suspicion.cameBack(at.suspectKey())
		return
	}
	tok.enter()
	defer s.suspicion.cameBack(tok.note.Key())
	defer tok.leave()
	inv, err := at.invocation(tok)
	var res host.InvocationResult
	if err == nil {
		res, err = s.cfg.Sandbox.Invoke(ctx, inv)
	}
	tok.release(res.Fuel, res.Work)
	at.end(res, err)
}

// begin marks the attempt as running; false if nobody wants it.
func (at *attempt) begin(tok *token) (context.Context, bool) {
	ss := at.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if at.abandoned || ss.dead {
		return nil, false
	}
	ctx, cancel := context.WithCancel(context.Background())
	at.cancel, at.running, at.tok = cancel, true, tok
	// The note reads what the lock guards.
	tok.note = at.note()
	at.answers.Restart()
	ss.s.mu.Lock()
	ss.s.counters.Attempts++
	ss.s.cores.budgets.Began(ss.key.Tenant)
	if at.replay {
		ss.s.counters.Replayed++
	}
	ss.s.mu.Unlock()
	if at.traced != nil {
		at.traced.Replayed = at.replay
	}
	at.replay = true
	return ctx, true
}

// invocation is the sandbox's part of the attempt.
func (at *attempt) invocation(tok *token) (host.Invocation, error) {
	m, err := at.ss.s.cfg.Modules.ByDigest(at.view.Version)
	if err != nil {
		return host.Invocation{}, err
	}
	o := at.answers.Open()
	inv, err := m.Invocation(at.ss.key, &at.view, o)
	inv.Calls, inv.Token = tok, tok
	return inv, err
}

// end settles the end of a guest's run. An attempt that runs again keeps its pin of the
// session; in the other cases the pin is given back.
func (at *attempt) end(res host.InvocationResult, err error) {
	ss, s := at.ss, at.ss.s
	ss.mu.Lock()
	at.running = false
	at.cancel()
	at.cancel = nil
	// The sandbox may know less than the checkpoints have counted, if the guest was unwound.
	at.Burnt = at.Burnt.With(max(res.Fuel, at.tok.burnt))
	at.tok = nil
	var u Unwound
	switch {
	case at.abandoned || ss.dead:
		u.Stale = true
	case err != nil:
		u = at.classify(err)
	}
	if !u.Later {
		at.backoffs = 0 // the next one begins with the shortest wait
	}
	switch {
	case u.Stale:
		// What an abandoned attempt has burnt since its last entry is billed now, as no
		// entry follows. If the attempt continues later it burns the same again, and is
		// billed then.
		if at.abandoned && !at.goesOn || ss.dead {
			ss.settle(&at.Spending)
		}
		if at.abandoned && !at.held && !ss.dead {
			at.tell(res.Fuel, nil, true)
		}
		ss.drop(at)
	case u.Again:
		// The state has changed since the guest read it: the guest runs again up to the
		// commit, which then sees the new value. The attempt stays open and pins its session.
		s.count(&s.counters.Conflicts)
		s.cores.ready(at)
		ss.mu.Unlock()
		return
	case u.Later:
		// The host could not run the guest, and that says nothing of the step. The attempt
		// gives its ticket up, so that nobody waits for it meanwhile.
		ss.tickets.GiveUp(at)
		s.cores.backOff(at, err)
		ss.mu.Unlock()
		return
	case u.Suspended:
		s.count(&s.counters.Suspended)
		// The answer has come between the guest's wait and this lock: nothing else would
		// wake the attempt.
		if at.resumed {
			at.resumed = false
			s.cores.ready(at)
			ss.mu.Unlock()
			return
		}
		// Only the record is kept, from which the attempt continues, and no pin: the session
		// may leave memory.
		unspent := ss.drop(at)
		o := at.answers.Open()
		ss.suspended[at.inv] = &history.Record{Attempt: at.view.Attempt, Open: &o, Calls: at.answers.Record(), Spending: at.Spending, Unserved: unspent}
	case u.Parked:
		s.count(&s.counters.Parks)
		// The ticket may have been handed to this attempt before its guest was out.
		if at.unparked {
			at.unparked = false
			s.cores.ready(at)
		} else {
			at.parked = true
		}
		ss.mu.Unlock()
		return
	case u.Block != nil:
		// This is not the step's fault, and a retry would not help: the run stops, and its
		// record stays, until an operator resumes it.
		ss.tickets.GiveUp(at)
		_, _, err := ss.tick(engine.Block{RunID: at.view.RunID, Reason: *u.Block}, extras{})
		if err != nil && !errors.Is(err, engine.ErrStale) {
			at.say(slog.LevelError, "a run cannot be blocked", "error", err)
		}
		ss.drop(at)
	default:
		if lost := at.finish(res, u.Fail); lost {
			s.count(&s.counters.Conflicts)
			s.cores.ready(at)
			ss.mu.Unlock()
			return
		}
		ss.drop(at)
	}
	ss.mu.Unlock()
	ss.release()
	s.signal()
}

// classify says what an error that unwound the guest means.
func (at *attempt) classify(err error) Unwound {
	// The server stops: the attempt stays open in the journal, and continues at the next start.
	if errors.Is(err, context.Canceled) {
		return Unwound{Stale: true}
	}
	if u := at.ss.s.cfg.Classify(err); u != (Unwound{}) {
		return u
	}
	// What the store cannot do at the moment is no fault of the step.
	if host.CodeOf(err) == host.CodeUnavailable {
		return Unwound{Later: true}
	}
	at.say(slog.LevelError, "the host could not run a step", "error", err)
	return Unwound{Block: &host.Blocked{Code: host.BlockedHostError, Message: host.MessageOf(err)}}
}

// finish ends the attempt with what its guest gave. An attempt of an atomic step may have
// lost against others: then it must run again. The caller holds ss.mu.
func (at *attempt) finish(res host.InvocationResult, fail *abi.Error) (lost bool) {
	ss := at.ss
	out := abi.StepOutput{Err: fail}
	switch {
	case fail != nil:
	case res.Err != nil:
		out.Err = final(res.Err)
	default:
		// Bad output, or an edit that the guest began and did not end, is a failure of the
		// step like any other: its retry policy decides.
		var err error
		if out, err = abi.DecodeStepOutput(res.Output); err != nil {
			out = abi.StepOutput{Err: &abi.Error{Code: host.RunInvalidOutput, Message: "the step's output does not decode: " + err.Error()}}
		} else if open := at.answers.Unfinished(); open != nil && out.Err == nil {
			out = abi.StepOutput{Err: open}
		}
	}
	// The ticket is free before the tick, which may begin attempts that want it.
	ss.tickets.GiveUp(at)
	tick := engine.Finish{Invocation: at.inv, Attempt: at.view.Attempt, Output: out, Fuel: res.Fuel, Stage: at.answers.Stage()}
	_, _, err := ss.tick(tick, extras{attach: func(r *engine.Result) (fuel uint64) {
		at.log(at.answers.Logs())
		if r.Entry != nil {
			at.answers.Finish(r.Entry)
			fuel = at.spend(r.Entry, at.Burnt)
		}
		return fuel
	}})
	switch {
	case errors.Is(err, engine.ErrConflict):
		// What the atomic step read has changed: nothing that it did has taken effect.
		at.answers.Lost()
		return true
	case err != nil && !errors.Is(err, engine.ErrStale):
		at.say(slog.LevelError, "a step's end is refused", "error", err)
	case err == nil:
		at.tell(res.Fuel, out.Err, false)
	}
	return false
}

// final returns the failure of a guest as retry policies see it. A guest that used up a
// limit would do so again, so no policy retries it, as for the limits that host calls
// enforce. Traps, the time on a core and bad output are left to the policy.
func final(err *abi.Error) *abi.Error {
	if err.Retryable != nil || err.Code != host.RunFuelExhausted && err.Code != host.RunLimitExceeded {
		return err
	}
	out, no := *err, false
	out.Retryable = &no
	return &out
}

// drop forgets an attempt that is over, and gives the time without a core by which its
// timeout has not moved. The caller holds ss.mu.
func (ss *session) drop(at *attempt) (unspent int64) {
	if ss.attempts[at.inv] == at {
		delete(ss.attempts, at.inv)
	}
	ss.undemand(at)
	ss.tickets.GiveUp(at)
	return at.leave()
}

// log shows the guest's log lines in the server's log.
func (at *attempt) log(lines []engine.LogRecord) {
	for i := range lines {
		at.say(slog.Level(lines[i].Level), lines[i].Message)
	}
}

// live is what an attempt's host calls act on.
type live struct{ at *attempt }

func (l live) Now() int64 { return l.at.ss.s.now() }

func (l live) State() *state.Node { return l.at.ss.state.Load() }

func (l live) Atomic() bool { return l.at.view.Atomic }

func (l live) effect(n uint64, req engine.Request, attach func(*engine.Result)) error {
	at, ss := l.at, l.at.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if at.abandoned || ss.dead {
		return engine.ErrStale
	}
	if ss.tickets.Queue(at, tickets.Writes(req)) {
		return ss.s.cfg.Parked
	}
	res, _, err := ss.tick(engine.Call{Invocation: at.inv, Attempt: at.view.Attempt, N: n, Request: req}, extras{attach: func(r *engine.Result) (fuel uint64) {
		if r.Entry != nil {
			at.log(at.answers.Logs())
			fuel = at.spend(r.Entry, at.burntNow())
		}
		attach(r)
		return fuel
	}})
	if !errors.Is(err, engine.ErrUnresolved) && !errors.Is(err, engine.ErrMoved) {
		ss.tickets.GiveUp(at) // the write is done, or refused
	}
	if res.Response.Warning != "" {
		at.log([]engine.LogRecord{{Level: int64(slog.LevelWarn), Message: res.Response.Warning}})
	}
	return err
}
