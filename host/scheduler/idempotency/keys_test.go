package idempotency

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host"
)

// fake is a store and a journal of which a position is durable when the test says so.
type fake struct {
	rows    map[name]host.Repeat
	away    error // of the store
	durable uint64
	synced  chan struct{}
}

func (f *fake) Repeat(_ context.Context, tenant, route, key string) (host.Repeat, error) {
	if f.away != nil {
		return host.Repeat{}, f.away
	}
	row, ok := f.rows[name{tenant, route, key}]
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
		f := &fake{synced: make(chan struct{})}
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
		f := &fake{synced: make(chan struct{})}
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

// What the store has of a request is the answer for as long as records are kept, to the
// same tenant and route alone, and for the same body.
func TestStoredRecordsAnswerWhileTheyAreKept(t *testing.T) {
	now := 10 * repeatsKept
	row := host.Repeat{Route: "start", Key: "k", Hash: "h", RunID: "run", Made: now}
	f := &fake{rows: map[name]host.Repeat{{"t", "start", "k"}: row}}
	k := New(Config{Store: f, Journal: f, Now: func() int64 { return now }})
	another := once
	another.Hash = "another"
	elsewhere := once
	elsewhere.Route = "edit"
	for _, tt := range []struct {
		name   string
		tenant string
		once   host.Once
		after  int64
		known  bool
		code   host.Code
	}{
		{"the same request", "t", once, 0, true, ""},
		{"just before its record is too old", "t", once, repeatsKept - 1, true, ""},
		{"when its record is too old", "t", once, repeatsKept, false, ""},
		{"another body", "t", another, 0, true, host.CodeIdempotencyMismatch},
		{"another tenant", "u", once, 0, false, ""},
		{"another route", "t", elsewhere, 0, false, ""},
	} {
		now = row.Made + tt.after
		if known, err := k.Known(t.Context(), tt.tenant, tt.once); known != tt.known || err != nil {
			t.Errorf("%s: known %t, %v", tt.name, known, err)
		}
		c, before, err := k.Claim(t.Context(), tt.tenant, tt.once)
		if (c == nil) != tt.known || (before != nil) != tt.known || (err != nil) != (tt.code != "") || err != nil && host.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, %+v, %v", tt.name, c, before, err)
		}
		c.Settle(0)
		if left := k.Left(); left != "" {
			t.Errorf("%s: %s", tt.name, left)
		}
	}
	// A store that does not answer has not said that the request is new.
	f.away = errors.New("away")
	if c, before, err := k.Claim(t.Context(), "t", once); c != nil || before != nil || host.CodeOf(err) != host.CodeUnavailable || k.Left() != "" {
		t.Errorf("without the store: %v, %+v, %v, %s", c, before, err, k.Left())
	}
}

// A record stays until the store has it, however many there are; those of a tenant that is
// removed go, and those of others stay.
func TestRecordsStayUntilTheyAreDurable(t *testing.T) {
	f := &fake{}
	k := New(Config{Store: f, Journal: f, Now: func() int64 { return 0 }})
	for n := range uint64(2 * mostRecords) {
		o := host.Once{Route: "start", Key: strconv.FormatUint(n, 10)}
		c, _, err := k.Claim(t.Context(), []string{"t", "u"}[n%2], o)
		if err != nil {
			t.Fatal(err)
		}
		c.Settle(1 + n)
	}
	under, _, err := k.Claim(t.Context(), "v", once)
	if err != nil {
		t.Fatal(err)
	}
	f.durable = mostRecords
	k.Prune(f.durable)
	if n := len(k.records); n != mostRecords+1 {
		t.Fatalf("%d records are left, want those that are not durable and the record of the request in progress, %d", n, mostRecords+1)
	}
	under.Settle(0)
	k.Forget("t")
	if n := len(k.records); n != mostRecords/2 {
		t.Errorf("%d records are left without a tenant, want those of the other, %d", n, mostRecords/2)
	}
}
