package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// maxBarriers is how many purged sessions are remembered before those whose
// deletion is durable are forgotten.
const maxBarriers = 1024

// stalled is how soon to look again when the journal takes no more.
const stalled = 5 * time.Millisecond

// Step decides what is to be done at the given time. Each piece of work is to
// be carried out, once, on a goroutine of its own; next is when to step again
// (zero: when [Scheduler.Wake] says so).
func (s *Scheduler) Step(now time.Time) (work []func(), next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return s.resumeOnly(), time.Time{}
	}
	at := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if t := s.admitHeld(now); !t.IsZero() {
		at(t)
	}
	if t := s.spare.end(s, now); !t.IsZero() {
		at(t)
	}
	s.suspicion.letKept()
	trial, t := s.suspicion.work(now)
	if work = append(work, trial...); !t.IsZero() {
		at(t)
	}
	if s.suspicion.trials != nil { // starts are taken; what they begin waits
		if s.gate.Waiting() > 0 {
			s.gate.Admit()
		}
		alive, t := s.aliveWork(now)
		if !t.IsZero() {
			at(t)
		}
		return append(work, alive...), next
	}
	if t := s.takeUp(now); !t.IsZero() {
		at(t)
	}
	carry, t := s.mailWork(now)
	if work = append(work, carry...); !t.IsZero() {
		at(t)
	}
	asked, t := s.calls.work(now)
	if work = append(work, asked...); !t.IsZero() {
		at(t)
	}
	if s.gate.Waiting() > 0 {
		s.gate.Admit()
	}
	overLimit := false
	skip := func(tenant string) bool {
		if s.cfg.Journal.OverSoftLimit(tenant) {
			overLimit = true
			return true
		}
		return false
	}
	for {
		it, ok := s.queue.Pop(skip)
		if !ok {
			break
		}
		it.Of.serve(serviceCore, s.now())
		if it.Resume != nil {
			close(it.Resume)
			continue
		}
		if !it.Since.IsZero() {
			s.cfg.Observer.Waited(now.Sub(it.Since))
		}
		work = append(work, func() { s.run(it.Of) })
	}
	if s.queue.Free() > 0 {
		s.queue.Speed.Rest()
	}
	s.queue.Speed.Rate()
	if overLimit {
		at(now.Add(stalled))
	}
	if t := s.evict(now); !t.IsZero() {
		at(t)
	}
	fire, t := s.fireWork(now)
	if fire != nil {
		work = append(work, fire)
	}
	if !t.IsZero() {
		at(t)
	}
	taken, t := s.dueWork(now)
	if work = append(work, taken...); !t.IsZero() {
		at(t)
	}
	work = append(work, s.settleWork()...)
	if step, t := s.sweepWork(now); step != nil {
		work = append(work, step)
	} else if !t.IsZero() {
		at(t)
	}
	alive, t := s.aliveWork(now)
	if work = append(work, alive...); !t.IsZero() {
		at(t)
	}
	return work, next
}

// aliveWork writes the alive mark now and then. Called with mu held.
func (s *Scheduler) aliveWork(now time.Time) (work []func(), next time.Time) {
	if next = time.Unix(0, s.lastMark).Add(markEvery); next.After(now) {
		return nil, next
	}
	if !s.marking {
		s.marking = true
		work = append(work, s.mark)
	}
	return work, time.Time{}
}

// resumeOnly lets guests that gave up their token run to their end while the
// scheduler stops, whatever their tenant's budget. Called with mu held.
func (s *Scheduler) resumeOnly() []func() {
	s.admitHeld(s.cfg.Now())
	for {
		it, ok := s.queue.Pop(func(string) bool { return false })
		if !ok {
			return nil
		}
		if it.Resume != nil {
			close(it.Resume)
			continue
		}
		s.queue.Release(it.Of.ss.key.Tenant)
	}
}

// evict forgets sessions that have had nothing to do for long enough; it
// returns when to look again. Called with mu held.
func (s *Scheduler) evict(now time.Time) time.Time {
	var next time.Time
	durable := s.cfg.Journal.Durable()
	for n := len(s.idle); n > 0; n-- { // the longest idle is first, and looked at once
		it := s.idle[0]
		if now.Sub(it.since) < s.cfg.IdleAfter {
			next = it.since.Add(s.cfg.IdleAfter)
			break
		}
		s.idle[0] = idleSession{}
		s.idle = s.idle[1:]
		ss := s.sessions[it.key]
		if ss == nil || ss.pins > 0 || !ss.idleSince.Equal(it.since) {
			continue // it comes back, or came back, to the list with its last release
		}
		// Without pins nobody else looks at what ss.mu guards.
		if ss.lastPos > durable {
			it.since, ss.idleSince = now, now
			s.idle = append(s.idle, it)
			continue
		}
		if s.settleCounts(ss) {
			continue
		}
		s.forget(ss)
	}
	if next.IsZero() && len(s.idle) > 0 {
		next = now.Add(s.cfg.IdleAfter)
	}
	if len(s.barriers) > maxBarriers {
		for key, pos := range s.barriers {
			if pos <= durable {
				delete(s.barriers, key)
			}
		}
	}
	s.keys.Prune(durable)
	if len(s.starting) > maxBarriers {
		for key, pos := range s.starting {
			if pos != 0 && pos <= durable {
				delete(s.starting, key)
			}
		}
	}
	return next
}

