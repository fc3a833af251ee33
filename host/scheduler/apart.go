package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/history"
)

// After a death the suspects are tried one after the other, before any other guest,
// load or call begins. Reads of the store work meanwhile, and starts are taken.
//
//	waiting -> now: [pause] -> load the session -> run alone -> came back, or window over
//
// Who has come back is suspected no more. Who still runs at the end of the window goes
// on beside the others when the phase is over.

// Windows in which a suspect runs alone, by the deaths at which it was noted: the first
// ones are short, as most suspects only happened to run. From then on it runs until it
// comes back, for the time on a core that its limits give it.
//
// The window of a guest is work, so that a guest which gets little of a busy machine gets
// as far in it as another: units, which it burns and which the host counts for it. Only a
// guest that does not get that far in patience times the window is let go without it.
// A resource call computes little. Its windows are times, and each of them beyond the
// first ones is twice the one before: a call that ends the server late is alone one day.
var windows = []time.Duration{250 * time.Millisecond, 2 * time.Second}

const (
	patience   = 20
	callWindow = 10 * time.Second // the first one beyond windows
	mostWindow = 10 * time.Minute // of a call
	// lookAgain is how soon a window is looked at again, at least.
	lookAgain = 10 * time.Millisecond
)

// pauses are the control pauses before a suspect runs alone that has died alone so
// often.
var pauses = []time.Duration{0, 200 * time.Millisecond, time.Second}

// apart is the phase in which suspects are tried. Scheduler.mu guards it.
type apart struct {
	waiting []host.CoreKey
	now     *trial
	// held are attempts of suspects that are ready to run.
	held map[host.CoreKey]*attempt
	over chan struct{} // closed at the end of the phase
}

// Stages of a trial.
type stage int

const (
	trialPausing stage = iota
	trialLoading
	trialPreparing // its module's code is
	trialReady
	trialRunning
	trialBlocking // its run: the trial ends when that is durable
)

// trial is a suspect that is tried now.
type trial struct {
	key   host.CoreKey
	stage stage
	until time.Time // of a pause, or of the window, whatever is left of the units
	left  uint64    // units of the window; those of a call do not become less
	pos   uint64    // of the entry that blocks the run
	over  bool      // it came back, or there is nothing to try
}

func (t *trial) is(key host.CoreKey) bool { return t != nil && t.key == key }

// over reports whether the window is, and when to look again.
func (t *trial) windowOver(now time.Time) (over bool, next time.Time) {
	soonest := now.Add(max(time.Duration(t.left/unitsPerNanosecond), lookAgain))
	if t.until.Before(soonest) {
		soonest = t.until
	}
	return t.left == 0 || !now.Before(t.until), soonest
}

// session is the one that has the suspect.
func (t *trial) session() host.SessionKey {
	return host.SessionKey{Tenant: t.key.Tenant, Session: t.key.Session}
}

// keeps takes an attempt that is ready, if it is of a suspect whose turn has not come
// or comes now. Called with Scheduler.mu held.
func (a *apart) keeps(at *attempt) bool {
	if a == nil {
		return false
	}
	key := at.suspectKey()
	mine := a.now.is(key) && a.now.stage < trialRunning
	if mine && a.now.stage == trialPreparing {
		a.now.stage = trialReady
	}
	for i := 0; i < len(a.waiting) && !mine; i++ {
		mine = a.waiting[i] == key
	}
	if mine {
		a.held[key] = at
	}
	return mine
}

// bars reports whether a session may not be loaded now.
func (a *apart) bars(key host.SessionKey) bool {
	return a != nil && (a.now == nil || a.now.stage == trialPausing || a.now.session() != key)
}

// prepares notes that an attempt waits for its module's code, and comes back. Called
// with Scheduler.mu held.
func (a *apart) prepares(at *attempt) {
	if a != nil && a.tries(at) {
		a.now.stage = trialPreparing
	}
}

