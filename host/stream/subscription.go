package stream

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// Bounds of a subscription's buffer of live events, and of a page read from the store.
const (
	bufferEvents = 1024
	bufferBytes  = 1 << 20 // of events' bodies
	pageEvents   = 256
)

// errClosed is the error of Next after Close.
var errClosed = errors.New("the subscription is closed")

// Subscription is an open stream. It implements [host.Stream]. Only one goroutine may use
// it, but Close may be called from any goroutine.
//
// Subscriptions share the bodies of events. Callers must not change them.
type Subscription struct {
	hub  *Hub
	key  key
	run  string        // only events of this run; "": of all runs of the handler
	wake chan struct{} // capacity 1: something below has changed

	// mu guards the fields below, which publishers write. Nothing waits under it.
	mu      sync.Mutex
	chunks  [][]host.StreamEvent // live events in order
	events  int                  // in chunks
	bytes   int                  // of their bodies
	lagging bool                 // live events were dropped, so only the store has them
	ended   error                // why no more events come, else nil

	// Only the reader uses these fields.
	spare   [][]host.StreamEvent // swapped with chunks
	pos     int64                // number of the last event given, or of the starting point
	reading bool                 // the store may have events that the buffer does not have
	over    bool                 // the latest run has ended, and no event is left after pos
	born    bool                 // the value of over when the subscription was opened
}

var _ host.Stream = (*Subscription)(nil)

func newSubscription(h *Hub, k key) *Subscription {
	return &Subscription{hub: h, key: k, wake: make(chan struct{}, 1)}
}

// begin finds the starting point. The subscription is registered already, so no event is
// lost between those that are durable now and those published later.
func (s *Subscription) begin(ctx context.Context, after int64) error {
	s.pos, s.reading = after, true
	if s.run != "" && after == position.FromRun {
		s.pos = -1 // events of earlier runs are skipped
	} else if after < 0 {
		last, first, err := s.hub.src.StreamEnd(ctx, s.key.tenant, s.key.handler)
		if err != nil {
			return sourceError(err)
		}
		s.pos = last
		if after == position.FromRun {
			s.pos = first - 1
		}
	}
	over, err := s.isOver(ctx)
	s.over, s.born = over, over
	return err
}

// isOver reports whether the latest run has ended and no event is left after pos. It
// reads the run first: if the run is final, the end that is read afterwards includes its
// last event.
func (s *Subscription) isOver(ctx context.Context) (bool, error) {
	handler, err := s.hub.src.Handler(ctx, s.key.tenant, s.key.handler)
	if err != nil {
		return false, sourceError(err)
	}
	if s.run != "" && handler.Run.RunID != s.run {
		return s.pastRun(ctx)
	}
	if !handler.Run.Status.Final() {
		return false, nil
	}
	last, _, err := s.hub.src.StreamEnd(ctx, s.key.tenant, s.key.handler)
	if err != nil {
		return false, sourceError(err)
	}
	return s.pos >= last, nil
}

// pastRun reports whether no event of the run is left after pos. The run is not the
// handler's latest. pastRun moves pos to just before the next event of the run.
func (s *Subscription) pastRun(ctx context.Context) (bool, error) {
	for {
		page, err := s.hub.src.Stream(ctx, s.key.tenant, s.key.handler, s.pos, pageEvents)
		if err != nil {
			return false, sourceError(err)
		}
		if len(page) == 0 {
			return true, nil
		}
		for i := range page {
			if page[i].RunID == s.run {
				return false, nil
			}
			s.pos = int64(page[i].Seq)
		}
	}
}

// Ended implements [host.Stream].
func (s *Subscription) Ended() bool { return s.born }

// Close implements [host.Stream].
func (s *Subscription) Close() {
	s.hub.remove(s)
	s.end(errClosed, false)
}

