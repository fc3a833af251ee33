// Package calls has the calls of resources that are not answered yet: the queues of the
// calls that go outside, by grant, the spaces of the calls that are made inside, and the
// [Caller] that makes them.
//
// It must not depend on the engine, or how a session takes an answer.
package calls

import (
	"container/list"
	"context"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// Key names an invocation, which waits for one call at a time.
type Key struct {
	Session    host.SessionKey
	Invocation uint64
}

// Call is a call of a resource that has no answer in the journal yet. Its exported fields
// do not change once it is in a [Book].
type Call struct {
	Key     Key
	Attempt uint64
	N       uint64     // number of the host call in its attempt
	Pos     uint64     // queue position at which it may begin; 0: at once
	Known   *abi.Error // its answer: it is not made
	Space   kv.Space   // not zero: it is made inside, see [Spaces]
	Found   bool       // its session was just loaded with it

	pool   *pool
	place  *list.Element      // in its pool's queue; nil: it has begun, or has no grant yet
	cancel context.CancelFunc // of a call that has begun
}

// Queued reports whether the call waits in the queue of its grant. The caller holds the
// book's lock.
func (c *Call) Queued() bool { return c.place != nil }

// pool is the calls of a grant.
type pool struct {
	name    string
	most    int
	under   int       // calls in progress
	waiting list.List // of *Call, the oldest first
}

// Late is what is done for a call after a while: it is answered, as its session did not
// load before, or made again, or its grant is asked for again.
type Late struct {
	Call  *Call
	Value abi.Raw
	Err   *abi.Error
	Due   time.Time
	// Again: the call could not be made, and is made when it is due.
	Again bool
	// Ungranted: nobody could say how the call may be made.
	Ungranted bool
}

// Book has the calls that have no answer yet. The caller holds its lock.
type Book struct {
	open     map[Key]*Call
	sessions map[host.SessionKey]int // open calls of each
	pools    map[string]*pool
	order    []*pool // those of pools, the oldest first
	late     []Late
}

// Init begins with an empty book.
func (b *Book) Init() {
	b.open = map[Key]*Call{}
	b.sessions = map[host.SessionKey]int{}
	b.pools = map[string]*pool{}
}

// Find gives the open call of an invocation; nil: none.
func (b *Book) Find(key Key) *Call { return b.open[key] }

// Has reports whether a call is open still: another may be in its place.
func (b *Book) Has(c *Call) bool { return b.open[c.Key] == c }

// Of is the number of open calls of a session.
func (b *Book) Of(key host.SessionKey) int { return b.sessions[key] }

// Sessions is the number of sessions with open calls.
func (b *Book) Sessions() int { return len(b.sessions) }

// Left is the number of open calls, of pools and of what is late, for tests.
func (b *Book) Left() (open, pools, late int) {
	return len(b.open) + len(b.sessions), len(b.pools) + len(b.order), len(b.late)
}

// Add queues a call with its grant.
func (b *Book) Add(c *Call, grant host.ResourceGrant) {
	p := b.pools[grant.Pool]
	if p == nil {
		p = &pool{name: grant.Pool}
		b.pools[grant.Pool] = p
		b.order = append(b.order, p)
	}
	p.most = max(grant.InFlight, 1)
	c.pool = p
	c.place = p.waiting.PushBack(c)
	b.Hold(c)
}

// Hold notes that a call is open, without a grant.
func (b *Book) Hold(c *Call) {
	b.open[c.Key] = c
	b.sessions[c.Key.Session]++
}

// requeue puts a call back into its queue that could not be made, unless nobody waits for
// the call any more.
func (b *Book) requeue(c *Call) {
	if !b.Has(c) {
		return
	}
	if p := b.pools[c.pool.name]; p != nil {
		c.pool = p
	} else {
		b.pools[c.pool.name] = c.pool
		b.order = append(b.order, c.pool)
	}
	c.place = c.pool.waiting.PushBack(c)
}

// Remove forgets a call. Its place in the pool stays taken while the call is in progress.
func (b *Book) Remove(c *Call) {
	if !b.Has(c) {
		return
	}
	delete(b.open, c.Key)
	if b.sessions[c.Key.Session]--; b.sessions[c.Key.Session] == 0 {
		delete(b.sessions, c.Key.Session)
	}
	if c.place != nil {
		c.pool.waiting.Remove(c.place)
		c.place = nil
	}
}

// Drop forgets a call, and ends the call if it has begun.
func (b *Book) Drop(c *Call) {
	b.Remove(c)
	if c.cancel != nil {
		c.cancel()
	}
}

// Cancel ends all calls in progress without an answer.
func (b *Book) Cancel() {
	for _, c := range b.open {
		if c.cancel != nil {
			c.cancel()
		}
	}
}

// Begin takes a call out of its pool's queue. The call ends with the context, and with End.
func (b *Book) Begin(c *Call) context.Context {
	c.pool.waiting.Remove(c.place)
	c.place = nil
	c.pool.under++
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	return ctx
}

// End gives the place of a call back that Begin has begun.
func (b *Book) End(c *Call) {
	c.pool.under--
	c.cancel()
	c.cancel = nil
}

// Later has something done for a call when it is due.
func (b *Book) Later(l Late) { b.late = append(b.late, l) }

// Due takes out what is due, and says when more is: zero if nothing is late. Calls that
// are made again are back in their queues.
func (b *Book) Due(now time.Time) (due []Late, next time.Time) {
	kept := b.late[:0]
	for _, l := range b.late {
		switch {
		case l.Due.After(now):
			if kept = append(kept, l); next.IsZero() || l.Due.Before(next) {
				next = l.Due
			}
		case l.Again:
			b.requeue(l.Call)
		default:
			due = append(due, l)
		}
	}
	clear(b.late[len(kept):])
	b.late = kept
	return due, next
}

// Ready calls begin, which must call Begin, for each call that may begin now: its intent
// is durable, and its grant has room.
func (b *Book) Ready(durable uint64, begin func(c *Call)) {
	kept := b.order[:0]
	for _, p := range b.order {
		for c := p.next(durable); c != nil; c = p.next(durable) {
			begin(c)
		}
		if p.under == 0 && p.waiting.Len() == 0 {
			delete(b.pools, p.name)
			continue
		}
		kept = append(kept, p)
	}
	clear(b.order[len(kept):])
	b.order = kept
}

// next gives the call of a pool's queue that may begin; nil: none.
func (p *pool) next(durable uint64) *Call {
	first := p.waiting.Front()
	if first == nil || p.under >= p.most {
		return nil
	}
	c := first.Value.(*Call)
	if c.Pos > durable {
		return nil
	}
	return c
}
