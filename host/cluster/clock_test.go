package cluster

import (
	"testing"
	"time"
)

// The time of the cluster is the store's, whatever the node's own clock says, and never goes
// back. It follows a store whose clock runs faster, and one of another machine.
func TestClock(t *testing.T) {
	own := time.Unix(1e9, 0)
	c := &clock{now: func() time.Time { return own }}
	ahead := 10 * time.Minute // the store's clock, against the own
	last := time.Time{}
	// beat sends a beat, and returns how far the clock is off.
	beat := func(trip time.Duration) time.Duration {
		t.Helper()
		sent := own
		own = own.Add(trip)
		c.answered(sent, own, sent.Add(trip/2).Add(ahead))
		own = own.Add(beatEvery - trip)
		now := c.time()
		if now.Before(last) {
			t.Fatalf("the clock goes back by %s", last.Sub(now))
		}
		last = now
		return now.Sub(own.Add(ahead))
	}
	if off := beat(2 * time.Millisecond); off != 0 {
		t.Errorf("the clock begins %s off", off)
	}
	for range 100 {
		ahead += 100 * time.Microsecond // the store's runs faster
		if off := beat(2 * time.Millisecond).Abs(); off > 10*time.Millisecond {
			t.Fatalf("the clock is %s off", off)
		}
	}
	// A slow answer says little.
	before := c.time().Sub(own)
	c.answered(own.Add(-time.Second), own, own.Add(ahead-400*time.Millisecond))
	if moved := (c.time().Sub(own) - before).Abs(); moved > time.Millisecond {
		t.Errorf("a slow answer moves the clock by %s", moved)
	}
	for _, jump := range []time.Duration{time.Hour, -time.Minute} {
		ahead += jump
		off, beats := time.Duration(0), 0
		for off = beat(2 * time.Millisecond); off.Abs() > 50*time.Millisecond && beats < 500; beats++ {
			off = beat(2 * time.Millisecond)
		}
		if off.Abs() > 50*time.Millisecond || beats < clockSamples/2 {
			t.Errorf("after a jump of the store's clock by %s the clock is %s off after %d beats", jump, off, beats)
		}
	}
}
