package scheduler

import (
	"context"
	"time"
)

// Step decides what to do at the given time. The caller carries out each piece of work
// once, on a goroutine of its own; next is when to step again
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

// admitWaiting lets starts and events of clients in for which there is room by now.
func (s *Scheduler) admitWaiting(time.Time) (work []func(), next time.Time) {
	if s.gate.Waiting() > 0 {
		s.gate.Admit()
	}
	return nil, time.Time{}
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
	// Guests that gave their token up must come out, too, if there is time.
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
		// What still runs stays open in the journal, and continues at the next start.
		case <-expired:
			s.cancelRunning()
			s.calls.Cancel()
			expired = nil
		}
	}
}

// cancelRunning stops the guests that still run; their attempts stay open in
// the journal.
func (s *Scheduler) cancelRunning() {
	s.mu.Lock()
	// A session's lock must not be taken under the scheduler's.
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
