package scheduler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/history"
)

// Names of the store's meta values, and how often the second is written.
const (
	metaUnclean = "unclean_boot" // non-empty while a server runs on the store
	metaAlive   = "alive_until"  // Unix nanoseconds, 8 bytes big endian
	metaDown    = "down"         // intervals in which no server ran: pairs like metaAlive
	markEvery   = 5 * time.Second
)

// maxDown bounds the intervals that are kept: a run that sleeps over more
// restarts than these has the oldest counted as serving time.
const maxDown = 4096

// interval is a time in which no server ran, in Unix nanoseconds.
type interval struct{ from, to int64 }

// markBoot reads when the server before ended, and marks this one as running.
func (s *Scheduler) markBoot(ctx context.Context) error {
	if after := s.cfg.After; after != nil { // its time is this process's own
		s.boot = max(s.boot, after.boot)
	}
	alive, err := s.cfg.Store.Meta(ctx, metaAlive)
	if err == nil || errors.Is(err, host.ErrNotFound) {
		err = s.readDown(ctx, alive)
	}
	if err != nil {
		return fmt.Errorf("read the times in which the server was down: %w", err)
	}
	if err := s.cfg.Store.SetMeta(ctx, metaUnclean, []byte{1}); err != nil {
		return fmt.Errorf("write the boot mark: %w", err)
	}
	return s.markAlive(ctx)
}

// readDown reads the times in which no server ran, and adds the one that ends
// with this boot.
func (s *Scheduler) readDown(ctx context.Context, alive []byte) error {
	raw, err := s.cfg.Store.Meta(ctx, metaDown)
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return err
	}
	for ; len(raw) >= 16; raw = raw[16:] {
		s.down = append(s.down, interval{int64(binary.BigEndian.Uint64(raw)), int64(binary.BigEndian.Uint64(raw[8:]))})
	}
	if len(alive) != 8 {
		return nil // the store's first server
	}
	from := int64(binary.BigEndian.Uint64(alive))
	if s.cfg.After != nil {
		from = max(from, s.cfg.After.until)
	}
	s.down = append(s.down, interval{from, s.boot})
	s.down = s.down[max(0, len(s.down)-maxDown):]
	out := make([]byte, 0, 16*len(s.down))
	for _, d := range s.down {
		out = binary.BigEndian.AppendUint64(out, uint64(d.from))
		out = binary.BigEndian.AppendUint64(out, uint64(d.to))
	}
	return s.cfg.Store.SetMeta(ctx, metaDown, out)
}

// downSince is how long no server ran after a time.
func (s *Scheduler) downSince(t int64) int64 {
	var sum int64
	for i := len(s.down) - 1; i >= 0 && s.down[i].to > t; i-- {
		sum += max(0, s.down[i].to-max(s.down[i].from, t))
	}
	return sum
}

func (s *Scheduler) markAlive(ctx context.Context) error {
	s.lastMark = s.now()
	return s.cfg.Store.SetMeta(ctx, metaAlive, binary.BigEndian.AppendUint64(nil, uint64(s.lastMark)))
}

// mark notes that the server is serving: timeouts count that time only.
func (s *Scheduler) mark() {
	now := s.now()
	s.cfg.Notes.Alive()
	err := s.cfg.Store.SetMeta(context.Background(), metaAlive, binary.BigEndian.AppendUint64(nil, uint64(now)))
	if err != nil {
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
	if err := s.markAlive(ctx); err != nil {
		return err
	}
	return s.cfg.Store.SetMeta(ctx, metaUnclean, nil)
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
		if _, _, err := ss.tick(engine.Shift{Lost: ss.lostTo(s.boot)}, nil); err != nil {
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
