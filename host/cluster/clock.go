package cluster

import (
	"sync"
	"time"
)

// clock is the time of the cluster at this node: that of the store, carried on by the node's
// own monotonic clock. So the timers of runs do not shift when another node takes over,
// whatever the machines' clocks say, and a step of a machine's clock changes nothing. It
// never goes back. Nothing that is promised depends on it.
type clock struct {
	now func() time.Time // the own clock, which must be monotonic

	mu      sync.Mutex
	base    time.Time     // of the own clock
	start   time.Time     // time of the store at base; zero: it is not known yet
	offset  time.Duration // to be added to what has passed since base
	moved   time.Time     // when the offset was moved, by the own clock
	last    time.Time     // newest time that was given
	samples []sample      // of the newest beats
	far     int           // beats in a row by which the clock was far off
}

// sample is a reading of the store's clock.
type sample struct {
	offset time.Duration // of the store's time, as the clock's own is
	trip   time.Duration // how long the answer took
}

const (
	// clockSamples is how many beats are compared. That of the shortest trip counts.
	clockSamples = 60
	// clockDrift is by how much the clock moves towards the store's time in a second.
	clockDrift = 500 * time.Microsecond
	// clockFar is how far off the clock may be before it jumps, or stands.
	clockFar = 5 * time.Second
)

// answered takes in the store's time at a beat.
func (c *clock) answered(sent, now, store time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	trip := now.Sub(sent)
	if trip > leaseFor {
		// The process stood still meanwhile, nobody knows for how long before the answer. The
		// node cannot take the sessions before a beat whose answer is not late.
		return
	}
	middle := sent.Add(trip / 2)
	if c.start.IsZero() {
		c.base, c.start, c.moved = middle, store.Round(0), now
		return
	}
	c.samples = append(c.samples, sample{store.Sub(c.start) - middle.Sub(c.base), trip})
	if len(c.samples) > clockSamples {
		c.samples = c.samples[1:]
	}
	best := c.samples[0]
	for _, s := range c.samples[1:] {
		if s.trip < best.trip {
			best = s
		}
	}
	if newest := c.samples[len(c.samples)-1]; (newest.offset - c.offset).Abs() > clockFar {
		if c.far++; c.far >= clockSamples {
			c.offset, c.far, c.samples = newest.offset, 0, nil
		}
		c.moved = now
		return
	}
	c.far = 0
	most := time.Duration(now.Sub(c.moved).Seconds() * float64(clockDrift))
	c.offset += min(max(best.offset-c.offset, -most), most)
	c.moved = now
}

// time returns the time of the cluster. Before the first beat it is that of the own clock.
func (c *clock) time() time.Time {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		return now
	}
	if t := c.start.Add(now.Sub(c.base) + c.offset); t.After(c.last) {
		c.last = t
	}
	return c.last
}

// away returns how far the store's time is from the own clock's.
func (c *clock) away() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		return 0
	}
	return c.start.Add(c.offset).Sub(c.base.Round(0))
}
