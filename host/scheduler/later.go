package scheduler

import (
	"log/slog"
	"time"
)

// An attempt is put off for firstPutOff when the host could not run its guest,
// each time in a row twice as long, at most for mostPutOff.
const (
	firstPutOff = 50 * time.Millisecond
	mostPutOff  = 5 * time.Second
)

// putOff is an attempt whose guest the host could not run, being short of memory
// for example. It waits without a token: the run is as it was, and the
// time counts against none of its timeouts.
type putOff struct {
	at  *attempt
	due time.Time
}

// putOff has an attempt tried again later. Called with the session's mu held.
func (s *Scheduler) putOff(at *attempt, reason error) {
	wait := min(firstPutOff<<min(at.putOff, 10), mostPutOff)
	at.putOff++
	at.say(slog.LevelWarn, "the host cannot run a step now, and tries again", "wait", wait, "error", reason)
	s.mu.Lock()
	s.counters.PutOff++
	s.put = append(s.put, putOff{at, s.cfg.Now().Add(wait)})
	s.mu.Unlock()
	s.signal()
}

// takeUp queues the attempts whose wait is over, and says when the next one's
// will be: zero if none waits. One that nobody wants any more is let go by its
// turn. Called with mu held.
func (s *Scheduler) takeUp(now time.Time) (next time.Time) {
	kept := s.put[:0]
	for _, p := range s.put {
		if !p.due.After(now) {
			s.push(readyItem{Of: p.at})
			continue
		}
		if kept = append(kept, p); next.IsZero() || p.due.Before(next) {
			next = p.due
		}
	}
	clear(s.put[len(kept):])
	s.put = kept
	return next
}
