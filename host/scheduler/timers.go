package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// dueSessions are the sessions as package due sees them.
type dueSessions struct{ *table }

// Find implements due.Sessions.
func (t dueSessions) Find(key host.SessionKey) (*session, bool) {
	ss, ok := t.sessions[key]
	return ss, ok
}

// Known implements due.Sessions.
func (t dueSessions) Known() int { return len(t.sessions) + t.s.calls.Sessions() + t.quarantine.Len() }

// Awaited implements due.Sessions.
func (t dueSessions) Awaited(key host.SessionKey) bool {
	return t.sessions[key] != nil || t.s.calls.Of(key) > 0
}

// Until implements due.Sessions.
func (t dueSessions) Until(key host.SessionKey) (at time.Time, ok bool) {
	return t.quarantine.Until(key)
}

// Busy implements due.Sessions.
func (t dueSessions) Busy(ss *session) bool {
	// Without pins nobody else looks at what ss.mu guards.
	return ss.pins > 0 || ss.lastPos > t.s.cfg.Journal.Durable()
}

// Leave implements due.Sessions.
func (t dueSessions) Leave(ss *session) bool {
	if t.settleCounts(ss) {
		return false
	}
	t.forget(ss)
	return true
}

// CoresIdle implements due.Sessions.
func (t dueSessions) CoresIdle() bool { return t.s.cores.queue.Free() > 0 }

// Load implements due.Sessions.
func (t dueSessions) Load(key host.SessionKey, use func(*session)) {
	t.ensure(key, "a session that is due cannot be loaded", use)
}

// Fire implements due.Sessions.
func (t dueSessions) Fire(key host.SessionKey) {
	t.ensure(key, "a timer cannot fire", func(ss *session) {
		ss.mu.Lock()
		ss.fireDue()
		ss.mu.Unlock()
	})
}

// fireDue ticks every timer that is due. The caller holds mu.
func (ss *session) fireDue() {
	for {
		if ss.dead {
			return // the timers under its key are those of another by now
		}
		at := ss.eng.NextTimer()
		if at == host.WakeNever || at > ss.s.now() {
			break
		}
		// A timeout moves by the time in which nobody could work for want of a core.
		if t, ok := ss.eng.DueTimeout(ss.s.now()); ok && ss.extend(t) {
			continue
		}
		if _, _, err := ss.tick(engine.Timer{}, extras{}); err != nil {
			ss.log(context.Background(), slog.LevelError, "a timer is refused", "error", err)
			break
		}
	}
	ss.s.dues.SetTimer(ss.key, ss.eng.NextTimer())
}
