// Package mail carries messages between the sessions of a tenant: a session begins, ends
// and answers runs of other sessions by messages.
//
// It must not depend on what a message says to its receiver, or how a session is loaded.
package mail

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// A message is in its sender's outbox, in the journal, before it is carried. To carry a
// message is a tick of the receiver and then a tick of the sender, which takes the message
// out of the outbox. Both ticks go through the journal's one queue, so a crash leaves a
// prefix of them: the message may be carried again then, and its receiver drops it. Two
// goroutines may carry the same messages at once: each begins with the oldest.

const (
	// batch is how many messages are carried under one lock of the receiver.
	batch = 64
	// again is when messages are tried again whose sender or receiver does not load.
	again = 10 * time.Second
)

// Session is the sender or the receiver of messages. It is pinned until Release.
type Session interface {
	// Mail returns the oldest messages to another session, at most so many; none if the
	// session was purged. The caller must not change them.
	Mail(to string, most int) []engine.Message
	// Receive takes messages. It returns the ends of children that cannot begin here. The
	// error is [Config].Gone if the session was purged.
	Receive(ctx context.Context, messages []engine.Message) (refused []engine.ChildEnd, err error)
	// Delivered notes that messages to a session were carried, up to an id, and before
	// that the ends of the children that were refused.
	Delivered(to string, id uint64, refused []engine.ChildEnd)
	// Outbox returns the newest queue position and the receivers of the messages that wait.
	Outbox() (pos uint64, to []string)
	Release()
}

// Config says what a mailer works with. All fields must be set.
type Config struct {
	// Acquire pins a session, and loads it if need be; with create it makes the session
	// if there is none. The code of the error is [host.CodeNotFound] if there is none.
	Acquire func(ctx context.Context, key host.SessionKey, create bool) (Session, error)
	// RetryAfter is when to try again what an error of loading a session has prevented.
	RetryAfter func(key host.SessionKey, after time.Duration) time.Time
	// Readable brings a version of a workflow into memory; the error says why not.
	Readable func(version string) error
	Gone     error  // of a session that was purged
	Signal   func() // makes the scheduler call [Mailer.Work]
	Log      func(level slog.Level, message string, from host.SessionKey, args ...any)
}

// route is the way of messages from one session to another of its tenant.
type route struct {
	from host.SessionKey
	to   string
}

func (r route) target() host.SessionKey {
	return host.SessionKey{Tenant: r.from.Tenant, Session: r.to}
}

// posted is a route with messages on it.
type posted struct {
	route
	due time.Time // zero: now
}

// Mailer carries messages. Its methods may be called from any goroutine. Post and Work take
// no lock but the mailer's own; the other methods must be called without locks.
type Mailer struct {
	cfg    Config
	mu     sync.Mutex // guards what follows; nothing is called under it
	routes []posted   // with messages
}

// Init begins without messages.
func (p *Mailer) Init(cfg Config) { p.cfg = cfg }

// Post has the messages of a session to another carried.
func (p *Mailer) Post(from host.SessionKey, to string) { p.post(route{from, to}, time.Time{}) }

// post has the messages of a route carried when they are due.
func (p *Mailer) post(r route, due time.Time) {
	p.mu.Lock()
	known := slices.ContainsFunc(p.routes, func(m posted) bool { return m.route == r && !m.due.After(due) })
	if !known {
		p.routes = append(p.routes, posted{r, due})
	}
	p.mu.Unlock()
	p.cfg.Signal()
}

// Work returns the work of carrying the messages that are due. next is when others are due,
// zero if there are none.
func (p *Mailer) Work(now time.Time) (work []func(), next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.routes[:0]
	for _, m := range p.routes {
		if m.due.After(now) {
			if kept = append(kept, m); next.IsZero() || m.due.Before(next) {
				next = m.due
			}
			continue
		}
		work = append(work, func() {
			if err := p.carry(context.Background(), m.route); err != nil {
				p.cfg.Log(slog.LevelError, "messages to a session cannot be delivered, and are tried again", m.from, "to", m.to, "error", err)
				p.post(m.route, p.cfg.RetryAfter(m.target(), again))
			}
		})
	}
	clear(p.routes[len(kept):])
	p.routes = kept
	return work, next
}

// carry brings all messages of a route to their session.
func (p *Mailer) carry(ctx context.Context, r route) error {
	from, err := p.cfg.Acquire(ctx, r.from, false)
	if host.CodeOf(err) == host.CodeNotFound {
		return nil // it was purged
	}
	if err != nil {
		return err
	}
	defer from.Release()
	// Another goroutine may carry the same messages: each round begins with the oldest that
	// is left.
	for {
		messages := from.Mail(r.to, batch)
		if len(messages) == 0 {
			return nil
		}
		refused, err := p.bring(ctx, r.target(), messages)
		if err != nil {
			return err
		}
		from.Delivered(r.to, messages[len(messages)-1].ID, refused)
	}
}

// bring gives messages to their receiver. It returns the ends of children that cannot begin
// there.
func (p *Mailer) bring(ctx context.Context, key host.SessionKey, messages []engine.Message) (refused []engine.ChildEnd, err error) {
	begins := false
	for i := range messages {
		if m := messages[i].Start; m != nil {
			begins = true
			// The reducer must find the version in memory. Other errors are the receiver's.
			if err := p.cfg.Readable(m.Version); host.CodeOf(err) == host.CodeUnavailable {
				return nil, err
			}
		}
	}
	for {
		to, err := p.cfg.Acquire(ctx, key, begins)
		if host.CodeOf(err) == host.CodeNotFound {
			return nil, nil // there is no receiver any more
		}
		if err != nil {
			return nil, err
		}
		refused, err = to.Receive(ctx, messages)
		to.Release()
		// A session that was purged meanwhile is another one now.
		if !errors.Is(err, p.cfg.Gone) {
			return refused, err
		}
	}
}

// Settle carries the messages of a session, and the messages that they cause in the sessions
// that receive them: a run that is cancelled takes its children along before a client hears
// of it. pos is the newest queue position of all these sessions.
func (p *Mailer) Settle(ctx context.Context, key host.SessionKey) (pos uint64, err error) {
	seen := map[host.SessionKey]bool{}
	for todo := []host.SessionKey{key}; len(todo) > 0; todo = todo[1:] {
		// Sessions may have runs of each other as children.
		if seen[todo[0]] {
			continue
		}
		seen[todo[0]] = true
		last, targets := p.outbox(ctx, todo[0])
		pos = max(pos, last)
		for _, to := range targets {
			r := route{todo[0], to}
			if err := p.carry(ctx, r); err != nil {
				return pos, err
			}
			todo = append(todo, r.target())
		}
	}
	return pos, nil
}

// outbox returns a session's newest queue position and the receivers of its messages.
func (p *Mailer) outbox(ctx context.Context, key host.SessionKey) (pos uint64, to []string) {
	ss, err := p.cfg.Acquire(ctx, key, false)
	if err != nil {
		return 0, nil
	}
	defer ss.Release()
	return ss.Outbox()
}
