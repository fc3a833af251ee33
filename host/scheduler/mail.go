package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// The runs of a session begin, end and answer runs of other sessions by messages
// (see package engine). A message stands in its sender's outbox, in the journal,
// before anybody carries it; carrying it is a tick of the receiver and then a tick
// of the sender that takes it out. All of them go through the one queue of the
// journal, so that whatever a crash leaves is a prefix of that: a message may be
// carried again then, and its receiver drops it. So may two goroutines carry the
// same messages at once: each of them begins with the oldest.

// mailBatch is how many messages are carried under one lock of the receiver.
const mailBatch = 64

// retryMail is when messages are tried again whose receiver does not load.
const retryMail = 10 * time.Second

// route is the way of messages from one session to another of its tenant.
type route struct {
	from host.SessionKey
	to   string
}

func (r route) target() host.SessionKey {
	return host.SessionKey{Tenant: r.from.Tenant, Session: r.to}
}

// mailRoute is a route with messages on it.
type mailRoute struct {
	route
	due time.Time // zero: now
}

// mailer carries messages between sessions.
type mailer struct {
	s      *Scheduler
	routes []mailRoute // with messages; guarded by Scheduler.mu
}

// post has the messages of a route carried. Called with the sender's mu held, or
// with none.
func (p *mailer) post(r route, due time.Time) {
	p.s.mu.Lock()
	known := slices.ContainsFunc(p.routes, func(m mailRoute) bool { return m.route == r && !m.due.After(due) })
	if !known {
		p.routes = append(p.routes, mailRoute{r, due})
	}
	p.s.mu.Unlock()
	p.s.signal()
}

// work takes out the routes whose messages are to be carried now; next is
// when others will be, zero if there are none. Called with mu held.
func (p *mailer) work(now time.Time) (work []func(), next time.Time) {
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
				p.s.log.session(context.Background(), slog.LevelError, "messages to a session cannot be delivered, and are tried again", m.from, []any{"to", m.to, "error", err})
				p.post(m.route, p.s.table.retryAfter(m.target(), retryMail))
			}
		})
	}
	clear(p.routes[len(kept):])
	p.routes = kept
	return work, next
}

// carry brings all messages of a route to their session.
func (p *mailer) carry(ctx context.Context, r route) error {
	from, err := p.s.table.acquire(ctx, r.from, false)
	if host.CodeOf(err) == host.CodeNotFound {
		return nil // it was purged
	}
	if err != nil {
		return err
	}
	defer from.release()
	// Somebody else may carry the same messages: each round begins with the oldest that is
	// left.
	for {
		from.mu.Lock()
		messages := from.eng.Mail(r.to, mailBatch)
		dead := from.dead
		from.mu.Unlock()
		if dead || len(messages) == 0 {
			return nil
		}
		refused, err := p.bring(ctx, r.target(), messages)
		if err != nil {
			return err
		}
		from.mu.Lock()
		// The end of a child that could not begin comes before its start leaves the outbox: a
		// crash in between has the message carried again.
		for _, end := range refused {
			from.note(engine.ChildEnded{End: end})
		}
		from.note(engine.Delivered{To: r.to, ID: messages[len(messages)-1].ID})
		from.mu.Unlock()
	}
}

// note makes a tick for which it is well if it comes too late. Called with mu
// held.
func (ss *session) note(t engine.Tick) {
	_, _, err := ss.tick(t, extras{})
	if err != nil && !tooLate(err) {
		ss.log(context.Background(), slog.LevelError, "a message's tick is refused", "error", err)
	}
}

// tooLate reports whether a tick was refused because what it is about is over.
func tooLate(err error) bool {
	return errors.Is(err, engine.ErrStale) || errors.Is(err, engine.ErrUnknownRun) || errors.Is(err, errDead)
}

// bring gives messages to the session that they are for. Children that cannot
// begin there are given back as ended.
func (p *mailer) bring(ctx context.Context, key host.SessionKey, messages []engine.Message) (refused []engine.ChildEnd, err error) {
	begins := false
	for i := range messages {
		if m := messages[i].Start; m != nil {
			begins = true
			// The reducer is to find the version in memory.
			if _, err := p.s.cfg.Modules.ByDigest(m.Version); host.CodeOf(err) == host.CodeUnavailable {
				return nil, err
			}
		}
	}
	for {
		refused, err = p.bringOnce(ctx, key, messages, begins)
		if !errors.Is(err, errDead) {
			return refused, err
		}
		// It was purged meanwhile: the next one under its key is another.
	}
}

func (p *mailer) bringOnce(ctx context.Context, key host.SessionKey, messages []engine.Message, create bool) (refused []engine.ChildEnd, err error) {
	to, err := p.s.table.acquire(ctx, key, create)
	if host.CodeOf(err) == host.CodeNotFound {
		return nil, nil // nobody is there any more
	}
	if err != nil {
		return nil, err
	}
	defer to.release()
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.dead {
		return nil, errDead
	}
	for i := range messages {
		m := &messages[i]
		_, _, err := to.tick(m.Tick(), extras{})
		switch {
		// What was received before, by a message that was carried twice, is dropped.
		case err == nil || tooLate(err):
		case host.CodeOf(err) == host.CodeUnavailable: // a module could not be read
			return refused, err
		case m.Start != nil:
			refused = append(refused, engine.ChildEnd{RunID: m.Start.RunID, Err: guestError(err)})
		default:
			p.s.log.session(ctx, slog.LevelError, "a message is refused", key, []any{"error", err})
		}
	}
	return refused, nil
}

// settle carries what a session has to tell, and what comes of it in the sessions
// that it tells: a run that is cancelled takes its children along before anybody
// hears of it. It returns the newest queue position of them all.
func (p *mailer) settle(ctx context.Context, key host.SessionKey) (pos uint64, err error) {
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

// outbox gives a session's newest queue position and to whom it has messages.
func (p *mailer) outbox(ctx context.Context, key host.SessionKey) (pos uint64, to []string) {
	ss, err := p.s.table.acquire(ctx, key, false)
	if err != nil {
		return 0, nil
	}
	defer ss.release()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.lastPos, ss.eng.MailTo()
}
