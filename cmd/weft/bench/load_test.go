package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// TestTally: the results equal the counted values, to three digits.
func TestTally(t *testing.T) {
	tally := newTally()
	for i := 1; i <= 1000; i++ {
		tally.add(time.Duration(i) * time.Millisecond)
	}
	tally.add(2 * time.Hour) // longer than the longest distinguished latency
	tally.fail("trap")
	tally.fail("trap")
	tally.fail("timeout")
	l := tally.latency()
	for name, c := range map[string]struct{ got, want float64 }{
		"min": {l.Min, 1}, "p50": {l.P50, 501}, "p90": {l.P90, 901}, "p99": {l.P99, 991}, "max": {l.Max, 3_600_000},
	} {
		if c.got < c.want*0.998 || c.got > c.want*1.002 {
			t.Errorf("%s = %v, want %v", name, c.got, c.want)
		}
	}
	if tally.completed() != 1001 || tally.failed() != 3 || tally.ended() != 1004 || tally.errors["trap"] != 2 || tally.errors["timeout"] != 1 {
		t.Errorf("%d completed, %v", tally.completed(), tally.errors)
	}
	list := tally.percentiles()
	if last := list[len(list)-1]; last.Percentile != 100 || last.Runs != 1001 {
		t.Errorf("the last step is %+v", last)
	}
	if empty := newTally(); empty.latency() != (benchLatency{}) || len(empty.percentiles()) != 0 || empty.rate() != 0 {
		t.Errorf("of nothing: %+v", empty.latency())
	}
}

// TestLoad: the requested number of runs is started, refused runs are counted by their
// codes, and runs that an interrupt cuts off are not counted.
func TestLoad(t *testing.T) {
	var asked atomic.Int64
	waiting := make(chan struct{}, 10)
	var hold atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case hold.Load():
			waiting <- struct{}{}
			<-r.Context().Done()
		case n%5 == 0:
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"detail":"slow down","code":"limit_exceeded"}`)
		default:
			_, _ = fmt.Fprintf(w, `{"handler_id":"h%d","run_id":"r%d","workflow_name":"w","status":"completed"}`, n, n)
		}
	}))
	defer s.Close()
	c, err := client.New(s.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := newLoad(c, client.StartRequest{Workflow: "w", Wait: true})
	got := l.run(t.Context(), 3, 20, 0)
	if asked.Load() != 20 || got.completed() != 16 || got.errors["limit_exceeded"] != 4 || got.interrupted || got.rate() <= 0 {
		t.Errorf("%d asked, %d completed, %v", asked.Load(), got.completed(), got.errors)
	}
	if nothing := l.run(t.Context(), 3, 0, 0); nothing.ended() != 0 || asked.Load() != 20 {
		t.Errorf("no warm-up ran %d", nothing.ended())
	}
	if timed := l.run(t.Context(), 2, 0, 50*time.Millisecond); timed.ended() == 0 || timed.took < 50*time.Millisecond {
		t.Errorf("%d runs in %s", timed.ended(), timed.took)
	}

	hold.Store(true) // while an interrupted request may still be in progress
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-waiting
		<-waiting
		cancel()
	}()
	if cut := l.run(ctx, 2, 0, time.Hour); cut.ended() != 0 || !cut.interrupted {
		t.Errorf("cut off: %d counted, interrupted %v", cut.ended(), cut.interrupted)
	}
}

func TestErrorCode(t *testing.T) {
	failed := client.Record{Run: host.Run{Status: host.StatusFailed, ErrorCode: "trap"}}
	cancelled := client.Record{Run: host.Run{Status: host.StatusCancelled}}
	for _, c := range []struct {
		rec  client.Record
		err  error
		want string
	}{
		{failed, nil, "trap"},
		{cancelled, nil, "cancelled"},
		{client.Record{}, host.Errorf(host.CodeLimitExceeded, "slow down"), "limit_exceeded"},
		{client.Record{}, errors.New("broken"), "internal"},
	} {
		if got := errorCode(c.rec, c.err); got != c.want {
			t.Errorf("%+v, %v: %q, want %q", c.rec.Status, c.err, got, c.want)
		}
	}
}