// Next implements [host.Stream]. After an error of ctx or of the store it may be called
// again without loss.
func (s *Subscription) Next(ctx context.Context, wait time.Duration) ([]host.StreamEvent, error) {
	var timer *time.Timer
	for {
		events, err := s.step(ctx)
		if len(events) > 0 {
			return events, nil // step returns the error again
		}
		if err != nil {
			return nil, err
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		select {
		case <-s.wake:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// step returns the available events. It returns none and nil if it must wait.
func (s *Subscription) step(ctx context.Context) ([]host.StreamEvent, error) {
	for {
		live, err := s.take()
		if err != nil {
			return live, err
		}
		if len(live) > 0 {
			if live, err = s.advance(ctx, live); len(live) > 0 || err != nil {
				return live, err
			}
			continue // all events were of other runs
		}
		if !s.reading {
			return nil, nil
		}
		page, err := s.hub.src.Stream(ctx, s.key.tenant, s.key.handler, s.pos, pageEvents)
		if err != nil {
			return nil, sourceError(err)
		}
		if len(page) > 0 {
			if page, err = s.advance(ctx, page); len(page) > 0 || err != nil {
				return page, err
			}
			continue
		}
		if s.over, err = s.isOver(ctx); err != nil {
			return nil, err
		}
		s.reading = false // from here on the buffer is complete
	}
}

// take empties the buffer, unless the store must be read first. Its error says why no
// more events come.
func (s *Subscription) take() ([]host.StreamEvent, error) {
	s.mu.Lock()
	if s.ended != nil || s.over {
		defer s.mu.Unlock()
		if s.ended != nil {
			return s.takeBuffered(), s.ended
		}
		return nil, io.EOF
	}
	if s.lagging {
		// Open the buffer first, then read the store.
		s.lagging, s.reading = false, true
	}
	if s.reading {
		s.mu.Unlock()
		return nil, nil
	}
	chunks, n := s.chunks, s.events
	s.chunks, s.events, s.bytes = s.spare[:0], 0, 0
	s.mu.Unlock()

	if n == 0 {
		s.spare = chunks
		return nil, nil
	}
	events := s.appendConsecutive(make([]host.StreamEvent, 0, n), chunks)
	clear(chunks) // the spare must not keep the events alive
	s.spare = chunks
	return events, nil
}

// takeBuffered returns the buffered events of a deleted handler, perhaps with its terminal
// event. s.mu is held. takeBuffered does not read the store, because another handler may
// have the name by now.
func (s *Subscription) takeBuffered() []host.StreamEvent {
	if s.events == 0 || s.reading || s.over {
		return nil
	}
	events := s.appendConsecutive(make([]host.StreamEvent, 0, s.events), s.chunks)
	s.drop()
	if len(events) > 0 {
		s.pos = int64(events[len(events)-1].Seq)
	}
	return events
}

// appendConsecutive appends the live events that follow pos without a gap. It leaves out events that
// the store has given already.
func (s *Subscription) appendConsecutive(to []host.StreamEvent, chunks [][]host.StreamEvent) []host.StreamEvent {
	next := s.pos + 1
	for _, chunk := range chunks {
		for i := range chunk {
			switch seq := int64(chunk[i].Seq); {
			case seq == next:
				to = append(to, chunk[i])
				next++
			case seq > next:
				// An event was not published. The store has it, and all later ones.
				s.reading = true
				return to
			case chunk[i].Terminal:
				// The terminal event lies before a starting point still to come.
				s.reading = true
			}
		}
	}
	return to
}

// advance moves pos to the end of the events, which are about to be given. If a run's
// terminal event is among them, advance finds out whether the stream is over.
func (s *Subscription) advance(ctx context.Context, events []host.StreamEvent) ([]host.StreamEvent, error) {
	if s.run != "" {
		return s.advanceRun(events), nil
	}
	pos := int64(events[len(events)-1].Seq)
	for i := len(events) - 1; i >= 0; i-- {
		if !events[i].Terminal {
			continue
		}
		_, latestRunFirst, err := s.hub.src.StreamEnd(ctx, s.key.tenant, s.key.handler)
		if err != nil {
			s.reading = true // the store gives the events when it can
			return nil, sourceError(err)
		}
		s.over = int64(events[i].Seq) >= latestRunFirst // else a newer run has begun
		break
	}
	s.pos = pos
	return events, nil
}

// advanceRun is advance for a subscription to one run. It keeps only that run's events.
func (s *Subscription) advanceRun(events []host.StreamEvent) []host.StreamEvent {
	s.pos = int64(events[len(events)-1].Seq)
	events = slices.DeleteFunc(slices.Clone(events), func(e host.StreamEvent) bool { return e.RunID != s.run })
	s.over = slices.ContainsFunc(events, func(e host.StreamEvent) bool { return e.Terminal })
	return events
}

// offer puts live events into the buffer. bytes is the length of their bodies.
func (s *Subscription) offer(events []host.StreamEvent, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.lagging {
		return
	}
	if s.events+len(events) > bufferEvents || s.bytes+bytes > bufferBytes {
		s.drop()
	} else {
		s.chunks = append(s.chunks, events)
		s.events += len(events)
		s.bytes += bytes
	}
	s.signal()
}

// end makes the subscription end with the given error. The first error counts. With keep,
// the buffered events are still given.
func (s *Subscription) end(reason error, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = reason
	}
	if !keep {
		s.drop()
	}
	s.signal()
}

// drop discards the live events. s.mu is held.
func (s *Subscription) drop() {
	clear(s.chunks)
	s.chunks, s.events, s.bytes, s.lagging = s.chunks[:0], 0, 0, true
}

// signal wakes the reader. s.mu is held.
func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
