// Package stream brings durable events to subscribers. The hub stands between the
// journal, which publishes events that have become durable, and the open subscriptions.
//
// The package does not know how events are made, stored or sent to clients, and owns no
// goroutines: it runs on those of publishers and subscribers.
//
// # How nothing is lost
//
// A subscription has two sources: live events, which Publish puts into its small buffer,
// and the store, which it reads in pages. It reads the store whenever the buffer may be
// incomplete: at the beginning, after the buffer has overflowed because the reader is
// slow, and when the buffer's first event is not the next one. Three rules make the
// result complete and free of repetitions:
//
//   - An event is published after it has become durable. So the store has every event
//     that the buffer missed.
//   - Before a subscription begins to read the store, its buffer accepts live events
//     again. So an event that becomes durable too late for the last page of the store is
//     in the buffer, or has made the buffer overflow again.
//   - Every event carries its number, and a subscription gives no number twice.
//
// So a slow reader costs a buffer of bounded size, and nobody waits for it.
package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// Source reads durable events. It is the part of the store that this package needs. Its
// methods are safe for concurrent use, and the caller owns their results. Their error for
// an unknown handler is host.ErrNotFound.
type Source interface {
	// Handler reads what a handler id points to.
	Handler(ctx context.Context, tenant, id string) (host.Handler, error)
	// Stream reads events with Seq > after, in order. An empty result means the end.
	Stream(ctx context.Context, tenant, handlerID string, after int64, limit int) ([]host.StreamEvent, error)
	// StreamEnd returns the number of the last event, or -1, and the number of the first
	// event of the latest run, whether or not that event exists yet.
	StreamEnd(ctx context.Context, tenant, handlerID string) (last, latestRunFirst int64, err error)
}

// key identifies a handler.
type key struct{ tenant, handler string }

// Hub holds the open subscriptions. Its methods are safe for concurrent use, except that
// Publish and Purged for one handler must not be called concurrently.
type Hub struct {
	src   Source
	count atomic.Int64 // open subscriptions; lets Publish return at once if there are none

	// mu guards the fields below. A subscription's own mutex may be locked under it, but
	// nothing that waits.
	mu     sync.RWMutex
	topics map[key]map[*Subscription]struct{}
	closed bool
}

// NewHub returns a hub whose subscriptions read from src.
func NewHub(src Source) *Hub {
	return &Hub{src: src, topics: map[key]map[*Subscription]struct{}{}}
}

// errStopping is the error for subscribers of a closed hub.
func errStopping() error {
	return host.Errorf(host.CodeUnavailable, "the server is stopping")
}

func errNotFound(cause error) error {
	return &host.Error{Code: host.CodeNotFound, Message: "Handler not found", Cause: cause}
}

// Publish passes events that have become durable to the subscriptions of their handlers.
// The rows of one handler are in the order of its events. Publish never waits for a
// subscriber, and costs almost nothing without subscribers. The hub keeps the events for
// a while, so they must not be changed any more.
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

// Purged ends the subscriptions of a deleted handler. Each subscription first gives the
// published events in its buffer and then fails with CodeNotFound. A subscription that
// would need older events from the store fails at once.
func (h *Hub) Purged(tenant, handlerID string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.topics[key{tenant, handlerID}] {
		s.end(errNotFound(nil), true)
	}
}

// Close ends all subscriptions with CodeUnavailable, and refuses new ones. It may be
// called more than once.
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

// Subscribe opens a handler's stream after the event with number after, or at
// position.FromRun or position.FromNow. The caller must close the subscription.
//
// # Errors
//
// CodeNotFound: the handler does not exist. CodeInvalidArgument: after is a negative
// number without a meaning. CodeUnavailable: the hub is closed.
func (h *Hub) Subscribe(ctx context.Context, tenant, handlerID string, after int64) (*Subscription, error) {
	return h.open(ctx, newSubscription(h, key{tenant, handlerID}), after)
}

// SubscribeRun is Subscribe for the events of one run of the handler. position.FromRun
// stands for the run's first event.
func (h *Hub) SubscribeRun(ctx context.Context, tenant, handlerID, runID string, after int64) (*Subscription, error) {
	s := newSubscription(h, key{tenant, handlerID})
	s.run = runID
	return h.open(ctx, s, after)
}

func (h *Hub) open(ctx context.Context, s *Subscription, after int64) (*Subscription, error) {
	if after < position.FromNow {
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
