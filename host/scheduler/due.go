package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// Sessions that have something to do by themselves, and are not in memory, are named by the
// store: their timers are due, or they had attempts open when the previous server ended. After
// a long time down there may be any number of them. So they are admitted in the order of
// their times, and no more than Config.DueAtOnce at a time. The next one is admitted when one
// is through: it has nothing to do at this time, and all of it is durable. It leaves memory
// at once while others wait. A client that asks for something waits at most for those that
// are admitted, and not for all that are due.
//
//	the store says who is due, in order -> toLoad -> load, loadAtOnce side by side
//	     -> admitted -> their timers fire, in order -> through -> out of memory
//
// If none of them gets through, one more is admitted now and then: guests that compute for
// long, or whose tenant is over its budget, must not keep the timers of others waiting
// for ever.

// dueBatch is how many sessions with something to do are asked for at once, beside
// those that are in memory, and loadAtOnce how many of them are loaded side by side.
const (
	dueBatch   = 256
	loadAtOnce = 4
)

// dueTrickle is how often a session is admitted beyond Config.DueAtOnce: mostly, and while
// cores are idle.
const (
	dueTrickle     = 100 * time.Millisecond
	dueTrickleIdle = 10 * time.Millisecond
)

// fireBatch bounds the timers that fire before anything else is looked at.
const fireBatch = 256

// dues are sessions that have something to do by themselves: those in memory by their
// timers, the others by the store. Scheduler.mu guards it.
//
// A session that the store has named is in toLoad, or is being loaded, or is in admitted until
// it is through; asking holds from the question to the store until toLoad is empty and
// nothing is being loaded. firing holds while timers fire, in the order of their times.
type dues struct {
	s            *Scheduler
	timers       fair.Timers[host.SessionKey] // when loaded sessions have something to do
	next         int64                        // when to ask the store for due sessions; host.WakeNever: not
	asking       bool
	toLoad       []host.SessionKey // due ones that the store named
	loaders      int               // how many of them are being loaded
	admitted     []*session        // those that were loaded and are not through
	lastAdmitted time.Time         // when the newest of them was
	firing       bool              // timers
}

// work forgets the sessions that are finished and loads others; next is when to look
// again, zero: when something happens. The caller holds mu.
func (d *dues) work(now time.Time) (work []func(), next time.Time) {
	d.letGo(now)
	// The timers of those that load now must fire before the timers of the next ones.
	if d.loaders > 0 {
		return nil, time.Time{}
	}
	for d.loaders < loadAtOnce && len(d.toLoad) > 0 {
		if len(d.admitted)+d.loaders >= d.s.cfg.DueAtOnce {
			if next = d.lastAdmitted.Add(d.trickle()); now.Before(next) {
				break
			}
			next = time.Time{}
		}
		key := d.toLoad[0]
		d.toLoad = d.toLoad[1:]
		d.loaders++
		d.lastAdmitted = now
		work = append(work, func() { d.load(key) })
	}
	if d.next == host.WakeNever || d.asking {
		return work, next
	}
	if d.next <= now.UnixNano() {
		d.asking, d.next = true, host.WakeNever
		return append(work, d.ask), next
	}
	if at := time.Unix(0, d.next); next.IsZero() || at.Before(next) {
		next = at
	}
	return work, next
}

func (d *dues) trickle() time.Duration {
	if d.s.cores.queue.Free() > 0 {
		return dueTrickleIdle
	}
	return dueTrickle
}

// letGo forgets the sessions that were admitted and are through. The caller holds mu.
func (d *dues) letGo(now time.Time) {
	if len(d.admitted) == 0 || d.firing {
		return
	}
	durable := d.s.cfg.Journal.Durable()
	others := d.asking || d.next != host.WakeNever && d.next <= now.UnixNano() // may wait
	kept := d.admitted[:0]
	for _, ss := range d.admitted {
		if d.s.table.sessions[ss.key] == ss {
			// Without pins nobody else looks at what ss.mu guards.
			if ss.pins > 0 || ss.lastPos > durable || d.timers.DueAt(ss.key, now.UnixNano()) {
				kept = append(kept, ss)
				continue
			}
			if others && d.s.table.settleCounts(ss) {
				kept = append(kept, ss)
				continue
			}
			if others {
				d.s.table.forget(ss)
			}
		}
		ss.due = false
	}
	clear(d.admitted[len(kept):])
	d.admitted = kept
}

