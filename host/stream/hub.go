// Package stream brings durable events to whoever listens: the hub between the
// journal, which publishes what has become durable, and open subscriptions.
//
// It must not know how events are made, stored or sent to clients, and owns no
// goroutines: publishers and subscribers bring theirs.
//
// # How nothing is lost
//
// A subscription has two sources: live events, which Publish puts into its
// small buffer, and the store, which it reads in pages. It reads the store
// whenever the buffer cannot be trusted to have everything: at the beginning,
// after the buffer overflowed (the reader is slow), and when the buffer's first
// event is not the next one. Three rules make that complete and free of
// repetitions:
//
//   - An event is published after it has become durable. So what the buffer
//     missed, the store has.
//   - Before a subscription begins to read the store, its buffer is open to
//     live events again. So an event that becomes durable too late for the
//     store's last page is in the buffer, or has made it overflow again.
//   - Every event carries its number, and a subscription gives none twice.
//
// A slow reader thus costs a buffer of bounded size, and nobody waits for it.
package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftrun/weft/host"
)

// Source reads durable events: the part of the store that this package needs.
// Its methods may be called from any goroutine; what they return belongs to
// the caller. A handler that does not exist is host.ErrNotFound.
type Source interface {
	// Handler reads what a handler id points to.
	Handler(ctx context.Context, tenant, id string) (host.Handler, error)
	// Stream reads events with Seq > after in order, none only at the end.
	Stream(ctx context.Context, tenant, handlerID string, after int64, limit int) ([]host.StreamEvent, error)
	// StreamEnd gives the last number of the stream, or -1, and the first one
	// of the latest run, had or to come.
	StreamEnd(ctx context.Context, tenant, handlerID string) (last, latestRunFirst int64, err error)
}

// key names a handler.
type key struct{ tenant, handler string }

// Hub holds the open subscriptions. All methods may be called from any
// goroutine; but Publish and Purged, of one handler, from one at a time.
type Hub struct {
	src   Source
	count atomic.Int64 // open subscriptions; lets Publish return at once

	// mu guards what follows. A subscription's own mutex may be taken under
	// it, nothing that waits may.
	mu     sync.RWMutex
	topics map[key]map[*Subscription]struct{}
	closed bool
}

// NewHub makes a hub whose subscriptions read from src.
func NewHub(src Source) *Hub {
	return &Hub{src: src, topics: map[key]map[*Subscription]struct{}{}}
}

// errStopping answers subscribers of a closed hub.
func errStopping() error {
	return host.Errorf(host.CodeUnavailable, "the server is stopping")
}

func errNotFound(cause error) error {
	return &host.Error{Code: host.CodeNotFound, Message: "Handler not found", Cause: cause}
}

// Publish hands events that have become durable to the subscriptions of their
// handlers. Rows of one handler come in the order of their events. It never
// waits for a subscriber, and costs next to nothing when nobody listens. The
// hub keeps the events for a while: they must not be changed any more.
func (h *Hub) Publish(tenant string, rows []host.StreamRow) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for i := range rows {
		topic := h.topics[key{tenant, rows[i].HandlerID}]
		if len(topic) == 0 {
			continue
		}
		bytes := bodyBytes(rows[i].Events)
		for s := range topic {
			s.offer(rows[i].Events, bytes)
		}
	}
}

func bodyBytes(events []host.StreamEvent) int {
	n := 0
	for i := range events {
		n += len(events[i].Body)
	}
	return n
}

// Purged ends the subscriptions of a handler that has been deleted: each gets a
// CodeNotFound, behind those published events that it has not taken yet, unless
// it is so far behind that it would have to look for them in the store.
func (h *Hub) Purged(tenant, handlerID string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.topics[key{tenant, handlerID}] {
		s.end(errNotFound(nil), true)
	}
}

// Close ends all subscriptions with a CodeUnavailable, and refuses new ones. It
// may be called twice.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, topic := range h.topics {
		for s := range topic {
			s.end(errStopping(), false)
		}
	}
}

// Subscribe opens a handler's stream behind the event with number after, or at
// host.StreamFromRun or host.StreamFromNow. The caller closes the subscription.
//
// # Errors
//
// CodeNotFound: no such handler. CodeInvalidArgument: after is a negative number
// without a meaning. CodeUnavailable: the hub is closed.
func (h *Hub) Subscribe(ctx context.Context, tenant, handlerID string, after int64) (*Subscription, error) {
	return h.open(ctx, newSubscription(h, key{tenant, handlerID}), after)
}

// SubscribeRun is Subscribe for the events of one run of the handler. host.StreamFromRun
// is the run's first event.
func (h *Hub) SubscribeRun(ctx context.Context, tenant, handlerID, runID string, after int64) (*Subscription, error) {
	s := newSubscription(h, key{tenant, handlerID})
	s.run = runID
	return h.open(ctx, s, after)
}

func (h *Hub) open(ctx context.Context, s *Subscription, after int64) (*Subscription, error) {
	if after < host.StreamFromNow {
		return nil, host.Errorf(host.CodeInvalidArgument, "there is no event %d", after)
	}
	if !h.add(s) {
		return nil, errStopping()
	}
	if err := s.begin(ctx, after); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (h *Hub) add(s *Subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	topic := h.topics[s.key]
	if topic == nil {
		topic = map[*Subscription]struct{}{}
		h.topics[s.key] = topic
	}
	topic[s] = struct{}{}
	h.count.Add(1)
	return true
}

func (h *Hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	topic := h.topics[s.key]
	if _, open := topic[s]; !open {
		return
	}
	delete(topic, s)
	if len(topic) == 0 {
		delete(h.topics, s.key)
	}
	h.count.Add(-1)
}

// sourceError turns an error of the source into one for subscribers.
func sourceError(err error) error {
	if errors.Is(err, host.ErrNotFound) {
		return errNotFound(err)
	}
	return err
}
