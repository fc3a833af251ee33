package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// TestSlowReader: a slow reader costs a bounded buffer, and gets everything when it
// reads.
func TestSlowReader(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	slow, late := w.subscribe("h", position.FromRun), w.subscribe("h", position.FromNow)
	w.want(late, nil, 0, -1)
	const n = 5 * bufferEvents
	for range n / 10 {
		w.emit("h", 10)
		for _, s := range []*Subscription{slow, late} {
			if s.events > bufferEvents {
				t.Fatalf("a buffer of %d events", s.events)
			}
		}
	}
	w.want(slow, nil, 0, n/10*10-1)
	w.want(late, nil, 0, n/10*10-1)
	w.emit("h", 1)
	w.finish("h")
	w.want(slow, io.EOF, n/10*10, n/10*10+1)
	w.want(late, io.EOF, n/10*10, n/10*10+1)
}

// TestOverflowWhileReading: the buffer overflows again while its reader reads the store.
func TestOverflowWhileReading(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.emit("h", 3*pageEvents)
	s := w.subscribe("h", position.FromRun)
	want := 0
	for range 12 {
		events, err := s.Next(w.ctx, 0)
		if err != nil || len(events) == 0 {
			t.Fatalf("Next = %d events, %v", len(events), err)
		}
		for _, e := range events {
			if int(e.Seq) != want {
				t.Fatalf("event %d, want %d", e.Seq, want)
			}
			want++
		}
		w.emit("h", pageEvents)
		w.emit("h", 7)
	}
	w.want(s, nil, want, int(w.next["h"])-1)
}

// TestLargeEvents: the buffer is bounded in bytes too.
func TestLargeEvents(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	s := w.subscribe("h", position.FromRun)
	w.want(s, nil, 0, -1)
	body, err := abi.EncodeValue(map[string]any{"data": make([]byte, bufferBytes/3)})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		row := w.row("h", 1, false)
		row.Events[0].Body = body
		w.write(row)
		w.hub.Publish(tenant, []host.StreamRow{row})
		if s.bytes > bufferBytes {
			t.Fatalf("a buffer of %d bytes", s.bytes)
		}
	}
	w.want(s, nil, 0, 9)
}

// TestUnpublished: events that became durable without being published are found with the
// next published event, or by Resync.
func TestUnpublished(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	s := w.subscribe("h", position.FromRun)
	w.emit("h", 2)
	w.want(s, nil, 0, 1)
	w.write(w.row("h", 3, false))
	w.want(s, nil, 2, 1)
	w.emit("h", 1)
	w.want(s, nil, 2, 5)
	w.emit("h", 1)
	w.write(w.row("h", 1, false))
	w.emit("h", 1)
	w.want(s, nil, 6, 8)
	w.write(w.row("h", 1, true))
	w.want(s, nil, 9, 8)
	w.hub.Resync()
	w.want(s, io.EOF, 9, 9)
}

// faulty is a source that sometimes fails.
type faulty struct {
	Source
	fail func() bool
}

var errFault = errors.New("the disk is on fire")

func (f *faulty) Handler(ctx context.Context, tenant, id string) (host.Handler, error) {
	if f.fail() {
		return host.Handler{}, errFault
	}
	return f.Source.Handler(ctx, tenant, id)
}

func (f *faulty) Stream(ctx context.Context, tenant, id string, after int64, limit int) ([]host.StreamEvent, error) {
	if f.fail() {
		return nil, errFault
	}
	return f.Source.Stream(ctx, tenant, id, after, limit)
}

func (f *faulty) StreamEnd(ctx context.Context, tenant, id string) (last, first int64, err error) {
	if f.fail() {
		return 0, 0, errFault
	}
	return f.Source.StreamEnd(ctx, tenant, id)
}

// TestFaults: after an error of the source, the reader continues where it was.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	failing := false
	w.hub.src = &faulty{Source: w.store, fail: func() bool { return failing }}
	w.start("h")
	w.emit("h", 2)
	live, reading := w.subscribe("h", 1), w.subscribe("h", position.FromRun)
	w.want(live, nil, 2, 1)
	w.emit("h", 1)
	w.finish("h")
	failing = true
	for range 2 {
		w.want(live, errFault, 0, -1)
		w.want(reading, errFault, 0, -1)
	}
	if _, err := w.hub.Subscribe(w.ctx, tenant, "h", 0); !errors.Is(err, errFault) {
		t.Errorf("Subscribe = %v, want the source's error", err)
	}
	failing = false
	w.want(live, io.EOF, 2, 3)
	w.want(reading, io.EOF, 0, 3)
}

// TestHistories: whatever happens between publishers, the store and readers, a reader
// gets every event once, in order, and the end.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.hub.src = &faulty{Source: w.store, fail: func() bool { return rapid.IntRange(0, 9).Draw(rt, "fault") == 7 }}
		w.start("h")
		r := &reader{rt: rt, w: w}
		defer func() {
			if r.s != nil {
				r.s.Close()
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"emit": func(rt *rapid.T) {
				if w.runs["h"].Status.Final() {
					w.start("h")
				}
				row := w.row("h", rapid.SampledFrom([]int{1, 2, 3, 300, 1500}).Draw(rt, "n"), rapid.Bool().Draw(rt, "terminal"))
				w.write(row)
				switch {
				case rapid.IntRange(0, 5).Draw(rt, "published") < 5:
					w.hub.Publish(tenant, []host.StreamRow{row})
				case rapid.Bool().Draw(rt, "resync"):
					w.hub.Resync()
				default:
					r.unpublished = true
				}
			},
			"next":      func(*rapid.T) { r.next() },
			"subscribe": func(*rapid.T) { r.subscribe() },
		})
		if r.unpublished {
			w.hub.Resync()
		}
		r.toTheEnd()
	})
}

