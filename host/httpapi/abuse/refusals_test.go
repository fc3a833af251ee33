package abuse

import (
	"context"
	"testing"
	"time"
)

// Refusals are held back so that they use a tenth of the cores that the process gets, and
// none for longer than its client waits; beyond a number of held refusals, connections
// are closed.
func TestManyRefusalsAreHeldBack(t *testing.T) {
	now, cpu := time.Unix(1000, 0), time.Duration(0)
	var waited []time.Duration
	f := &Refusals{cores: 2, most: 5, cpu: func() time.Duration { return cpu }, now: func() time.Time { return now },
		wait: func(_ context.Context, d time.Duration) { waited = append(waited, d) }}
	hold := func(after time.Duration) bool {
		t.Helper()
		held, ok := f.Hold(t.Context(), after)
		if n := len(waited); held > 0 && waited[n-1] != held {
			t.Errorf("%v are said, and %v held back", held, waited[n-1])
		}
		return ok
	}
	const most = int(2 * refusalShare * float64(time.Second) / float64(refusalCost)) // per second: a tenth of two cores
	for range most * int(refusalBurst/time.Millisecond) / 1000 {
		if !hold(10 * time.Second) {
			t.Fatal("a connection is to be closed")
		}
	}
	if len(waited) != 0 {
		t.Fatalf("few are held back: %v", waited)
	}
	for range most {
		hold(10 * time.Second)
	}
	if n := len(waited); n != most || waited[0] != time.Second/time.Duration(most) || waited[n-1] != time.Second {
		t.Errorf("%d are held back, from %v to %v, want all %d, to a second", n, waited[0], waited[n-1], most)
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
	// The process has had one core, so half as many refusals are answered.
	now, cpu, waited = now.Add(10*time.Second), cpu+10*time.Second, nil
	for range most * 6 / 10 {
		hold(10 * time.Second)
	}
	if n := len(waited); n != most/2 || waited[n-1] != time.Second {
		t.Errorf("with one core %d of %d are held back, the last one for %v, want %d, a second", n, most*6/10, waited[n-1], most/2)
	}
	now, waited = now.Add(10*time.Second), nil
	if hold(time.Second); len(waited) != 0 {
		t.Error("one that comes alone later is held back")
	}
}
