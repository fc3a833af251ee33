package httpapi

import (
	"context"
	"testing"
	"time"
)

// Refusals are held back when they take more than a tenth of the cores, for half of what
// the client is told to wait and a second at most; beyond a number of those that are held
// back, connections are closed.
func TestManyRefusalsAreHeldBack(t *testing.T) {
	now := time.Unix(1000, 0)
	var waited []time.Duration
	f := &refusals{cores: 2, now: func() time.Time { return now }, wait: func(_ context.Context, d time.Duration) { waited = append(waited, d) }}
	hold := func(after time.Duration) bool { return f.hold(t.Context(), after, time.Millisecond) }
	for range 100 { // 100 of a millisecond each: a twentieth of two cores
		if !hold(10 * time.Second) {
			t.Fatal("a connection is to be closed")
		}
	}
	if len(waited) != 0 {
		t.Fatalf("few are held back: %v", waited)
	}
	for range 300 {
		hold(10 * time.Second)
	}
	hold(time.Second)
	if n := len(waited); n < 190 || waited[0] != time.Second || waited[n-1] != time.Second/2 {
		t.Errorf("%d are held back: %v", len(waited), waited)
	}
	f.parked = mostParked
	if hold(time.Second) {
		t.Error("too many are held back, and one more is")
	}
	f.parked = 0
	now = now.Add(2 * time.Second)
	waited = nil
	if hold(time.Second); len(waited) != 0 {
		t.Error("one that comes alone later is held back")
	}
}
