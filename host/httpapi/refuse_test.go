package httpapi

import (
	"context"
	"testing"
	"time"
)

// Refusals are held back so that they take a tenth of the cores that the process gets, and
// none for longer than its client is to wait; beyond a number of those that are held back,
// connections are closed.
func TestManyRefusalsAreHeldBack(t *testing.T) {
	now, cpu := time.Unix(1000, 0), time.Duration(0)
	var waited []time.Duration
	f := &refusals{cores: 2, most: 5, cpu: func() time.Duration { return cpu }, now: func() time.Time { return now },
		wait: func(_ context.Context, d time.Duration) { waited = append(waited, d) }}
	hold := func(after time.Duration) bool {
		t.Helper()
		held, ok := f.hold(t.Context(), after)
		if n := len(waited); held > 0 && waited[n-1] != held {
			t.Errorf("%v are said, and %v held back", held, waited[n-1])
		}
		return ok
	}
	// A tenth of two cores is 2,000 refusals a second.
	for range 2000 * refusalBurst / time.Second {
		if !hold(10 * time.Second) {
			t.Fatal("a connection is to be closed")
		}
	}
	if len(waited) != 0 {
		t.Fatalf("few are held back: %v", waited)
	}
	for range 2000 {
		hold(10 * time.Second)
	}
	if n := len(waited); n != 2000 || waited[0] != time.Second/2000 || waited[n-1] != time.Second {
		t.Errorf("%d are held back, from %v to %v, want 2000, to a second", n, waited[0], waited[n-1])
	}
	for range 20_000 {
		hold(10 * time.Second)
	}
	if d := waited[len(waited)-1]; d != mostPark {
		t.Errorf("of very many one is held back for %v, want %v", d, mostPark)
	}
	if hold(time.Second); waited[len(waited)-1] != time.Second {
		t.Errorf("one whose client is to come back after a second is held back for %v", waited[len(waited)-1])
	}
	f.parked = f.most
	if hold(time.Second) {
		t.Error("too many are held back, and one more is")
	}
	f.parked = 0
	// The process has had one core: half as many.
	now, cpu, waited = now.Add(10*time.Second), cpu+10*time.Second, nil
	for range 1200 {
		hold(10 * time.Second)
	}
	if n := len(waited); n != 1000 || waited[n-1] != time.Second {
		t.Errorf("with one core %d of 1200 are held back, the last one for %v, want 1000, a second", n, waited[n-1])
	}
	now, waited = now.Add(10*time.Second), nil
	if hold(time.Second); len(waited) != 0 {
		t.Error("one that comes alone later is held back")
	}
}
