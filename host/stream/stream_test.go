package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
	"github.com/weftrun/weft/host/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = host.DefaultTenant

// world is a store with one session whose handlers' events are published.
type world struct {
	t     testing.TB
	ctx   context.Context
	store *memory.Store
	hub   *Hub
	epoch uint64
	last  uint64              // position of the session
	next  map[string]uint64   // number of each handler's next event
	runs  map[string]host.Run // the latest of each handler
	count int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	store := memory.New()
	w := &world{t: t, ctx: t.Context(), store: store, hub: NewHub(store), next: map[string]uint64{}, runs: map[string]host.Run{}}
	t.Cleanup(func() {
		if n := w.hub.Subscribers(); n != 0 || len(w.hub.topics) != 0 {
			t.Errorf("%d subscriptions are open, %d topics are held", n, len(w.hub.topics))
		}
		_ = store.Close()
	})
	var err error
	if w.epoch, err = store.Claim(w.ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// append makes a part durable, without publishing.
func (w *world) append(part host.SessionBatch) {
	w.t.Helper()
	w.last++
	part.Key = host.SessionKey{Tenant: tenant, Session: "session"}
	part.First, part.Last, part.WakeAt = w.last, w.last, host.WakeNever
	if err := w.store.Append(w.ctx, host.Batch{Epoch: w.epoch, Sessions: []host.SessionBatch{part}}); err != nil {
		w.t.Fatal(err)
	}
}

// start starts a run of the handler.
func (w *world) start(handler string) {
	w.t.Helper()
	w.count++
	r := host.Run{
		Tenant: tenant, HandlerID: handler, SessionID: "session", RunID: fmt.Sprint("run", w.count),
		Workflow: "flow", Status: host.StatusRunning, Started: int64(w.count),
	}
	w.runs[handler] = r
	w.append(host.SessionBatch{Runs: []host.Run{r}, Started: []string{r.RunID}})
}

// row is n further events of the handler's latest run; the last one is terminal
// if end is set.
func (w *world) row(handler string, n int, end bool) host.StreamRow {
	row := host.StreamRow{HandlerID: handler, RunID: w.runs[handler].RunID}
	for i := range n {
		row.Events = append(row.Events, host.StreamEvent{
			Seq: w.next[handler], RunID: row.RunID, Type: "Progress", Workflow: "flow", Body: abi.EmptyMap,
			Terminal: end && i == n-1,
		})
		w.next[handler]++
	}
	return row
}

// write makes a row durable, and ends the run with a terminal event.
func (w *world) write(row host.StreamRow) {
	w.t.Helper()
	part := host.SessionBatch{Stream: []host.StreamRow{row}}
	if len(row.Events) > 0 && row.Events[len(row.Events)-1].Terminal {
		r := w.runs[row.HandlerID]
		r.Status = host.StatusCompleted
		w.runs[row.HandlerID] = r
		part.Runs = []host.Run{r}
	}
	w.append(part)
}

// emit makes n events durable and publishes them.
func (w *world) emit(handler string, n int) {
	w.t.Helper()
	row := w.row(handler, n, false)
	w.write(row)
	w.hub.Publish(tenant, []host.StreamRow{row})
}

// finish ends the handler's run with a terminal event.
func (w *world) finish(handler string) {
	w.t.Helper()
	row := w.row(handler, 1, true)
	w.write(row)
	w.hub.Publish(tenant, []host.StreamRow{row})
}

// subscribe opens a subscription that is closed when the test ends.
func (w *world) subscribe(handler string, after int64) *Subscription {
	w.t.Helper()
	s, err := w.hub.Subscribe(w.ctx, tenant, handler, after)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	return s
}

// drain returns the numbers of the available events, and the error behind them; nil if
// more may come.
func drain(ctx context.Context, s *Subscription) (seqs []int, err error) {
	for {
		events, err := s.Next(ctx, 0)
		if len(events) == 0 || err != nil {
			return seqs, err
		}
		for _, e := range events {
			seqs = append(seqs, int(e.Seq))
		}
	}
}

// want expects a subscription to have exactly these events now, and then to end.
func (w *world) want(s *Subscription, end error, first, last int) {
	w.t.Helper()
	var numbers []int
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}
	got, err := drain(w.ctx, s)
	if !slices.Equal(got, numbers) {
		w.t.Errorf("events %v, want %d to %d", got, first, last)
	}
	if !errors.Is(err, end) {
		w.t.Errorf("behind the events: %v, want %v", err, end)
	}
}

func TestStartingPoints(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.emit("h", 3)
	w.finish("h")
	w.start("h")
	w.emit("h", 2)
	fromRun, fromNow := w.subscribe("h", position.FromRun), w.subscribe("h", position.FromNow)
	fromTwo, fromEnd := w.subscribe("h", 2), w.subscribe("h", 5)
	for _, s := range []*Subscription{fromRun, fromNow, fromTwo, fromEnd} {
		if s.Ended() {
			t.Error("Ended of a running run")
		}
	}
	w.want(fromRun, nil, 4, 5)
	w.want(fromNow, nil, 6, 5)
	w.want(fromTwo, nil, 3, 5)
	w.emit("h", 2)
	w.finish("h")
	w.want(fromRun, io.EOF, 6, 8)
	w.want(fromRun, io.EOF, 9, 8)
	w.want(fromNow, io.EOF, 6, 8)
	w.want(fromTwo, io.EOF, 6, 8)
	w.want(fromEnd, io.EOF, 6, 8)
}

func TestStartingPointOfSilentRuns(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	for _, after := range []int64{position.FromRun, position.FromNow, 0} {
		s := w.subscribe("h", after)
		w.want(s, nil, 0, -1)
	}
	w.emit("h", 2)
	w.finish("h")
	w.start("h")
	s := w.subscribe("h", position.FromRun)
	w.want(s, nil, 0, -1)
	w.emit("h", 1)
	w.want(s, nil, 3, 3)
}

func TestErrorsOfSubscribe(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	wantCode := func(want host.Code, tenant, handler string, after int64) {
		t.Helper()
		s, err := w.hub.Subscribe(w.ctx, tenant, handler, after)
		if err == nil {
			s.Close()
		}
		if host.CodeOf(err) != want {
			t.Errorf("Subscribe(%s, %s, %d) = %v, want %s", tenant, handler, after, err, want)
		}
	}
	for _, after := range []int64{position.FromRun, position.FromNow, 7} {
		wantCode(host.CodeNotFound, tenant, "x", after)
		wantCode(host.CodeNotFound, "them", "h", after)
	}
	wantCode(host.CodeInvalidArgument, tenant, "h", -3)
	_, err := w.hub.Subscribe(w.ctx, tenant, "x", 0)
	if host.MessageOf(err) != "Handler not found" || !errors.Is(err, host.ErrNotFound) {
		t.Errorf("Subscribe = %v", err)
	}
	w.hub.Close()
	w.hub.Close()
	wantCode(host.CodeUnavailable, tenant, "h", 0)
}

// TestEnded: Ended reports only streams that have nothing more to give.
func TestEnded(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.emit("h", 3)
	w.finish("h")
	for _, test := range []struct {
		after int64
		ended bool
		first int
	}{
		{position.FromRun, false, 0}, {position.FromNow, true, 4}, {0, false, 1}, {2, false, 3}, {3, true, 4}, {99, true, 4},
	} {
		s := w.subscribe("h", test.after)
		if s.Ended() != test.ended {
			t.Errorf("Ended after %d = %v", test.after, s.Ended())
		}
		w.want(s, io.EOF, test.first, 3)
		if s.Ended() != test.ended {
			t.Errorf("Ended after %d changed", test.after)
		}
	}
}

// TestNextRun: a terminal event ends the stream only if its run is the latest when the
// event is given.
func TestNextRun(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.emit("h", 1)
	late, live := w.subscribe("h", position.FromRun), w.subscribe("h", position.FromRun)
	w.want(live, nil, 0, 0)
	w.finish("h") // 1
	silent := w.subscribe("h", 0)
	w.want(live, io.EOF, 1, 1)
	w.start("h")
	w.want(silent, nil, 1, 1) // the next run has begun, but without events
	w.emit("h", 2)
	w.want(late, nil, 0, 3)
	w.want(silent, nil, 2, 3)
	w.want(live, io.EOF, 9, 8) // a stream that has ended stays ended
	w.finish("h")
	w.want(late, io.EOF, 4, 4)
	w.want(silent, io.EOF, 4, 4)
}

// TestStartBeyondTheEnd: a client with a number that the stream has not reached does not
// wait for ever if the run ends before that number.
func TestStartBeyondTheEnd(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	far, near := w.subscribe("h", 1000), w.subscribe("h", 1)
	w.want(far, nil, 0, -1)
	w.emit("h", 3)
	w.want(far, nil, 0, -1)
	w.want(near, nil, 2, 2)
	w.finish("h")
	w.want(far, io.EOF, 0, -1)
	w.want(near, io.EOF, 3, 3)
}

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("h")
		s := w.subscribe("h", position.FromNow)
		begun := time.Now()
		events, err := s.Next(w.ctx, 25*time.Second)
		if events != nil || err != nil || time.Since(begun) != 25*time.Second {
			t.Errorf("Next = %v, %v after %v, want nothing after 25s", events, err, time.Since(begun))
		}

		// An event ends the wait. An event of another handler does not.
		w.start("other")
		time.AfterFunc(time.Second, func() {
			w.emit("other", 1)
			time.AfterFunc(time.Second, func() { w.emit("h", 2) })
		})
		begun = time.Now()
		events, err = s.Next(w.ctx, time.Minute)
		if len(events) != 2 || err != nil || time.Since(begun) != 2*time.Second {
			t.Errorf("Next = %v, %v after %v, want 2 events after 2s", events, err, time.Since(begun))
		}

		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if events, err := s.Next(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || events != nil {
			t.Errorf("Next = %v, %v, want the context's error", events, err)
		}
		w.emit("h", 1)
		w.want(s, nil, 2, 2)
	})
}

