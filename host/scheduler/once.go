package scheduler

import (
	"context"
	"errors"

	"github.com/weftrun/weft/host"
)

// A request that a client may send again carries a key. The first one's row is
// written with what it does, in the same transaction; until that is durable the
// row is found here, and whoever sends the same request meanwhile waits for what
// comes of it. A request that is refused leaves nothing.

// onceKey names a request.
type onceKey struct{ tenant, route, key string }

// first is a request that others may repeat and that the store does not know yet.
type first struct {
	settled chan struct{} // closed when the rest is set
	row     host.Repeat
	pos     uint64 // at which it is durable; 0: it was refused
}

// claim is a request that is the first of its key.
type claim struct {
	s   *Scheduler
	key onceKey
	row host.Repeat
}

// claim makes the caller the one who carries a request out, or gives what the
// first one has left. The caller settles the claim, nil for a request without a
// key, in any case.
func (s *Scheduler) claim(ctx context.Context, tenant string, once host.Once) (*claim, *host.Repeat, error) {
	if once.Key == "" {
		return nil, nil, nil
	}
	key := onceKey{tenant, once.Route, once.Key}
	for {
		durable := s.cfg.Journal.Durable()
		s.mu.Lock()
		f := s.firsts[key]
		if f != nil && f.pos != 0 && f.pos <= durable {
			f = nil // the store knows it
		}
		if f == nil {
			s.firsts[key] = &first{settled: make(chan struct{})}
		}
		s.mu.Unlock()
		if f == nil {
			break
		}
		row, err := s.joined(ctx, f)
		if err != nil || row != nil {
			return nil, row, matches(row, once, err)
		}
	}
	c := &claim{s: s, key: key, row: host.Repeat{Route: once.Route, Key: once.Key, Hash: once.Hash, Made: s.now()}}
	row, err := s.cfg.Store.Repeat(ctx, tenant, once.Route, once.Key)
	switch {
	case err == nil && row.Made > s.now()-host.RepeatsKept:
		c.settle(0)
		return nil, &row, matches(&row, once, nil)
	case err == nil || errors.Is(err, host.ErrNotFound):
		return c, nil, nil
	}
	c.settle(0)
	return nil, nil, host.Unavailable(err)
}

// matches refuses another request under the same key.
func matches(row *host.Repeat, once host.Once, err error) error {
	if err == nil && row.Hash != once.Hash {
		return host.Errorf(host.CodeIdempotencyMismatch, "the Idempotency-Key %q was used for another request body: use a new key for a new request", once.Key)
	}
	return err
}

// joined waits for what comes of a request that another has sent; nil if that was
// refused.
func (s *Scheduler) joined(ctx context.Context, f *first) (*host.Repeat, error) {
	select {
	case <-f.settled:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.pos == 0 {
		return nil, nil
	}
	if err := s.cfg.Journal.Wait(ctx, f.pos); err != nil {
		return nil, host.Unavailable(err)
	}
	row := f.row
	return &row, nil
}

// rows are what the journal is to write with the request's entry.
func (c *claim) rows(runID string) []host.Repeat {
	if c == nil {
		return nil
	}
	c.row.RunID = runID
	return []host.Repeat{c.row}
}

// settle says at which position the request is durable, 0 if it was refused. Those
// who join it find its row here until it is.
func (c *claim) settle(pos uint64) {
	if c == nil {
		return
	}
	s := c.s
	durable := s.cfg.Journal.Durable()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.firsts[c.key]
	f.row, f.pos = c.row, pos
	close(f.settled)
	if pos <= durable {
		delete(s.firsts, c.key)
	}
}

// knows reports whether a request was made before.
func (s *Scheduler) knows(ctx context.Context, tenant string, once host.Once) (bool, error) {
	s.mu.Lock()
	_, known := s.firsts[onceKey{tenant, once.Route, once.Key}]
	s.mu.Unlock()
	if known {
		return true, nil
	}
	row, err := s.cfg.Store.Repeat(ctx, tenant, once.Route, once.Key)
	if host.CodeOf(err) == host.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, host.Unavailable(err)
	}
	return row.Made > s.now()-host.RepeatsKept, nil
}

// forgetFirsts drops those that the store has by now. Called with mu held.
func (s *Scheduler) forgetFirsts(durable uint64) {
	for key, f := range s.firsts {
		if f.pos != 0 && f.pos <= durable {
			delete(s.firsts, key)
		}
	}
}

// forgetBatch is how many old requests are deleted at a time.
const forgetBatch = 1000

// forgetRepeats deletes requests that are too old to be repeated.
func (s *Scheduler) forgetRepeats(ctx context.Context) {
	n, err := s.cfg.Store.ForgetRepeats(ctx, s.now()-host.RepeatsKept, forgetBatch)
	if err != nil {
		s.cfg.Log.Warn("old idempotency keys cannot be deleted", "error", err)
	} else if n > 0 {
		s.cfg.Log.Debug("deleted old idempotency keys", "keys", n)
	}
}

// repeated answers a start that was made before with its run, as it is now; with
// wait when that has ended.
func (s *Scheduler) repeated(ctx context.Context, tenant, runID string, wait bool) (host.Run, error) {
	for {
		run, err := s.past.RunOf(ctx, tenant, runID)
		if err != nil {
			return host.Run{}, err
		}
		if !wait || run.Status.Final() {
			return run, nil
		}
		ss, err := s.acquire(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, false)
		if err != nil {
			return host.Run{}, err
		}
		end := make(chan ended, 1)
		ss.mu.Lock()
		rec, known := ss.eng.Record(runID)
		active := known && !rec.Status.Final()
		if active {
			ss.ended[runID] = append(ss.ended[runID], end)
		}
		pos := ss.lastPos
		ss.mu.Unlock()
		if active {
			run, err = s.await(ctx, end)
			if err != nil {
				ss.mu.Lock()
				ss.forget(runID, end)
				ss.mu.Unlock()
			}
			ss.release()
			return run, err
		}
		ss.release() // it has ended: the store will say so
		if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
	}
}