// forget takes a session out of memory that has no pins and is durable. Called with
// mu held.
func (s *Scheduler) forget(ss *session) {
	delete(s.sessions, ss.key)
	for _, w := range ss.needs {
		s.starts.Demand.Gone(w)
	}
	s.counters.Evicted++
	if s.calls.book.Of(ss.key) > 0 {
		return // the store does not know of its timer, as it waits for more
	}
	s.timers.Remove(ss.key)
	if ss.eng != nil {
		s.due(ss.eng.NextTimer())
	}
}

// retryLoad is when a session that is due but does not load is tried again.
const retryLoad = 10 * time.Second

// ensure loads a session if need be and uses it. One that cannot be loaded is
// due again later.
func (s *Scheduler) ensure(key host.SessionKey, complaint string, use func(*session)) {
	ss, err := s.acquire(context.Background(), key, false)
	switch {
	case err == nil:
		use(ss)
		ss.release()
	case host.CodeOf(err) != host.CodeNotFound: // else it was purged
		if !history.Unfolds(err) { // else that was told
			s.logOf(context.Background(), slog.LevelError, complaint, key, []any{"error", err})
		}
		again := s.retryAfter(key, retryLoad)
		s.mu.Lock()
		if s.calls.book.Of(key) > 0 { // askDue would pass it over
			s.timers.Set(key, again.UnixNano())
		} else {
			s.due(again.UnixNano())
		}
		s.mu.Unlock()
		s.signal()
	}
}

// setTimer notes when a loaded session's next timer is due.
func (s *Scheduler) setTimer(key host.SessionKey, at int64) {
	s.mu.Lock()
	earlier := s.timers.Set(key, at)
	s.mu.Unlock()
	if earlier {
		s.signal()
	}
}

// fire ticks a session's timers that are due.
func (s *Scheduler) fire(key host.SessionKey) {
	s.ensure(key, "a timer cannot fire", func(ss *session) {
		ss.mu.Lock()
		ss.fireDue()
		ss.mu.Unlock()
	})
}

// fireDue ticks every timer that is due. Called with mu held.
func (ss *session) fireDue() {
	for {
		if ss.dead {
			return // the timers under its key are those of another by now
		}
		at := ss.eng.NextTimer()
		if at == host.WakeNever || at > ss.s.now() {
			break
		}
		if t, ok := ss.eng.DueTimeout(ss.s.now()); ok && ss.extend(t) {
			continue
		}
		if _, _, err := ss.tick(engine.Timer{}, nil); err != nil {
			ss.log(context.Background(), slog.LevelError, "a timer is refused", "error", err)
			break
		}
	}
	ss.s.setTimer(ss.key, ss.eng.NextTimer())
}

// Wake says that there is something to step for.
func (s *Scheduler) Wake() <-chan struct{} { return s.wake }

// Nudge makes the runner step: the journal calls it after a commit.
func (s *Scheduler) Nudge() { s.signal() }

// Run steps the scheduler until ctx ends. Then it stops taking work, gives
// running guests the grace time to end, abandons what still runs (the journal
// has it open) and returns when all is out.
func (s *Scheduler) Run(ctx context.Context, grace time.Duration) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		work, next := s.Step(s.cfg.Now())
		for _, w := range work {
			s.workers.Do(w)
		}
		if next.IsZero() {
			next = s.cfg.Now().Add(time.Hour)
		}
		timer.Reset(next.Sub(s.cfg.Now()))
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return s.stop(grace)
}

// Abandon gives running guests no time to end when Run stops: call it before, when
// the journal is dead and nothing that they do can become durable.
func (s *Scheduler) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
}

func (s *Scheduler) stop(grace time.Duration) error {
	s.mu.Lock()
	s.stopping, s.until = true, s.now()
	if s.abandoned {
		grace = 0
	}
	close(s.stopped)
	s.endBase()
	s.resumeOnly()
	s.mu.Unlock()
	out := make(chan struct{})
	go func() {
		s.workers.Wait()
		close(out)
	}()
	limit := time.NewTimer(grace)
	defer limit.Stop()
	expired := limit.C
	for {
		select {
		case <-out:
			return nil
		case <-s.wake:
			s.mu.Lock()
			s.resumeOnly()
			s.mu.Unlock()
		case <-expired:
			s.cancelRunning()
			s.calls.cancel()
			expired = nil
		}
	}
}

// cancelRunning stops the guests that still run; their attempts stay open in
// the journal.
func (s *Scheduler) cancelRunning() {
	s.mu.Lock()
	all := make([]*session, 0, len(s.sessions))
	for _, ss := range s.sessions {
		all = append(all, ss)
	}
	s.mu.Unlock()
	for _, ss := range all {
		ss.mu.Lock()
		for _, at := range ss.attempts {
			if at.cancel != nil {
				at.cancel()
			}
		}
		ss.mu.Unlock()
	}
}
