package journal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host/journal"
)

// demand makes a goroutine wait for a position, and returns when it does.
func demand(t *testing.T, j *journal.Journal, pos uint64) (done chan error) {
	t.Helper()
	done = make(chan error, 1)
	go func() { done <- j.Wait(t.Context(), pos) }()
	synctest.Wait()
	return done
}

// A commit with a waiting caller is delayed for work that is ready, but only briefly.
func TestDemandedCommitsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		f := &fakeStore{}
		j := open(t, f, func(c *journal.Config) { c.Busy = func() bool { return busy } })
		at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

		j.Append(at(0), item("a", 1, "one"))
		done := demand(t, j, 1)
		if commit, next := j.Step(at(1)); commit != nil || !next.Equal(at(3)) {
			t.Fatalf("while others are ready: commit %t, next %s", commit != nil, next)
		}
		j.Append(at(2), item("b", 1, "two"))
		if !step(t, j, at(3)) || <-done != nil || len(f.batches[0].Sessions) != 2 {
			t.Fatal("no commit of both after the time to gather")
		}

		// The next commit may wait as long again, but not longer than there is work.
		j.Append(at(10), item("a", 2, "three"))
		done = demand(t, j, 3)
		if commit, next := j.Step(at(10)); commit != nil || !next.Equal(at(12)) {
			t.Fatalf("the next one: commit %t, next %s", commit != nil, next)
		}
		busy = false
		if !step(t, j, at(10)) || <-done != nil {
			t.Fatal("no commit when nothing is ready any more")
		}

		// Old entries have waited long enough.
		busy = true
		j.Append(at(20), item("a", 3, "four"))
		done = demand(t, j, 4)
		if !step(t, j, at(25)) || <-done != nil {
			t.Fatal("an old entry waits for others")
		}
	})
}

// The journal stops without waiting for work that will never be done.
func TestTheLastCommitGathersNothing(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, func(c *journal.Config) {
		c.Busy, c.Gather, c.Linger = func() bool { return true }, time.Hour, time.Hour
	})
	j.Append(time.Now(), item("a", 1, "one"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Run(ctx); err != nil || j.Durable() != 1 {
		t.Fatalf("durable up to %d: %v", j.Durable(), err)
	}
}
