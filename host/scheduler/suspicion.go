package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/suspects"
)

// A run may have a core before its start is durable: the client gets its answer later. If the
// guest ends the server then, the next server does not find the run, and the client starts
// another one: death after death, and no suspect ever runs alone. So after a suspect was gone
// or blamed, a step like it begins only when the journal has all of its session:
//
//	death, the suspect is gone -> likes
//	ready: alike and not durable -> unkept -> durable -> queue, or its trial

// goneFor is how long after its start a server remembers suspects that were gone.
const goneFor = 10 * time.Minute

// suspicion has the work that is suspected to end the process, and its trials.
// Scheduler.mu guards it.
//
// While trials is not nil, only the session of the suspect that is tried may be loaded, and
// no attempt but the suspect's gets a token. An attempt that leaves unkept is offered to the
// trials first, as it may be a suspect's.
type suspicion struct {
	s      *Scheduler
	list   suspects.List
	trials *suspects.Trials[readyItem] // nil: suspects are not tried now
	unkept []unkeptItem                // attempts that must be durable first
}

// begin takes up what the process before left, and begins this life. Nobody else has the
// scheduler yet.
func (u *suspicion) begin() {
	s := u.s
	d := s.cfg.Notes.Before()
	next := suspects.Judge(d, s.boot)
	if keys := u.list.Take(next.Suspects, s.table.isolateLoad); len(keys) > 0 {
		u.trials = suspects.Try(trialHost{s}, &u.list, keys)
		s.cores.queue.Speed.Pause(true)
	}
	s.cfg.Notes.Begin(deaths.Suspicion{Suspects: u.list.All(), MemoryDeaths: next.MemoryDeaths})
	if u.trials == nil {
		s.cfg.Notes.Phase(deaths.PhaseServing) // earlier blames are no reason to run alone
	}
	s.cores.spare.begin(next.MemoryDeaths)
	s.death = d.Class
	if d.Class != deaths.DeathNone {
		u.logDeath(&d, next.Suspects)
	}
}

// logDeath says how the process before ended, and what is done about that.
func (u *suspicion) logDeath(d *deaths.Death, list []deaths.Suspect) {
	noted := make([]string, 0, len(d.Noted))
	for i := range d.Noted {
		noted = append(noted, suspects.Name(&d.Noted[i]))
	}
	blame := 0
	for i := range list {
		if s := &list[i]; s.Blamed && !suspects.Settled(s) {
			blame++
		}
	}
	u.s.cfg.Log.Warn("the previous server crashed or was killed", "class", string(d.Class), "held_a_core", noted,
		"suspects", u.list.Len(), "to_blame", blame)
}

// cameBack notes that work has come back to the host: it is no longer suspected.
func (u *suspicion) cameBack(key deaths.CoreKey) {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	u.acquit(key)
}

// acquit forgets a suspect. The caller holds mu.
func (u *suspicion) acquit(key deaths.CoreKey) {
	if !u.list.Acquit(key) {
		return
	}
	u.s.cfg.Notes.Suspect(u.list.All())
	if u.trials.Came(key) {
		u.s.signal()
	}
}

