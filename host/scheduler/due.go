package scheduler

import (
	"context"
	"time"

	"github.com/weftrun/weft/host"
)

// Sessions that have something to do by themselves, and are not in memory, are named
// by the store: their timers are due, or they had attempts open when the server before
// ended. After a long time down there may be any number of them. So they are taken up
// in the order of their times, and no more than Config.DueAtOnce at a time: another one
// when one is through, which is when it has nothing to do at this time and all of it is
// durable; it leaves memory at once while others wait. In between, whoever asks for
// something waits behind those taken up at most, and not behind all that are due.
//
//	the store says who is due, in order -> toLoad -> loadDue, loadAtOnce side by side
//	     -> taken -> their timers fire, in order -> through -> out of memory
//
// Where none gets through, one more is taken up now and then: guests that compute for
// long, or whose tenant is over its budget, must not keep the timers of others waiting
// for ever.

// dueBatch is how many sessions with something to do are asked for at once, beside
// those that are in memory, and loadAtOnce how many of them are loaded side by side.
const (
	dueBatch   = 256
	loadAtOnce = 4
)

// dueTrickle is how often a session is taken up that is one too many: mostly, and while
// cores are idle.
const (
	dueTrickle     = 100 * time.Millisecond
	dueTrickleIdle = 10 * time.Millisecond
)

// fireBatch bounds the timers that fire before anything else is looked at.
const fireBatch = 256

// dueWork lets go of those that are through and takes up others; next is when to look
// again, zero: when something happens. Called with mu held.
func (s *Scheduler) dueWork(now time.Time) (work []func(), next time.Time) {
	s.letGo(now)
	if s.loaders > 0 { // their timers are to fire before those of the next ones
		return nil, time.Time{}
	}
	for s.loaders < loadAtOnce && len(s.toLoad) > 0 {
		if len(s.taken)+s.loaders >= s.cfg.DueAtOnce {
			if next = s.lastTaken.Add(s.trickle()); now.Before(next) {
				break
			}
			next = time.Time{}
		}
		key := s.toLoad[0]
		s.toLoad = s.toLoad[1:]
		s.loaders++
		s.lastTaken = now
		work = append(work, func() { s.loadDue(key) })
	}
	if s.nextDue == host.WakeNever || s.asking {
		return work, next
	}
	if s.nextDue <= now.UnixNano() {
		s.asking, s.nextDue = true, host.WakeNever
		return append(work, s.askDue), next
	}
	if at := time.Unix(0, s.nextDue); next.IsZero() || at.Before(next) {
		next = at
	}
	return work, next
}

func (s *Scheduler) trickle() time.Duration {
	if s.queue.Free() > 0 {
		return dueTrickleIdle
	}
	return dueTrickle
}

// letGo forgets who was taken up and is through. Called with mu held.
func (s *Scheduler) letGo(now time.Time) {
	if len(s.taken) == 0 || s.firing {
		return
	}
	durable := s.cfg.Journal.Durable()
	others := s.asking || s.nextDue != host.WakeNever && s.nextDue <= now.UnixNano() // may wait
	kept := s.taken[:0]
	for _, ss := range s.taken {
		if s.sessions[ss.key] == ss {
			// Without pins nobody else looks at what ss.mu guards.
			if ss.pins > 0 || ss.lastPos > durable || s.timers.DueAt(ss.key, now.UnixNano()) {
				kept = append(kept, ss)
				continue
			}
			if others && s.settleCounts(ss) {
				kept = append(kept, ss)
				continue
			}
			if others {
				s.forget(ss)
			}
		}
		ss.taken = false
	}
	clear(s.taken[len(kept):])
	s.taken = kept
}

// fireWork fires the timers that are due, one after the other in the order of their
// times; next is when the next one will be. Called with mu held.
func (s *Scheduler) fireWork(now time.Time) (work func(), next time.Time) {
	if s.firing {
		return nil, time.Time{}
	}
	var keys []host.SessionKey
	for len(keys) < fireBatch {
		key, due, ok := s.timers.First()
		if !ok {
			break
		}
		if due > now.UnixNano() {
			next = time.Unix(0, due)
			break
		}
		if ss := s.sessions[key]; s.loaders > 0 && ss != nil && ss.taken {
			break // one that was due before it may be loading still
		}
		s.timers.Remove(key)
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, next
	}
	s.firing = true
	return func() {
		for _, key := range keys {
			s.fire(key)
		}
		s.mu.Lock()
		s.firing = false
		s.mu.Unlock()
		s.signal()
	}, next
}

// due notes that an unloaded session has something to do at a time. Called
// with mu held.
func (s *Scheduler) due(at int64) {
	if at != host.WakeNever && (s.nextDue == host.WakeNever || at < s.nextDue) {
		s.nextDue = at
	}
}

// askDue asks the store which sessions have something to do: Step has them
// loaded, a few side by side, and nobody asks again before they are. Sessions
// that leave memory meanwhile note their own time: it must not be lost.
func (s *Scheduler) askDue() {
	until := s.now()
	s.mu.Lock()
	limit := len(s.sessions) + s.calls.book.Sessions() + len(s.quarantine) + dueBatch
	s.mu.Unlock()
	keys, next, err := s.cfg.Store.Due(context.Background(), until, limit)
	if err != nil {
		s.cfg.Log.Error("the store does not say which sessions are due", "error", err)
		next = until + int64(time.Second)
	}
	if len(keys) == limit {
		next = until // there may be more
	}
	s.mu.Lock()
	s.due(next)
	for _, key := range keys {
		if s.isolated(key) != nil {
			s.due(s.quarantine[key].until.UnixNano())
			continue
		}
		if s.sessions[key] == nil && s.calls.book.Of(key) == 0 { // else it is known what it waits for
			s.toLoad = append(s.toLoad, key)
		}
	}
	s.asking = len(s.toLoad) > 0
	s.mu.Unlock()
	s.signal()
}

// loadDue loads a session, which begins what it has to do.
func (s *Scheduler) loadDue(key host.SessionKey) {
	s.ensure(key, "a session that is due cannot be loaded", func(ss *session) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !ss.taken {
			ss.taken = true
			s.taken = append(s.taken, ss)
		}
	})
	s.mu.Lock()
	s.loaders--
	s.asking = s.loaders > 0 || len(s.toLoad) > 0
	s.mu.Unlock()
	s.signal()
}