// reader reads a stream and checks the events.
type reader struct {
	rt          *rapid.T
	w           *world
	s           *Subscription
	want        int // number of the next event
	unpublished bool
}

func (r *reader) subscribe() {
	if r.s != nil {
		r.s.Close()
		r.s = nil
	}
	after := rapid.Int64Range(-2, int64(r.w.next["h"])).Draw(r.rt, "after")
	last, first, err := r.w.store.StreamEnd(r.w.ctx, tenant, "h")
	if err != nil {
		r.rt.Fatal(err)
	}
	s, err := r.w.hub.Subscribe(r.w.ctx, tenant, "h", after)
	if errors.Is(err, errFault) {
		return
	}
	if err != nil {
		r.rt.Fatal(err)
	}
	r.s, r.want = s, int(after)+1
	switch after {
	case position.FromRun:
		r.want = int(first)
	case position.FromNow:
		r.want = int(last) + 1
	}
	if ended := r.w.runs["h"].Status.Final() && r.want > int(last); s.Ended() != ended {
		r.rt.Fatalf("Ended = %v after %d, the stream ends at %d", s.Ended(), after, last)
	}
}

// next takes one step, and reports whether there may be more at once.
func (r *reader) next() bool {
	if r.s == nil {
		return false
	}
	events, err := r.s.Next(r.w.ctx, 0)
	switch {
	case errors.Is(err, errFault):
		return true
	case errors.Is(err, io.EOF):
		// The stream was over when the last event was given. Another run may have begun
		// since.
		r.s.Close()
		r.s = nil
		return false
	case err != nil:
		r.rt.Fatal(err)
	}
	for _, e := range events {
		if int(e.Seq) != r.want {
			r.rt.Fatalf("event %d, want %d", e.Seq, r.want)
		}
		r.want++
	}
	return len(events) > 0
}

// toTheEnd reads until nothing is left, and expects the whole stream.
func (r *reader) toTheEnd() {
	if r.s == nil {
		r.subscribe()
	}
	for r.next() {
	}
	if r.s == nil {
		return
	}
	if end := int(r.w.next["h"]); r.want < end {
		r.rt.Fatalf("the reader waits for event %d, the stream has %d", r.want, end)
	}
	if r.w.runs["h"].Status.Final() {
		r.rt.Fatalf("the reader waits for event %d, the run has ended", r.want)
	}
}

// TestManySubscribers: thousands of subscribers come and read at their own pace while
// events are published. Each gets all events once, and the end.
func TestManySubscribers(t *testing.T) {
	w := newWorld(t)
	const handlers, subscribers, rounds = 4, 2000, 40
	for h := range handlers {
		w.start(fmt.Sprint("h", h))
	}
	var readers sync.WaitGroup
	var given atomic.Int64
	for i := range subscribers {
		readers.Go(func() {
			n, err := readAll(w.ctx, w.hub, fmt.Sprint("h", i%handlers))
			given.Add(int64(n))
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range rounds {
		for h := range handlers {
			w.emit(fmt.Sprint("h", h), 5)
		}
	}
	for h := range handlers {
		w.finish(fmt.Sprint("h", h))
	}
	readers.Wait()
	if want := int64(subscribers * (rounds*5 + 1)); given.Load() != want {
		t.Errorf("%d events were given, want %d", given.Load(), want)
	}
}

// readAll reads a stream from its run's beginning to its end.
func readAll(ctx context.Context, h *Hub, handler string) (int, error) {
	s, err := h.Subscribe(ctx, tenant, handler, position.FromRun)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for want := 0; ; {
		events, err := s.Next(ctx, time.Minute)
		if errors.Is(err, io.EOF) {
			return want, nil
		}
		if err != nil {
			return want, err
		}
		if len(events) == 0 {
			return want, fmt.Errorf("%s: nothing for a minute behind event %d", handler, want)
		}
		for _, e := range events {
			if int(e.Seq) != want {
				return want, fmt.Errorf("%s: event %d, want %d", handler, e.Seq, want)
			}
			want++
		}
	}
}

// TestPublishWithoutListeners: publishing without subscribers allocates nothing.
func TestPublishWithoutListeners(t *testing.T) {
	w := newWorld(t)
	w.start("h")
	w.start("other")
	rows := []host.StreamRow{w.row("h", 3, false)}
	publish := func() { w.hub.Publish(tenant, rows) }
	if n := testing.AllocsPerRun(100, publish); n != 0 {
		t.Errorf("%v allocations without any subscription", n)
	}
	w.subscribe("other", position.FromNow)
	if n := testing.AllocsPerRun(100, publish); n != 0 {
		t.Errorf("%v allocations without a subscription of the handler", n)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("subscribers=%d", n), func(b *testing.B) {
			w := newWorld(b)
			w.start("h")
			for range n {
				w.subscribe("h", position.FromNow)
			}
			rows := []host.StreamRow{w.row("h", 3, false)}
			b.ReportAllocs()
			for b.Loop() {
				w.hub.Publish(tenant, rows)
			}
		})
	}
}
