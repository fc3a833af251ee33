package fair

import (
	"testing"
	"time"
)

// A clock that is set back neither fills an account nor empties it.
func TestAccountsAndTheClock(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	a := &account{rate: 1e6}
	a.fill(start)
	a.credit.Left = 0
	for _, c := range []struct {
		at   time.Duration
		want float64
	}{{time.Second, 1e6}, {-time.Hour, 1e6}, {-time.Hour + time.Second/2, 1.5e6}, {time.Hour, 1e7}, {2 * time.Hour, 1e7}} {
		if a.fill(start.Add(c.at)); a.credit.Left != c.want {
			t.Errorf("at %s: %v units, want %v", c.at, a.credit.Left, c.want)
		}
	}
	a.credit.Left = -1e6
	if got, want := a.missing(), time.Second+50*time.Millisecond; got != want {
		t.Errorf("a million units short, and it waits for %s, want %s", got, want)
	}
}
