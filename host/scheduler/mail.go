package scheduler

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/mail"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// mailed is a session as the mailer sees it.
type mailed struct{ *session }

// mailbox pins a session for the mailer.
func (t *table) mailbox(ctx context.Context, key host.SessionKey, create bool) (mail.Session, error) {
	ss, err := t.acquire(ctx, key, create)
	if err != nil {
		return nil, err // not ss: an interface that holds a nil pointer is not nil
	}
	return mailed{ss}, nil
}

// Mail implements mail.Session.
func (ss mailed) Mail(to string, most int) []engine.Message {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return nil
	}
	return ss.eng.Mail(to, most)
}

// Receive implements mail.Session.
func (ss mailed) Receive(ctx context.Context, messages []engine.Message) (refused []engine.ChildEnd, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.dead {
		return nil, refusal.ErrGone
	}
	for i := range messages {
		m := &messages[i]
		_, _, err := ss.tick(m.Tick(), extras{})
		switch {
		// What was received before, by a message that was carried twice, is dropped.
		case err == nil || refusal.TooLate(err):
		case host.CodeOf(err) == host.CodeUnavailable: // a module could not be read
			return refused, err
		case m.Start != nil:
			refused = append(refused, engine.ChildEnd{RunID: m.Start.RunID, Err: refusal.ToGuest(err)})
		default:
			ss.log(ctx, slog.LevelError, "a message is refused", "error", err)
		}
	}
	return refused, nil
}

// Delivered implements mail.Session. The end of a child that could not begin comes before
// its start leaves the outbox: a crash in between has the message carried again.
func (ss mailed) Delivered(to string, id uint64, refused []engine.ChildEnd) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, end := range refused {
		ss.note(engine.ChildEnded{End: end})
	}
	ss.note(engine.Delivered{To: to, ID: id})
}

// Outbox implements mail.Session.
func (ss mailed) Outbox() (pos uint64, to []string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.lastPos, ss.eng.MailTo()
}

// Release implements mail.Session.
func (ss mailed) Release() { ss.release() }
