package scheduler

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/traced"
)

// attempt is an open attempt of an invocation. It pins its session.
type attempt struct {
	ss      *session
	inv     uint64
	view    engine.Invocation
	answers Answers
	replay  bool            // it has a record, or ran before
	traced  *traced.Attempt // what its span is to tell; nil: there is none, or it has been told

	// Guarded by ss.mu.
	running   bool
	cancel    context.CancelFunc // of the run under way
	abandoned bool               // nobody wants it: drop it when its guest is out
	parked    bool               // waits for a write ticket
	unparked  bool               // the ticket came free before the guest was out
	resumed   bool               // what it waits for came before the guest was out
	held      bool               // abandoned until its run, which is blocked, goes on
	putOff    int                // times in a row that it was put off
	kept      uint64             // see deaths.CoreNote
	goesOn    bool               // it is abandoned for now only
	tok       *token             // of the run under way
	counts    bool               // as one that is in memory, in the run's demand
	history.Spending

	work *admission.Run // set once; Scheduler.mu guards what is in it
	// waits is how often in a row the attempt waited for its module's code; the
	// goroutine of its run uses it.
	waits int
	// Guarded by Scheduler.mu: see unserved.go.
	service service
	own     unserved
	ofRun   *unserved
}

// open begins an invocation's attempt: fresh, or with what is stored of it.
// It wants a core since a time. Called with ss.mu held.
func (ss *session) open(inv uint64, stored *history.Record, since int64) {
	view, ok := ss.eng.Invocation(inv)
	if !ok {
		return
	}
	if old := ss.attempts[inv]; old != nil && old.view.Attempt == view.Attempt {
		old.resumed = true
		return
	}
	at := &attempt{ss: ss, inv: inv, view: view}
	o := engine.AttemptOpen{Limits: view.Limits}
	var record []engine.CallRecord
	var unserved int64
	if stored != nil && stored.Open != nil && stored.Attempt == view.Attempt {
		o, record = *stored.Open, stored.Calls
		o.Limits = o.Limits.Complete() // an older server may have known fewer
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
	ss.s.ready(at)
}

// ready puts an attempt into its tenant's queue, unless it is to be durable first, or to
// run apart. Called with the session's mu held.
func (s *Scheduler) ready(at *attempt) {
	s.mu.Lock()
	if !s.suspicion.keepFirst(at) {
		s.enqueue(s.itemOf(at))
	}
	s.mu.Unlock()
	s.signal()
}

// enqueue puts an attempt into its tenant's queue, unless it is to run apart. Called with
// mu held.
func (s *Scheduler) enqueue(it readyItem) {
	if !s.suspicion.trials.Keeps(it.Of.suspectKey(), it.Of) {
		s.push(it)
	}
}

// readyItem is an attempt that wants a token: to begin a run of its guest, or to go on with
// one that gave the token up. A rehearsal has no attempt.
type readyItem = fair.Item[*attempt]

// push puts an attempt into its tenant's queue, at its place by now. Called with mu held.
func (s *Scheduler) push(it readyItem) {
	it.Place = it.Of.place(it.Place.First)
	s.queue.Push(it.Of.ss.key.Tenant, it)
}

// itemOf is item with what the session knows. Called with the session's mu held.
func (s *Scheduler) itemOf(at *attempt) readyItem {
	it := s.item(at)
	it.Place.First = at.ss.holds(at)
	return it
}

// item is an attempt that wants a token from now on.
func (s *Scheduler) item(at *attempt) readyItem {
	it := readyItem{Of: at}
	if s.cfg.Observer != nil {
		it.Since = s.cfg.Now()
	}
	return it
}

// abandon ends an attempt that is no longer wanted. Called with ss.mu held.
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
	if at.cancel != nil {
		at.cancel()
	} else if at.replay && !held {
		at.tell(0, nil, true)
	}
	ss.giveUp(at)
	if at.parked {
		at.parked = false
		ss.release() // no run of it is under way that would
	}
}

// run is one run of an attempt's guest, with a token in hand. The run is noted until
// its end is settled: what routing its output does is its doing.
func (s *Scheduler) run(at *attempt) {
	if !s.codeReady(at) {
		return
	}
	tok := s.newToken(at.ss.key.Tenant, at)
	ctx, ok := at.begin(tok)
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
	tok.note = at.note()
	at.answers.Restart()
	ss.s.mu.Lock()
	ss.s.counters.Attempts++
	ss.s.budgets.Began(ss.key.Tenant)
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
	inv, err := at.ss.s.invocationOf(m, at.ss.key, &at.view, o)
	inv.Calls, inv.Token = tok, tok
	return inv, err
}

