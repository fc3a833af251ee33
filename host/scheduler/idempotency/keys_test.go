package idempotency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host"
)

// fake is a store and a journal of which a position is durable when the test says so.
type fake struct {
	rows    map[string]host.Repeat
	durable uint64
	synced  chan struct{}
}

func (f *fake) Repeat(_ context.Context, _, _, key string) (host.Repeat, error) {
	row, ok := f.rows[key]
	if !ok {
		return row, &host.Error{Code: host.CodeNotFound, Cause: host.ErrNotFound}
	}
	return row, nil
}
func (f *fake) ForgetRepeats(context.Context, int64, int) (int, error) { return 0, nil }
func (f *fake) Durable() uint64                                        { return f.durable }
func (f *fake) Wait(ctx context.Context, _ uint64) error {
	select {
	case <-f.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var once = host.Once{Route: "start", Key: "k", Hash: "h"}

// Who repeats a request that is under way waits until it is durable, and gets what it has
// left. Another body under the key is refused.
func TestRepeatsWaitForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{rows: map[string]host.Repeat{}, synced: make(chan struct{})}
		k := New(Config{Store: f, Journal: f, Now: func() int64 { return time.Now().UnixNano() }})
		first, before, err := k.Claim(t.Context(), "t", once)
		if first == nil || before != nil || err != nil {
			t.Fatal(first, before, err)
		}
		if known, err := k.Known(t.Context(), "t", once); !known || err != nil {
			t.Errorf("known %t, %v", known, err)
		}
		type outcome struct {
			row *host.Repeat
			err error
		}
		same, other := make(chan outcome, 1), make(chan outcome, 1)
		ask := func(to chan outcome, o host.Once) {
			_, row, err := k.Claim(t.Context(), "t", o)
			to <- outcome{row, err}
		}
		go ask(same, once)
		go ask(other, host.Once{Route: "start", Key: "k", Hash: "another"})
		if rows := first.Rows("run"); len(rows) != 1 || rows[0].RunID != "run" || rows[0].Key != "k" {
			t.Errorf("rows %+v", rows)
		}
		first.Settle(7)
		synctest.Wait()
		if len(same)+len(other) != 0 {
			t.Fatal("a repetition is answered before the first request is durable")
		}
		f.durable = 7
		close(f.synced)
		if o := <-same; o.err != nil || o.row == nil || o.row.RunID != "run" {
			t.Errorf("the repetition got %+v", o)
		}
		if o := <-other; host.CodeOf(o.err) != host.CodeIdempotencyMismatch {
			t.Errorf("another body got %+v", o)
		}
		if left := k.Left(); left != "" {
			t.Error(left)
		}
	})
}

// A request that is refused leaves nothing: the one that waits for it carries it out.
func TestRefusedRequestLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{rows: map[string]host.Repeat{}, synced: make(chan struct{})}
		k := New(Config{Store: f, Journal: f, Now: func() int64 { return 0 }})
		first, _, err := k.Claim(t.Context(), "t", once)
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan *Claim, 1)
		go func() {
			c, _, err := k.Claim(t.Context(), "t", once)
			if err != nil {
				t.Error(err)
			}
			second <- c
		}()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, _, err := k.Claim(ctx, "t", once); left <- err }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %v", err)
		}
		first.Settle(0)
		c := <-second
		if c == nil {
			t.Fatal("nobody carries the request out")
		}
		c.Settle(0)
		if known, err := k.Known(t.Context(), "t", once); known || err != nil {
			t.Errorf("known %t, %v", known, err)
		}
		if none, row, err := k.Claim(t.Context(), "t", host.Once{}); none != nil || row != nil || err != nil {
			t.Error("a request without a key is claimed")
		}
	})
}
