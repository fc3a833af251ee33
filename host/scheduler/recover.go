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

// markBoot reads when the server before ended, and marks this one as running.
func (s *Scheduler) markBoot(ctx context.Context) (err error) {
	var until int64
	if after := s.cfg.After; after != nil { // its time is this process's own
		s.boot, until = max(s.boot, after.boot), after.until
	}
	if s.down, err = downtime.Open(ctx, s.cfg.Store, s.boot, until); err != nil {
		return err
	}
	s.lastMark = s.now()
	return s.down.Alive(ctx, s.lastMark)
}

// mark notes that the server is serving: timeouts count that time only.
func (s *Scheduler) mark() {
	now := s.now()
	s.cfg.Notes.Alive()
	if err := s.down.Alive(context.Background(), now); err != nil {
		s.cfg.Log.Warn("the store does not take the alive mark", "error", err)
	} else {
		s.deleteOldKeys(context.Background())
	}
	s.mu.Lock()
	s.marking, s.lastMark = false, now
	s.mu.Unlock()
	s.signal()
}

// deleteOldKeys deletes idempotency keys that are too old to be repeated.
func (s *Scheduler) deleteOldKeys(ctx context.Context) {
	n, err := s.keys.DeleteOld(ctx)
	if err != nil {
		s.cfg.Log.Warn("old idempotency keys cannot be deleted", "error", err)
	} else if n > 0 {
		s.cfg.Log.Debug("deleted old idempotency keys", "keys", n)
	}
}

// Close notes that the server ended cleanly. Call it after Run has returned
// and the journal is drained.
func (s *Scheduler) Close(ctx context.Context) error {
	return s.down.Close(ctx, s.now())
}

// recover goes on with a session that was just folded: it accounts for the
// time in which the server was down, opens the attempts that were open, and begins queued runs whose turn has come. Nobody else uses the session yet.
func (ss *session) recover(records map[uint64]*history.Record) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.s
	for _, to := range ss.eng.MailTo() {
		s.mail(route{ss.key, to}, time.Time{})
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
	s.setTimer(ss.key, ss.eng.NextTimer())
}