// TestEndWhileWaiting: a waiting reader learns at once that the stream has ended.
func TestEndWhileWaiting(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(w *world, s *Subscription)
		want host.Code
	}{
		{"purge", func(w *world, _ *Subscription) { w.hub.Purged(tenant, "h") }, host.CodeNotFound},
		{"hub", func(w *world, _ *Subscription) { w.hub.Close() }, host.CodeUnavailable},
		{"subscription", func(_ *world, s *Subscription) { s.Close(); s.Close() }, host.CodeInternal},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start("h")
				s := w.subscribe("h", position.FromNow)
				got := make(chan error)
				go func() {
					_, err := s.Next(w.ctx, time.Hour)
					got <- err
				}()
				synctest.Wait()
				test.end(w, s)
				if err := <-got; host.CodeOf(err) != test.want || errors.Is(err, io.EOF) {
					t.Errorf("Next = %v, want %s", err, test.want)
				}
				if _, err := s.Next(w.ctx, time.Hour); host.CodeOf(err) != test.want {
					t.Errorf("Next again = %v, want %s", err, test.want)
				}
			})
		})
	}
}

// TestPurge: subscribers of a purged handler never see events of a later handler with the
// same name, wherever they were.
func TestPurge(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.start("other")
	w.emit("h", 5)
	reading, waiting, bystander := w.subscribe("h", 0), w.subscribe("h", 4), w.subscribe("other", position.FromNow)
	w.want(waiting, nil, 5, 4)
	w.emit("h", 1)
	w.append(host.SessionBatch{Purge: []string{"h"}})
	w.hub.Purged(tenant, "h")
	w.next["h"] = 0
	w.start("h")
	w.emit("h", 9)
	if got, err := drain(w.ctx, reading); len(got) > 0 || host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("a subscription of a purged handler gives %v, %v", got, err)
	}
	// A waiting reader gets the events published before, above all the terminal event of
	// a run that was cancelled for the purge.
	if got, err := drain(w.ctx, waiting); !slices.Equal(got, []int{5}) || host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("a subscription that waited gives %v, %v, want [5] and not_found", got, err)
	}
	w.emit("other", 1)
	w.want(bystander, nil, 0, 0)
	w.want(w.subscribe("h", position.FromRun), nil, 0, 8)
}

// TestPurgeUnseen: a reader that finds the handler gone before Purged is called gets the
// same error.
func TestPurgeUnseen(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.emit("h", 5)
	s := w.subscribe("h", 0)
	w.append(host.SessionBatch{Purge: []string{"h"}})
	if got, err := drain(w.ctx, s); len(got) > 0 || host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("a subscription of a purged handler gives %v, %v", got, err)
	}
}