// afterTrials waits until sessions may be loaded. The caller holds mu, which it gives
// up meanwhile.
func (u *suspicion) afterTrials(ctx context.Context, key host.SessionKey) (err error) {
	s := u.s
	for err == nil && u.trials.Bars(key) && s.table.sessions[key] == nil {
		over := u.trials.Over()
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

// work continues the trials, if there are any. The caller holds mu.
func (u *suspicion) work(now time.Time) (work []func(), next time.Time) {
	if u.trials == nil {
		return nil, time.Time{}
	}
	work, next, over := u.trials.Work(now)
	if over {
		u.trials = nil
		u.s.cores.queue.Speed.Pause(false)
		u.s.cfg.Notes.Phase(deaths.PhaseServing)
		u.s.cfg.Log.Info("the suspects of the previous end have run alone", "still_suspected", u.list.Len())
		u.s.signal()
	}
	return work, next
}

// trialHost is the scheduler as trials see it. The caller of its methods holds mu.
type trialHost struct{ *Scheduler }

// Phase implements suspects.Host.
func (h trialHost) Phase(p deaths.CorePhase) { h.cfg.Notes.Phase(p) }

// Idle implements suspects.Host.
func (h trialHost) Idle() bool { return h.cores.queue.Free() == h.cores.queue.Size() }

// Durable implements suspects.Host.
func (h trialHost) Durable() uint64 { return h.cfg.Journal.Durable() }

// Awaits implements suspects.Host.
func (h trialHost) Awaits(key deaths.CoreKey) bool { return h.suspicion.awaitsJournal(key) }

// Acquit implements suspects.Host.
func (h trialHost) Acquit(key deaths.CoreKey) { h.suspicion.acquit(key) }

// Release implements suspects.Host.
func (h trialHost) Release(it readyItem) { h.cores.push(it) }

// Blame implements suspects.Host.
func (h trialHost) Blame(key deaths.CoreKey) {
	h.counters.Blamed++
	h.suspicion.list.Blame(key)
	h.suspicion.acquit(key)
}

// RunAlone implements suspects.Host.
func (h trialHost) RunAlone(it readyItem) (work func(), most time.Duration) {
	at := it.Of
	h.cores.queue.Seize(at.ss.key.Tenant)
	at.service.Has(h.now())
	return func() { h.run(at) }, at.view.Limits.Complete().WallTime
}

// CallAlone implements suspects.Host.
func (h trialHost) CallAlone(key deaths.CoreKey) (work func(), there bool) {
	o := h.calls.Find(calls.Key{Session: host.SessionKey{Tenant: key.Tenant, Session: key.Session}, Invocation: key.Invocation})
	if o == nil || !o.Queued() {
		return nil, false
	}
	if o.Pos > h.cfg.Journal.Durable() {
		return nil, true
	}
	return h.calls.Begin(o), true
}

// Load implements suspects.Host.
func (h trialHost) Load(key deaths.CoreKey) (work func()) {
	return func() {
		blame, there, pos := h.suspicion.find(key)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.suspicion.trials.Found(key, blame, there, pos)
		h.signal()
	}
}

// find loads the session of a suspect, and reports whether the suspect still exists, as an
// open attempt or call. blame: its run was blocked, by the entry at pos.
func (u *suspicion) find(key deaths.CoreKey) (blame, there bool, pos uint64) {
	s := u.s
	var sus deaths.Suspect
	s.mu.Lock()
	if known := u.list.Find(key); known != nil { // else it has come back by itself
		sus = *known
	}
	s.mu.Unlock()
	ss, err := s.table.acquire(context.Background(), host.SessionKey{Tenant: key.Tenant, Session: key.Session}, false)
	// The load has come back, with an error: it does not end the server.
	if err != nil {
		if host.CodeOf(err) != host.CodeNotFound && !history.Unfolds(err) {
			s.log.Session(context.Background(), slog.LevelError, "the session of a step that is suspected to end the server cannot be loaded", host.SessionKey{Tenant: key.Tenant, Session: key.Session}, []any{"error", err})
		}
		return false, false, 0
	}
	defer ss.release()
	ss.mu.Lock()
	view, ok := ss.eng.Invocation(key.Invocation)
	switch at := ss.attempts[key.Invocation]; key.Kind {
	case deaths.CoreRun:
		there = at != nil && at.view.Attempt == key.Attempt
	case deaths.CoreCall:
		call, open := ss.eng.OutCall(key.Invocation)
		there = open && call.Attempt == key.Attempt
	}
	// A blamed suspect does not run again: its run is blocked.
	if there = there && ok; there && sus.Blamed {
		blame = true
		_, pos, err = ss.tick(engine.Block{RunID: view.RunID, Reason: suspects.Reason(&sus, view.Step, s.death)}, extras{})
		if key.Kind == deaths.CoreCall {
			s.calls.TakeBack(ss.key, key.Invocation) // until the run is resumed
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

// unkeptItem is an attempt that wants a token when the journal has what is up to pos.
type unkeptItem struct {
	it  readyItem
	pos uint64
}

// waitsForJournal reports whether work of a step must be durable before it begins.
// The caller holds mu.
func (u *suspicion) waitsForJournal(kind deaths.CoreKind, version, step string) bool {
	if u.list.Quiet() {
		return false
	}
	like := suspects.Like(kind, version, step)
	return u.list.WasGone(like) && u.s.now()-u.s.boot < goneFor.Nanoseconds() || u.list.WasBlamed(like)
}

// keepFirst holds an attempt back that must be durable before it begins. The caller holds
// the session's mu and mu.
func (u *suspicion) keepFirst(at *attempt) bool {
	if !u.waitsForJournal(deaths.CoreRun, at.view.Version, at.view.Step) || at.ss.lastPos <= u.s.cfg.Journal.Durable() {
		return false
	}
	u.unkept = append(u.unkept, unkeptItem{u.s.cores.item(at), at.ss.lastPos})
	return true
}

// letKept queues the attempts that are durable by now. The caller holds mu.
func (u *suspicion) letKept(time.Time) (work []func(), next time.Time) {
	if len(u.unkept) == 0 {
		return nil, time.Time{}
	}
	durable := u.s.cfg.Journal.Durable()
	u.unkept = slices.DeleteFunc(u.unkept, func(w unkeptItem) bool {
		if w.pos > durable {
			return false
		}
		u.s.cores.enqueue(w.it)
		return true
	})
	return nil, time.Time{}
}

// awaitsJournal reports whether a suspect's attempt is held back. The caller holds mu.
func (u *suspicion) awaitsJournal(key deaths.CoreKey) bool {
	return slices.ContainsFunc(u.unkept, func(w unkeptItem) bool { return w.it.Of.suspectKey() == key })
}
