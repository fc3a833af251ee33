package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// Step decides what is to be done at the given time. Each piece of work is to
// be carried out, once, on a goroutine of its own; next is when to step again
// (zero: when [Scheduler.Wake] says so).
func (s *Scheduler) Step(now time.Time) (work []func(), next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.stopping {
		s.cores.resumeOnly()
		return nil, time.Time{}
	}
	for i := range s.duties {
		d := &s.duties[i]
		// While suspects are tried, starts are taken; what they begin waits.
		if s.suspicion.trials != nil && !d.always {
			continue
		}
		more, at := d.do(now)
		work = append(work, more...)
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return work, next
}

// duty is a part of what Step does. do is called with mu held, and gives the work that is
// to be done now, and when to look again; zero: when something happens.
type duty struct {
	do     func(now time.Time) (work []func(), next time.Time)
	always bool // also while suspects are tried
}

// setDuties lists the duties in their order. What makes attempts ready comes before
// the tokens are given out; what lets sessions leave memory comes before the timers and
// before other sessions are loaded.
func (s *Scheduler) setDuties() {
	s.duties = []duty{
		{s.cores.admitHeld, true},
		{s.cores.spare.end, true},
		{s.suspicion.letKept, true},
		{s.suspicion.work, true},
		{s.cores.backoffOver, false},
		{s.mailer.work, false},
		{s.calls.work, false},
		{s.admitWaiting, true},
		{s.cores.grant, false},
		{s.table.evict, false},
		{s.dues.fireWork, false},
		{s.dues.work, false},
		{s.table.settleWork, false},
		{s.old.Work, false},
		{s.life.work, true},
	}
}

// admitWaiting lets starts and events of clients in for which there is room by now.
func (s *Scheduler) admitWaiting(time.Time) (work []func(), next time.Time) {
	if s.gate.Waiting() > 0 {
		s.gate.Admit()
	}
	return nil, time.Time{}
}

// overLimitPause is how soon to look again when a tenant with ready attempts is over the
// journal's soft limit.
const overLimitPause = 5 * time.Millisecond

// grant gives the free tokens to the attempts whose turn it is.
func (c *cores) grant(now time.Time) (work []func(), next time.Time) {
	s := c.s
	skip := func(tenant string) bool {
		if s.cfg.Journal.OverSoftLimit(tenant) {
			next = now.Add(overLimitPause)
			return true
		}
		return false
	}
	for {
		it, ok := c.queue.Pop(skip)
		if !ok {
			break
		}
		it.Of.serve(serviceCore, s.now())
		if it.Resume != nil {
			close(it.Resume) // the guest goes on where it gave its token up
			continue
		}
		if !it.Since.IsZero() {
			s.cfg.Observer.Waited(now.Sub(it.Since))
		}
		work = append(work, func() { s.run(it.Of) })
	}
	if c.queue.Free() > 0 {
		c.queue.Speed.Rest()
	}
	c.queue.Speed.Rate() // ends the window of the measurement if it is over
	return work, next
}

// work writes the alive mark now and then. Called with mu held.
func (l *life) work(now time.Time) (work []func(), next time.Time) {
	if next = time.Unix(0, l.lastMark).Add(markEvery); next.After(now) {
		return nil, next
	}
	if !l.marking {
		l.marking = true
		work = append(work, l.mark)
	}
	return work, time.Time{}
}

// resumeOnly lets guests that gave up their token run to their end while the
// scheduler stops, whatever their tenant's budget. Called with mu held.
func (c *cores) resumeOnly() {
	c.admitHeld(c.s.cfg.Now())
	for {
		it, ok := c.queue.Pop(func(string) bool { return false })
		if !ok {
			return
		}
		if it.Resume != nil {
			close(it.Resume)
			continue
		}
		c.queue.Release(it.Of.ss.key.Tenant)
	}
}

// maxBarriers is how many purged sessions are remembered before those whose
// deletion is durable are forgotten.
const maxBarriers = 1024

// evict forgets sessions that have had nothing to do for long enough. Called with mu held.
func (t *table) evict(now time.Time) (work []func(), next time.Time) {
	durable := t.s.cfg.Journal.Durable()
	for n := len(t.idle); n > 0; n-- { // the longest idle is first, and looked at once
		it := t.idle[0]
		if now.Sub(it.since) < t.s.cfg.IdleAfter {
			next = it.since.Add(t.s.cfg.IdleAfter)
			break
		}
		t.idle[0] = idleSession{}
		t.idle = t.idle[1:]
		ss := t.sessions[it.key]
		if ss == nil || ss.pins > 0 || !ss.idleSince.Equal(it.since) {
			continue // it comes back, or came back, to the list with its last release
		}
		// Without pins nobody else looks at what ss.mu guards.
		if ss.lastPos > durable {
			it.since, ss.idleSince = now, now
			t.idle = append(t.idle, it)
			continue
		}
		if t.settleCounts(ss) {
			continue
		}
		t.forget(ss)
	}
	if next.IsZero() && len(t.idle) > 0 {
		next = now.Add(t.s.cfg.IdleAfter)
	}
	if len(t.barriers) > maxBarriers {
		for key, pos := range t.barriers {
			if pos <= durable {
				delete(t.barriers, key)
			}
		}
	}
	t.s.keys.Prune(durable)
	if len(t.s.reserved.starting) > maxBarriers {
		for key, pos := range t.s.reserved.starting {
			if pos != 0 && pos <= durable {
				delete(t.s.reserved.starting, key)
			}
		}
	}
	return nil, next
}

// forget takes a session out of memory that has no pins and is durable. Called with
// mu held.
func (t *table) forget(ss *session) {
	delete(t.sessions, ss.key)
	for _, w := range ss.needs {
		t.s.starts.Demand.Gone(w)
	}
	t.s.counters.Evicted++
	if t.s.calls.book.Of(ss.key) > 0 {
		return // the store does not know of its timer, as it waits for more
	}
	t.s.dues.timers.Remove(ss.key)
	if ss.eng != nil {
		t.s.dues.note(ss.eng.NextTimer())
	}
}

// retryLoad is when a session that is due but does not load is tried again.
const retryLoad = 10 * time.Second

// ensure loads a session if need be and uses it. One that cannot be loaded is
// due again later.
func (t *table) ensure(key host.SessionKey, complaint string, use func(*session)) {
	ss, err := t.acquire(context.Background(), key, false)
	switch {
	case err == nil:
		use(ss)
		ss.release()
	case host.CodeOf(err) != host.CodeNotFound: // else it was purged
		if !history.Unfolds(err) { // else that was told
			t.s.log.session(context.Background(), slog.LevelError, complaint, key, []any{"error", err})
		}
		again := t.retryAfter(key, retryLoad)
		t.s.mu.Lock()
		if t.s.calls.book.Of(key) > 0 { // askDue would pass it over
			t.s.dues.timers.Set(key, again.UnixNano())
		} else {
			t.s.dues.note(again.UnixNano())
		}
		t.s.mu.Unlock()
		t.s.signal()
	}
}

// setTimer notes when a loaded session's next timer is due.
func (d *dues) setTimer(key host.SessionKey, at int64) {
	d.s.mu.Lock()
	earlier := d.timers.Set(key, at)
	d.s.mu.Unlock()
	if earlier {
		d.s.signal()
	}
}

// fire ticks a session's timers that are due.
func (d *dues) fire(key host.SessionKey) {
	d.s.table.ensure(key, "a timer cannot fire", func(ss *session) {
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
		if _, _, err := ss.tick(engine.Timer{}, extras{}); err != nil {
			ss.log(context.Background(), slog.LevelError, "a timer is refused", "error", err)
			break
		}
	}
	ss.s.dues.setTimer(ss.key, ss.eng.NextTimer())
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
	s.life.abandoned = true
}

func (s *Scheduler) stop(grace time.Duration) error {
	s.mu.Lock()
	s.life.stopping, s.life.until = true, s.now()
	if s.life.abandoned {
		grace = 0
	}
	close(s.stopped)
	s.endBase()
	s.cores.resumeOnly()
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
			s.cores.resumeOnly()
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
	all := make([]*session, 0, len(s.table.sessions))
	for _, ss := range s.table.sessions {
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