// end settles what a run of the guest came to.
func (at *attempt) end(res host.InvocationResult, err error) {
	ss, s := at.ss, at.ss.s
	ss.mu.Lock()
	at.running = false
	at.cancel()
	at.cancel = nil
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
		at.putOff = 0
	}
	switch {
	case u.Stale:
		if at.abandoned && !at.goesOn || ss.dead {
			ss.settle(&at.Spending)
		}
		if at.abandoned && !at.held && !ss.dead {
			at.tell(res.Fuel, nil, true)
		}
		ss.drop(at)
	case u.Again:
		s.count(&s.counters.Conflicts)
		s.ready(at)
		ss.mu.Unlock()
		return // keeps its pin
	case u.Later:
		ss.giveUp(at)
		s.putOff(at, err)
		ss.mu.Unlock()
		return // keeps its pin
	case u.Suspended:
		s.count(&s.counters.Suspended)
		if at.resumed {
			at.resumed = false
			s.ready(at)
			ss.mu.Unlock()
			return // keeps its pin
		}
		unspent := ss.drop(at)
		o := at.answers.Open()
		ss.suspended[at.inv] = &history.Record{Attempt: at.view.Attempt, Open: &o, Calls: at.answers.Record(), Spending: at.Spending, Unserved: unspent}
	case u.Parked:
		s.count(&s.counters.Parks)
		if at.unparked {
			at.unparked = false
			s.ready(at)
		} else {
			at.parked = true
		}
		ss.mu.Unlock()
		return
	case u.Block != nil:
		ss.giveUp(at)
		_, _, err := ss.tick(engine.Block{RunID: at.view.RunID, Reason: *u.Block}, nil)
		if err != nil && !errors.Is(err, engine.ErrStale) {
			at.say(slog.LevelError, "a run cannot be blocked", "error", err)
		}
		ss.drop(at)
	default:
		if lost := at.finish(res, u.Fail); lost {
			s.count(&s.counters.Conflicts)
			s.ready(at)
			ss.mu.Unlock()
			return // keeps its pin
		}
		ss.drop(at)
	}
	ss.mu.Unlock()
	ss.release()
	s.signal()
}

// classify says what an error that unwound the guest means.
func (at *attempt) classify(err error) Unwound {
	if errors.Is(err, context.Canceled) {
		return Unwound{Stale: true} // the server stops: the attempt stays open in the journal
	}
	if u := at.ss.s.cfg.Classify(err); u != (Unwound{}) {
		return u
	}
	if host.CodeOf(err) == host.CodeUnavailable {
		return Unwound{Later: true}
	}
	at.say(slog.LevelError, "the host could not run a step", "error", err)
	return Unwound{Block: &host.Blocked{Code: host.BlockedHostError, Message: host.MessageOf(err)}}
}

// finish ends the attempt with what its guest gave. That of an atomic step may have
// lost: it is to be run again. Called with ss.mu held.
func (at *attempt) finish(res host.InvocationResult, fail *abi.Error) (lost bool) {
	ss := at.ss
	out := abi.StepOutput{Err: fail}
	switch {
	case fail != nil:
	case res.Err != nil:
		out.Err = final(res.Err)
	default:
		var err error
		if out, err = abi.DecodeStepOutput(res.Output); err != nil {
			out = abi.StepOutput{Err: &abi.Error{Code: host.RunInvalidOutput, Message: "the step's output does not decode: " + err.Error()}}
		} else if open := at.answers.Unfinished(); open != nil && out.Err == nil {
			out = abi.StepOutput{Err: open}
		}
	}
	ss.giveUp(at)
	tick := engine.Finish{Invocation: at.inv, Attempt: at.view.Attempt, Output: out, Fuel: res.Fuel, Stage: at.answers.Stage()}
	_, _, err := ss.tick(tick, func(r *engine.Result) {
		at.log(at.answers.Logs())
		if r.Entry != nil {
			at.answers.Finish(r.Entry)
			at.spend(r.Entry, at.Burnt)
		}
	})
	switch {
	case errors.Is(err, engine.ErrConflict):
		at.answers.Lost()
		return true
	case err != nil && !errors.Is(err, engine.ErrStale):
		at.say(slog.LevelError, "a step's end is refused", "error", err)
	case err == nil:
		at.tell(res.Fuel, out.Err, false)
	}
	return false
}

// final is the failure of a guest as retry policies are to see it. A guest that
// used up a limit would do so again: no policy has that tried, as with the
// limits that host calls find broken. Traps, the time on a core and bad output
// are left to the policy.
func final(err *abi.Error) *abi.Error {
	if err.Retryable != nil || err.Code != host.RunFuelExhausted && err.Code != host.RunLimitExceeded {
		return err
	}
	out, no := *err, false
	out.Retryable = &no
	return &out
}

// drop forgets an attempt that is over, and gives the time without a core by which its
// timeout has not moved. Called with ss.mu held.
func (ss *session) drop(at *attempt) (unspent int64) {
	if ss.attempts[at.inv] == at {
		delete(ss.attempts, at.inv)
	}
	ss.undemand(at)
	ss.giveUp(at)
	return at.leave()
}

// log shows the guest's log lines in the server's log.
func (at *attempt) log(lines []engine.LogRecord) {
	for i := range lines {
		at.say(slogLevel(lines[i].Level), lines[i].Message)
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
	if ss.mustPark(at, writes(req)) {
		return ss.s.cfg.Parked
	}
	res, _, err := ss.tick(engine.Call{Invocation: at.inv, Attempt: at.view.Attempt, N: n, Request: req}, func(r *engine.Result) {
		if r.Entry != nil {
			at.log(at.answers.Logs())
			at.spend(r.Entry, at.burntNow())
		}
		attach(r)
	})
	if !errors.Is(err, engine.ErrUnresolved) && !errors.Is(err, engine.ErrMoved) {
		ss.giveUp(at) // the write is done, or refused
	}
	if res.Response.Warning != "" {
		at.log([]engine.LogRecord{{Level: int64(slog.LevelWarn), Message: res.Response.Warning}})
	}
	return err
}

func (s *Scheduler) count(c *uint64) {
	s.mu.Lock()
	*c++
	s.mu.Unlock()
}
