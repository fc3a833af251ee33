package engine

import "container/heap"

// A timeout bounds the time in which work could be done. It counts serving time, and
// stops while its run is paused or blocked. The default timeout of a run, for a run whose
// author and client have not set one, counts only while an attempt of the run is open
// (see [StartRun]). Both rules follow from entries.
//
// An attempt that waits for a core does no work either. The session cannot see this: the
// caller that runs the attempts postpones a due timeout by an [Extend].

// count starts or stops the run's deadline, as the state of the run requires.
func (s *Session) count(r *run) {
	t := r.deadline
	if t == nil {
		return
	}
	switch goesOn := r.counts(); {
	case goesOn && t.slot < 0:
		// The time while the deadline was stopped does not count.
		t.at = later(t.at, s.now-r.stopped)
		heap.Push(&s.timers.heap, t)
		s.timers.byID[t.id] = t
	case !goesOn && t.slot >= 0:
		s.disarm(t)
		r.stopped = s.now
	}
}

// counts reports whether time counts against the run's deadline.
func (r *run) counts() bool {
	return !r.held() && (!r.work || r.seated > 0 || r.ending != nil)
}

// Timeout identifies a timeout of a run or an attempt.
type Timeout struct {
	Timer      uint64
	RunID      string
	Invocation uint64 // of the attempt; 0: of the run, or of its clean-up
}

func (t *timer) timeout() Timeout {
	out := Timeout{Timer: t.id, RunID: t.run.rec.RunID}
	if t.inv != nil {
		out.Invocation = t.inv.id
	}
	return out
}

// DueTimeout returns the earliest timer, if it is a timeout that is due at now. An
// [Extend] may postpone it. Otherwise it fires.
func (s *Session) DueTimeout(now int64) (Timeout, bool) {
	t := s.timers.first()
	if t == nil || t.at > now || !t.kind.servingTime() {
		return Timeout{}, false
	}
	return t.timeout(), true
}

// Timeouts lists the timeouts of all runs that have begun, stopped ones included. It
// costs O(n log n) of all invocations.
func (s *Session) Timeouts() []Timeout {
	var out []Timeout
	for _, id := range sortedKeys(s.runs) {
		r := s.runs[id]
		if r.deadline != nil {
			out = append(out, r.deadline.timeout())
		}
		for inv := r.oldest; inv != nil; inv = inv.newer {
			if inv.timer != nil && inv.timer.kind == timerAttempt {
				out = append(out, inv.timer.timeout())
			}
		}
	}
	return out
}

// find returns the timer of a timeout, or nil if it has fired or been removed.
func (s *Session) find(of Timeout) *timer {
	var t *timer
	if inv := s.invocations[of.Invocation]; inv != nil && inv.run.rec.RunID == of.RunID {
		t = inv.timer
	} else if r := s.runs[of.RunID]; r != nil && of.Invocation == 0 {
		t = r.deadline
	}
	if t == nil || t.id != of.Timer || !t.kind.servingTime() {
		return nil
	}
	return t
}

func (s *Session) decideExtend(e *Entry, t Extend) decision {
	// The attempt may have ended while the caller worked out how long it had waited.
	if s.find(t.Of) == nil || t.By <= 0 {
		return decision{}
	}
	e.Kind, e.RunID, e.Invocation, e.Timer, e.Lost = EntryExtend, t.Of.RunID, t.Of.Invocation, t.Of.Timer, t.By
	return decision{entry: e}
}

func (s *Session) foldExtend(e *Entry) error {
	t := s.find(Timeout{Timer: e.Timer, RunID: e.RunID, Invocation: e.Invocation})
	if t == nil || e.Lost <= 0 {
		return corrupt(e, "it does not postpone a timeout (timer %d)", e.Timer)
	}
	s.visited++
	t.at = later(t.at, e.Lost)
	if t.slot >= 0 {
		heap.Fix(&s.timers.heap, t.slot)
	}
	return nil
}
