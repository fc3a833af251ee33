package scheduler

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/downtime"
	"github.com/weftrun/weft/host/scheduler/history"
)

// markEvery is how often the alive mark is written.
const markEvery = 5 * time.Second

// life is that of this server. Scheduler.mu guards it, but for down, which is set once.
type life struct {
	s         *Scheduler
	down      *downtime.Log // times in which no server ran
	lastMark  int64         // when alive was last written
	marking   bool          // somebody writes it
	stopping  bool
	until     int64 // when it began to stop, Unix nanoseconds
	abandoned bool  // nothing that guests do can become durable
}

// begin reads when the server before ended, and marks this one as running.
func (l *life) begin(ctx context.Context) (err error) {
	var until int64
	if after := l.s.cfg.After; after != nil { // its time is this process's own
		l.s.boot, until = max(l.s.boot, after.boot), after.life.until
	}
	if l.down, err = downtime.Open(ctx, l.s.cfg.Store, l.s.boot, until); err != nil {
		return err
	}
	l.lastMark = l.s.now()
	return l.down.Alive(ctx, l.lastMark)
}

// mark notes that the server is serving: timeouts count that time only.
func (l *life) mark() {
	now := l.s.now()
	l.s.cfg.Notes.Alive()
	if err := l.down.Alive(context.Background(), now); err != nil {
		l.s.cfg.Log.Warn("the store does not take the alive mark", "error", err)
	} else {
		l.deleteOldKeys(context.Background())
	}
	l.s.mu.Lock()
	l.marking, l.lastMark = false, now
	l.s.mu.Unlock()
	l.s.signal()
}

// deleteOldKeys deletes idempotency keys that are too old to be repeated.
func (l *life) deleteOldKeys(ctx context.Context) {
	n, err := l.s.keys.DeleteOld(ctx)
	if err != nil {
		l.s.cfg.Log.Warn("old idempotency keys cannot be deleted", "error", err)
	} else if n > 0 {
		l.s.cfg.Log.Debug("deleted old idempotency keys", "keys", n)
	}
}

// Close notes that the server ended cleanly. Call it after Run has returned
// and the journal is drained.
func (s *Scheduler) Close(ctx context.Context) error {
	return s.life.down.Close(ctx, s.now())
}

// recover goes on with a session that was just folded: it accounts for the
// time in which the server was down, opens the attempts that were open, and begins queued runs whose turn has come. Nobody else uses the session yet.
func (ss *session) recover(records map[uint64]*history.Record) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.s
	for _, to := range ss.eng.MailTo() {
		s.mailer.post(route{ss.key, to}, time.Time{})
	}
	if ss.eng.Active() == 0 {
		return
	}
	last := ss.eng.Now()
	if last < s.boot {
		if _, _, err := ss.tick(engine.Shift{Lost: ss.lostTo(s.boot)}, extras{}); err != nil {
			ss.log(context.Background(), slog.LevelError, "a session cannot account for the time down", "error", err)
		}
	}
	for _, inv := range ss.eng.Open() {
		if ss.attempts[inv] == nil { // else its run has begun just now
			ss.open(inv, records[inv], max(last, s.boot))
		}
		delete(records, inv)
	}
	maps.DeleteFunc(records, func(inv uint64, _ *history.Record) bool { _, ok := ss.eng.Invocation(inv); return !ok })
	ss.suspended = records
	ss.takeTurns()
	for _, inv := range ss.eng.OutCalls() {
		ss.callOut(inv, true)
	}
	s.dues.setTimer(ss.key, ss.eng.NextTimer())
}
