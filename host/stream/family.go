package stream

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// Family is the stream of a run together with the streams of all its descendants. It
// implements [host.FamilyStream]. Only one goroutine may use it.
//
// # Order
//
// The events of a child come after the event of its parent that makes the child known,
// and before the parent's next event that became durable after them. The family takes a
// batch of the parent's events, then gives all durable events of the children, then gives
// the batch. So the events of a child come before what its parent made of them, and the
// run's terminal event comes last.
type Family struct {
	hub    *Hub
	tenant string
	root   *relative
	known  map[string]bool // handlers that are or were in the family
	wake   chan struct{}   // shared by all subscriptions of the family
}

var _ host.FamilyStream = (*Family)(nil)

// relative is a member of the family: one handler.
type relative struct {
	sub    *Subscription
	parent string // handler; "": this is the root
	after  int64  // where the subscription begins
	begun  bool
	seq    int64              // number of the last event given
	held   []host.StreamEvent // taken from the subscription, but not given yet
	kids   []*relative        // children that may have more to give
}

// SubscribeFamily opens the stream of a handler together with its children's streams. If
// runID is not "", it opens only that run of the handler. from is the starting point; see
// [position.Family].
//
// # Errors
//
// Those of [Hub.Subscribe].
func (h *Hub) SubscribeFamily(ctx context.Context, tenant, handlerID, runID string, from position.Family) (*Family, error) {
	if from.After < position.FromNow {
		return nil, host.Errorf(host.CodeInvalidArgument, "there is no event %d", from.After)
	}
	f := &Family{hub: h, tenant: tenant, known: map[string]bool{handlerID: true}, wake: make(chan struct{}, 1)}
	root, err := f.join(handlerID, "", runID, from.After)
	if err != nil {
		return nil, err
	}
	f.root = root
	if err := root.begin(ctx); err != nil {
		f.Close()
		return nil, err
	}
	for _, c := range from.Children {
		parent := root
		if c.Parent != "" {
			parent = find(root, c.Parent)
		}
		if parent == nil || f.known[c.Handler] {
			f.Close()
			return nil, host.Errorf(host.CodeInvalidArgument, "the position names %s, but does not name its parent before it", c.Handler)
		}
		if err := f.adopt(parent, c.Handler, c.After); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// join registers a subscription. The subscription begins later, because a parent may know
// of a child in another session before the child is durable.
func (f *Family) join(handler, parent, run string, after int64) (*relative, error) {
	s := newSubscription(f.hub, key{f.tenant, handler})
	s.run, s.wake = run, f.wake
	if !f.hub.add(s) {
		return nil, errStopping()
	}
	return &relative{sub: s, parent: parent, after: after, seq: max(after, -1)}, nil
}

// adopt adds a child to its parent, once.
func (f *Family) adopt(parent *relative, handler string, after int64) error {
	if f.known[handler] {
		return nil
	}
	kid, err := f.join(handler, parent.handler(), "", after)
	if err != nil {
		return err
	}
	f.known[handler] = true
	parent.kids = append(parent.kids, kid)
	return nil
}

func (r *relative) handler() string { return r.sub.key.handler }

func (r *relative) begin(ctx context.Context) error {
	err := r.sub.begin(ctx, r.after)
	if err == nil {
		r.begun, r.seq = true, max(r.sub.pos, r.seq)
	}
	return err
}

// find returns the member with a handler among r and its descendants, or nil.
func find(r *relative, handler string) *relative {
	if handler == r.handler() {
		return r
	}
	for _, kid := range r.kids {
		if found := find(kid, handler); found != nil {
			return found
		}
	}
	return nil
}

// Ended implements [host.FamilyStream].
func (f *Family) Ended() bool { return f.root.sub.Ended() }

// Close implements [host.FamilyStream].
func (f *Family) Close() { f.root.close() }

func (r *relative) close() {
	r.sub.Close()
	for _, kid := range r.kids {
		kid.close()
	}
}

// Next implements [host.FamilyStream].
func (f *Family) Next(ctx context.Context, wait time.Duration) ([]host.FamilyEvent, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		events, err := f.step(ctx, f.root)
		if len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-f.wake:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// step returns the available events of a member and its descendants. It returns none and
// nil if it must wait, and io.EOF if no more events will come.
func (f *Family) step(ctx context.Context, r *relative) ([]host.FamilyEvent, error) {
	if !r.begun {
		if err := r.begin(ctx); errors.Is(err, host.ErrNotFound) || host.CodeOf(err) == host.CodeNotFound {
			return nil, nil // the child is not durable yet
		} else if err != nil {
			return nil, err
		}
	}
	for {
		for i := 0; i < len(r.kids); i++ {
			kid := r.kids[i]
			events, err := f.step(ctx, kid)
			if len(events) > 0 {
				return events, nil
			}
			switch {
			case err == nil:
				continue
			case !errors.Is(err, io.EOF) && host.CodeOf(err) != host.CodeNotFound:
				return nil, err
			}
			kid.close() // the child has ended, or was purged
			r.kids = slices.Delete(r.kids, i, i+1)
			i--
		}
		if len(r.held) > 0 {
			return f.give(r)
		}
		events, err := r.sub.step(ctx)
		if len(events) == 0 {
			return nil, err
		}
		r.held = events // the subscription returns the error again
	}
}

// give returns the held events of a member, up to the event that makes a child known. The
// child's events come before the rest.
func (f *Family) give(r *relative) ([]host.FamilyEvent, error) {
	n := len(r.held)
	for i := range r.held {
		if c := r.held[i].Child; c != "" && !f.known[c] {
			if err := f.adopt(r, c, position.FromRun); err != nil {
				return nil, err
			}
			n = i + 1
			break
		}
	}
	out := make([]host.FamilyEvent, n)
	for i := range out {
		r.seq = int64(r.held[i].Seq)
		out[i] = host.FamilyEvent{StreamEvent: r.held[i], HandlerID: r.handler(), ParentID: r.parent, Position: f.position()}
	}
	r.held = r.held[n:]
	return out, nil
}

// position returns the position of the family in its streams.
func (f *Family) position() string {
	at := position.Family{After: f.root.seq}
	var walk func(r *relative)
	walk = func(r *relative) {
		for _, kid := range r.kids {
			at.Children = append(at.Children, position.Member{Handler: kid.handler(), Parent: kid.parent, After: kid.seq})
			walk(kid)
		}
	}
	walk(f.root)
	return at.Text(f.root.handler())
}
