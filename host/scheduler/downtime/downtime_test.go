package downtime

import "testing"

func TestSinceCountsOverlapsOnly(t *testing.T) {
	l := &Log{down: []interval{{10, 20}, {30, 35}, {50, 60}}}
	for from, want := range map[int64]int64{0: 25, 10: 25, 15: 20, 20: 15, 32: 13, 40: 10, 55: 5, 60: 0, 99: 0} {
		if got := l.Since(from); got != want {
			t.Errorf("down since %d: %d, want %d", from, got, want)
		}
	}
}
