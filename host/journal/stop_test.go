package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/journal"
)

// Within a session's part of a batch a store deletes last, so what follows a purge must
// not be in its batch.
func TestWhatFollowsAPurgeIsInTheNextBatch(t *testing.T) {
	f := &fakeStore{}
	j := open(t, f, nil)
	j.Append(epoch, item("a", 1, "the old run"))
	j.Append(epoch, host.JournalItem{Key: key("a"), Purge: []string{"h"}, Size: 100})
	j.Append(epoch, item("b", 1, "another session"))
	j.Append(epoch, item("a", 2, "a new run of the handler"))
	step(t, j, epoch.Add(time.Second))
	if j.Durable() != 3 || len(f.batches[0].Sessions) != 2 || f.batches[0].Sessions[0].Last != 1 {
		t.Fatalf("durable %d, first batch %+v", j.Durable(), f.batches[0])
	}
	step(t, j, epoch.Add(time.Second))
	if j.Durable() != 4 || len(f.batches[1].Sessions[0].Purge) != 0 || f.batches[1].Sessions[0].First != 2 {
		t.Fatalf("durable %d, second batch %+v", j.Durable(), f.batches[1])
	}
}

// The delay before a refused commit is tried again counts from the time that Step is
// given, and grows.
func TestRefusedCommitWaitsByTheStepsOwnClock(t *testing.T) {
	refused := fmt.Errorf("busy: %w", host.ErrNotCommitted)
	f := &fakeStore{fail: []error{refused, refused}}
	j := open(t, f, nil)
	j.Append(epoch, item("a", 1, "one"))
	now, before := epoch.Add(time.Second), time.Duration(0)
	for range 2 {
		step(t, j, now)
		commit, next := j.Step(now)
		if commit != nil || next.Sub(now) <= before {
			t.Fatalf("tried again after %v, before that after %v", next.Sub(now), before)
		}
		if commit, _ := j.Step(next.Add(-1)); commit != nil {
			t.Fatal("tried again too early")
		}
		before, now = next.Sub(now), next
	}
	step(t, j, now)
	if j.Durable() != 1 || j.Err() != nil {
		t.Fatalf("durable %d, %v", j.Durable(), j.Err())
	}
}

// When the journal stops, everything that is queued is committed, in any number of
// batches.
func TestDrainTakesAsManyBatchesAsThereAre(t *testing.T) {
	const items = 40
	f := &fakeStore{fail: []error{nil, fmt.Errorf("busy: %w", host.ErrNotCommitted)}}
	j := open(t, f, func(c *journal.Config) { c.Linger, c.MaxBatchBytes = time.Hour, 100_000 })
	for i := range uint64(items) {
		it := item("a", i+1, "x")
		it.Size = 60_000
		j.Append(time.Now(), it)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if j.Durable() != items || len(f.batches) < items/2 {
		t.Fatalf("%d of %d are durable, in %d batches", j.Durable(), items, len(f.batches))
	}
}
