package scheduler

import (
	"log/slog"
	"time"
)

// An attempt is tried again after firstBackoff when the host could not run its guest,
// each time in a row after twice as long, at most after mostBackoff.
const (
	firstBackoff = 50 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// backOff has an attempt tried again later. The caller holds the session's mu.
func (c *cores) backOff(at *attempt, reason error) {
	wait := min(firstBackoff<<min(at.backoffs, 10), mostBackoff)
	at.backoffs++
	at.say(slog.LevelWarn, "the host cannot run a step now, and tries again", "wait", wait, "error", reason)
	c.s.mu.Lock()
	c.s.counters.Backoffs++
	c.backoff = append(c.backoff, backoff{at, c.s.cfg.Now().Add(wait)})
	c.s.mu.Unlock()
	c.s.signal()
}

// backoffOver queues the attempts whose wait is over. One that nobody
// wants any more is let go by its turn. The caller holds mu.
func (c *cores) backoffOver(now time.Time) (work []func(), next time.Time) {
	kept := c.backoff[:0]
	for _, p := range c.backoff {
		if !p.due.After(now) {
			c.push(readyItem{Of: p.at})
			continue
		}
		if kept = append(kept, p); next.IsZero() || p.due.Before(next) {
			next = p.due
		}
	}
	clear(c.backoff[len(kept):])
	c.backoff = kept
	return nil, next
}