// tries reports whether an attempt is the one that runs alone.
func (a *apart) tries(at *attempt) bool {
	return at != nil && a.now != nil && a.now.stage == trialRunning && a.now.is(at.suspectKey())
}

// afterApart waits until sessions may be loaded. Called with mu held, which it gives
// up meanwhile.
func (s *Scheduler) afterApart(ctx context.Context, key host.SessionKey) (err error) {
	for err == nil && s.apart.bars(key) && s.sessions[key] == nil {
		over := s.apart.over
		s.mu.Unlock()
		select {
		case <-over:
		case <-s.stopped:
			err = admission.ErrStopping
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
	}
	return err
}

// apartWork goes on with the trials: what is to be done now, and when to look again.
// When it returns, s.apart is nil if the phase is over. Called with mu held.
func (s *Scheduler) apartWork(now time.Time) (work []func(), next time.Time) {
	a := s.apart
	for {
		t := a.now
		switch {
		case t == nil && len(a.waiting) == 0:
			s.endApart()
			return work, time.Time{}
		case t == nil:
			a.now, a.waiting = &trial{key: a.waiting[0]}, a.waiting[1:]
			if sus := s.suspects[a.now.key]; sus == nil {
				a.now.over = true
			} else if pause := pauses[min(int(sus.Alone), len(pauses)-1)]; pause > 0 && !sus.Blamed {
				s.cfg.Notes.Phase(host.PhaseControl)
				a.now.until = now.Add(pause)
			}
		case t.over:
			s.endTrial()
		case t.stage == trialPausing && now.Before(t.until):
			return work, t.until
		case t.stage == trialPausing:
			s.cfg.Notes.Phase(host.PhaseApart)
			t.stage = trialLoading
			return append(work, func() { s.beginTrial(t) }), time.Time{}
		case t.stage == trialReady && s.queue.Free() == s.queue.Size(): // else who was let go on is about to give its own up
			if run := s.runTrial(t, now); run != nil {
				_, next = t.windowOver(now)
				return append(work, run), next
			}
			if t.stage == trialReady && !t.over {
				return work, time.Time{} // a call whose intent is not durable yet
			}
		case t.stage == trialRunning:
			if t.over, next = t.windowOver(now); !t.over {
				return work, next
			}
		case t.stage == trialBlocking && t.pos <= s.cfg.Journal.Durable():
			s.settleBlame(t.key)
			t.over = true
		default:
			return work, time.Time{}
		}
	}
}

// endTrial lets go of the suspect that was tried. Called with mu held.
func (s *Scheduler) endTrial() {
	key := s.apart.now.key
	s.apart.now = nil
	if at := s.apart.held[key]; at != nil { // it was not run: nobody wants it, or it waits as others do
		delete(s.apart.held, key)
		s.push(s.item(at))
	}
}

// endApart ends the phase. Called with mu held.
func (s *Scheduler) endApart() {
	close(s.apart.over)
	s.apart = nil
	s.queue.Speed.Pause(false)
	s.cfg.Notes.Phase(host.PhaseServing)
	s.cfg.Log.Info("what held a core at the end before has run apart", "still_suspected", len(s.suspects))
	s.signal()
}

// beginTrial loads a suspect's session. What is to blame is blocked.
func (s *Scheduler) beginTrial(t *trial) {
	key := t.key
	blame, there, pos := s.findSuspect(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case blame:
		t.stage, t.pos = trialBlocking, pos
	case !there:
		t.over = true
		if sus := s.suspects[key]; sus != nil {
			s.gone[likenessOf(&sus.CoreNote)] = true
		}
		s.acquit(key)
	default:
		t.stage = trialReady
	}
	s.signal()
}

// findSuspect loads the session of a suspect, and says whether the suspect is there still:
// as an attempt or a call that is open. blame: its run was to be blocked, at pos.
func (s *Scheduler) findSuspect(t *trial) (blame, there bool, pos uint64) {
	var sus host.Suspect
	s.mu.Lock()
	if known := s.suspects[t.key]; known != nil { // else it has come back by itself
		sus = *known
	}
	s.mu.Unlock()
	ss, err := s.acquire(context.Background(), t.session(), false)
	if err != nil { // it came back with an error
		if host.CodeOf(err) != host.CodeNotFound && !history.Unfolds(err) {
			s.logOf(context.Background(), slog.LevelError, "the session of a step that is suspected to end the server cannot be loaded", t.session(), []any{"error", err})
		}
		return false, false, 0
	}
	defer ss.release()
	ss.mu.Lock()
	view, ok := ss.eng.Invocation(t.key.Invocation)
	switch at := ss.attempts[t.key.Invocation]; t.key.Kind {
	case host.CoreRun:
		there = at != nil && at.view.Attempt == t.key.Attempt
	case host.CoreCall:
		call, open := ss.eng.OutCall(t.key.Invocation)
		there = open && call.Attempt == t.key.Attempt
	}
	if there = there && ok; there && sus.Blamed {
		blame = true
		_, pos, err = ss.tick(engine.Block{RunID: view.RunID, Reason: blamed(&sus, view.Step, s.death)}, nil)
		if t.key.Kind == host.CoreCall {
			s.calls.takeBack(ss.key, t.key.Invocation) // until the run is resumed
		}
	}
	ss.mu.Unlock()
	switch {
	case !blame:
	case err != nil && !errors.Is(err, engine.ErrStale):
		ss.log(context.Background(), slog.LevelError, "a run cannot be blocked", "workflow", view.Workflow, "handler", view.HandlerID, "run", view.RunID, "error", err)
	default:
		ss.log(context.Background(), slog.LevelWarn, "a run is blocked: the server ends while a step of it runs", "workflow", view.Workflow, "handler", view.HandlerID, "run", view.RunID, "step", view.Step)
	}
	return blame, there, pos
}

// settleBlame keeps of a suspect whose run is blocked what tells its like. Called with
// mu held.
func (s *Scheduler) settleBlame(key host.CoreKey) {
	s.counters.Blamed++
	if sus := s.suspects[key]; sus != nil && sus.Kind == host.CoreRun {
		s.remember(settle(sus))
	}
	s.acquit(key)
}

// runTrial begins the work of a suspect alone; nil if it cannot begin yet, or is not
// there any more. Called with mu held.
func (s *Scheduler) runTrial(t *trial, now time.Time) func() {
	noted := int(s.suspects[t.key].Noted)
	var window time.Duration
	if noted <= len(windows) {
		window = windows[max(noted, 1)-1]
	}
	var run func()
	if t.key.Kind == host.CoreRun {
		at := s.apart.held[t.key]
		if at == nil && s.awaitsJournal(t.key) {
			return nil
		}
		if at == nil { // it waits for something: it came back
			s.acquit(t.key)
			return nil
		}
		delete(s.apart.held, t.key)
		s.queue.Seize(t.key.Tenant)
		at.serve(serviceCore, s.now())
		if most := at.view.Limits.Complete().WallTime; window == 0 || window > most {
			window = most
		}
		t.left, t.until = uint64(window)*unitsPerNanosecond, now.Add(patience*window)
		run = func() { s.run(at) }
	} else {
		o := s.calls.book.Find(calls.Key{Session: t.session(), Invocation: t.key.Invocation})
		if o == nil || !o.Queued() {
			s.acquit(t.key)
			return nil
		}
		if o.Pos > s.cfg.Journal.Durable() {
			return nil
		}
		if window == 0 {
			window = min(callWindow<<min(noted-len(windows)-1, 10), mostWindow)
		}
		t.left, t.until = math.MaxInt64, now.Add(window)
		run = s.calls.begin(o)
	}
	t.stage = trialRunning
	return run
}
