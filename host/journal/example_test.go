package journal_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/journal"
)

// Code that answers a client waits until the position of the answer's contents is
// durable.
func ExampleJournal_Wait() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	j, err := journal.Open(ctx, journal.Config{Store: &fakeStore{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = j.Run(ctx) // until stop
	}()
	j.Append(time.Now(), item("s", 1, "a run has begun"))
	position := j.Append(time.Now(), item("s", 2, "and ended"))
	if err := j.Wait(ctx, position); err != nil {
		fmt.Println(err)
	}
	fmt.Println("durable up to", j.Durable())
	stop()
	<-done
	// Output: durable up to 2
}

// A journal owns no goroutine: a simulation can step it with its own clock. Entries that
// nobody waits for are committed together when the first has waited for Linger.
func ExampleJournal_Step() {
	ctx := context.Background()
	store := &fakeStore{}
	j, err := journal.Open(ctx, journal.Config{Store: store, Linger: 5 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := epoch
	j.Append(now, item("s", 1, "one"))
	j.Append(now, item("t", 1, "two"))
	commit, next := j.Step(now)
	fmt.Println("to commit now:", commit != nil, "- look again after", next.Sub(now))
	commit, _ = j.Step(next)
	if err := commit(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(store.batches), "batch with", len(store.batches[0].Sessions), "sessions")
	// Output:
	// to commit now: false - look again after 5ms
	// 1 batch with 2 sessions
}

// A session is loaded from what was committed, in order.
func ExampleJournal_Load() {
	ctx := context.Background()
	j, err := journal.Open(ctx, journal.Config{Store: &fakeStore{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for seq, text := range []string{"one", "two"} {
		j.Append(epoch, item("s", uint64(seq)+1, text))
	}
	commit, _ := j.Step(epoch.Add(time.Second))
	if err := commit(ctx); err != nil {
		fmt.Println(err)
	}
	last, err := j.Load(ctx, key("s"), func(array []byte) error {
		var entries []fakeEntry
		if err := abi.Unmarshal(array, &entries); err != nil {
			return err
		}
		for _, e := range entries {
			fmt.Println(e.Text)
		}
		return nil
	})
	fmt.Println("up to", last, err)
	// Output:
	// one
	// two
	// up to 2 <nil>
}