// fireWork fires the timers that are due, one after the other in the order of their
// times; next is when the next one will be. The caller holds mu.
func (d *dues) fireWork(now time.Time) (work []func(), next time.Time) {
	if d.firing {
		return nil, time.Time{}
	}
	var keys []host.SessionKey
	for len(keys) < fireBatch {
		key, due, ok := d.timers.First()
		if !ok {
			break
		}
		if due > now.UnixNano() {
			next = time.Unix(0, due)
			break
		}
		if ss := d.s.table.sessions[key]; d.loaders > 0 && ss != nil && ss.due {
			break // one that was due before it may be loading still
		}
		d.timers.Remove(key)
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, next
	}
	d.firing = true
	return []func(){func() {
		for _, key := range keys {
			d.fire(key)
		}
		d.s.mu.Lock()
		d.firing = false
		d.s.mu.Unlock()
		d.s.signal()
	}}, next
}

// note notes that an unloaded session has something to do at a time. The caller
// holds mu.
func (d *dues) note(at int64) {
	if at != host.WakeNever && (d.next == host.WakeNever || at < d.next) {
		d.next = at
	}
}

// ask asks the store which sessions have something to do: Step has them
// loaded, a few side by side, and nobody asks again before they are. Sessions
// that leave memory meanwhile note their own time: it must not be lost.
func (d *dues) ask() {
	until := d.s.now()
	d.s.mu.Lock()
	limit := len(d.s.table.sessions) + d.s.calls.Sessions() + d.s.table.quarantine.Len() + dueBatch
	d.s.mu.Unlock()
	keys, next, err := d.s.cfg.Store.Due(context.Background(), until, limit)
	if err != nil {
		d.s.cfg.Log.Error("the store does not say which sessions are due", "error", err)
		next = until + int64(time.Second)
	}
	if len(keys) == limit {
		next = until // there may be more
	}
	d.s.mu.Lock()
	d.note(next)
	for _, key := range keys {
		// A session in quarantine is due again when it may be tried again.
		if until, ok := d.s.table.quarantine.Until(key); ok {
			d.note(until.UnixNano())
			continue
		}
		if d.s.table.sessions[key] == nil && d.s.calls.Of(key) == 0 { // else it is known what it waits for
			d.toLoad = append(d.toLoad, key)
		}
	}
	d.asking = len(d.toLoad) > 0
	d.s.mu.Unlock()
	d.s.signal()
}

// load loads a session, which begins what it has to do.
func (d *dues) load(key host.SessionKey) {
	d.s.table.ensure(key, "a session that is due cannot be loaded", func(ss *session) {
		d.s.mu.Lock()
		defer d.s.mu.Unlock()
		if !ss.due {
			ss.due = true
			d.admitted = append(d.admitted, ss)
		}
	})
	d.s.mu.Lock()
	d.loaders--
	d.asking = d.loaders > 0 || len(d.toLoad) > 0
	d.s.mu.Unlock()
	d.s.signal()
}

// setTimer notes when a loaded session's next timer is due.
func (d *dues) setTimer(key host.SessionKey, at int64) {
	d.s.mu.Lock()
	earlier := d.timers.Set(key, at)
	d.s.mu.Unlock()
	if earlier {
		d.s.signal()
	}
}

// fire ticks a session's timers that are due.
func (d *dues) fire(key host.SessionKey) {
	d.s.table.ensure(key, "a timer cannot fire", func(ss *session) {
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
	ss.s.dues.setTimer(ss.key, ss.eng.NextTimer())
}
