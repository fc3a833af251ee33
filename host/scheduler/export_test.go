package scheduler

import (
	"fmt"
	"slices"

	"github.com/weftrun/weft/host/scheduler/calls"
)

// Leak names what a scheduler that has nothing to do still holds, or is "".
// Nothing may run in it meanwhile.
func (s *Scheduler) Leak() string {
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.table.sessions))
	for _, ss := range s.table.sessions {
		if ss.pins != 0 {
			defer s.mu.Unlock()
			return fmt.Sprintf("session %s has %d pins, attempts %v", ss.key.Session, ss.pins, ss.attempts)
		}
		sessions = append(sessions, ss)
	}
	defer s.mu.Unlock()
	for _, ss := range sessions { // without pins nobody else looks at them
		if ss.tickets.Len() > 0 || len(ss.attempts) > 0 || len(ss.ended) > 0 {
			return fmt.Sprintf("session %s: ticket %v, attempts %v, waiting clients %v", ss.key.Session, ss.tickets, ss.attempts, ss.ended)
		}
		for inv := range ss.ledger.Records {
			if _, ok := ss.eng.Invocation(inv); !ok {
				return fmt.Sprintf("session %s keeps the record of invocation %d, which is over", ss.key.Session, inv)
			}
		}
	}
	if left := s.reserved.Left(); left != "" {
		return left
	}
	if left := s.keys.Left(); left != "" {
		return left
	}
	if left := s.gate.Left(); left != "" {
		return left
	}
	switch q := &s.cores.queue; {
	case q.Free()+s.cores.spare.tokens != s.cfg.Tokens:
		return fmt.Sprintf("%d of %d tokens are free, %d are spared", q.Free(), s.cfg.Tokens, s.cores.spare.tokens)
	case q.Ready() != 0 || len(q.Busy()) != 0:
		return fmt.Sprintf("%d items are ready, tenants %v", q.Ready(), q.Busy())
	case s.suspicion.trials != nil:
		return fmt.Sprintf("suspects are tried: %+v", s.suspicion.trials)
	case len(slices.Collect(q.HeldTenants())) != 0:
		return fmt.Sprintf("tenants %v are held", slices.Collect(q.HeldTenants()))
	case leftCalls(&s.calls) != "":
		return leftCalls(&s.calls)
	case len(s.suspicion.unkept) != 0:
		return fmt.Sprintf("%d attempts are to be durable first", len(s.suspicion.unkept))
	}
	return s.dues.Left()
}

// Ready is how many attempts wait for a token.
func (s *Scheduler) Ready() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cores.queue.Ready() + len(s.suspicion.unkept)
}

// Overslept reports whether attempts and tokens are there, and nothing makes the
// runner bring them together.
func (s *Scheduler) Overslept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspicion.trials == nil && len(s.wake) == 0 && s.cores.queue.Oversleeps(s.cfg.Journal.OverSoftLimit)
}

// Trials is how many suspects are to be tried yet, the one that is tried now included.
func (s *Scheduler) Trials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspicion.trials.Left()
}

// Quarantined is the number of sessions in quarantine, without those that only could
// not be read.
func (s *Scheduler) Quarantined() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.quarantine.Damaged()
}

// leftCalls names the calls of resources that are left.
func leftCalls(c *calls.Caller) string {
	if open, pools, late := c.Left(); open+pools+late > 0 {
		return fmt.Sprintf("calls of resources are left: %d open, %d pools, %d late", open, pools, late)
	}
	return ""
}
