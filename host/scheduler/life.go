package scheduler

import (
	"context"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/downtime"
)

// markEvery is how often the alive mark is written.
const markEvery = 5 * time.Second

// life is the life of this server. Scheduler.mu guards all but down, which is set once.
type life struct {
	s         *Scheduler
	down      *downtime.Log // times in which no server ran
	lastMark  int64         // when alive was last written
	marking   bool          // somebody writes it
	stopping  bool
	until     int64 // when it began to stop, Unix nanoseconds
	abandoned bool  // nothing that guests do can become durable
}

// begin reads when the previous server ended, and records that this one runs.
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

// work writes the alive mark now and then. The caller holds mu.
func (l *life) work(now time.Time) (work []func(), next time.Time) {
	if next = time.Unix(0, l.lastMark).Add(markEvery); next.After(now) {
		return nil, next
	}
	if !l.marking {
		l.marking = true
		work = append(work, l.mark)
	}
	return work, time.Time{}
}

// accepting refuses work while the scheduler stops or the store is down.
func (s *Scheduler) accepting() error {
	s.mu.Lock()
	stopping := s.life.stopping
	s.mu.Unlock()
	if stopping {
		return admission.ErrStopping
	}
	if err := s.cfg.Journal.Err(); err != nil {
		return host.Unavailable(err)
	}
	return nil
}

// taking refuses what would add to the journal while so much of the tenant waits for
// the disk that its runs stand still, and what accepting refuses.
func (s *Scheduler) taking(tenant string) error {
	if err := s.accepting(); err != nil {
		return err
	}
	if s.cfg.Journal.OverHardLimit(tenant) {
		return &host.Error{Code: host.CodeOverloaded, RetryAfter: time.Second,
			Message: "the disk cannot keep up with the writes: the request had no effect"}
	}
	return nil
}
