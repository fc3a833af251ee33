// Package due takes up the sessions that have something to do by themselves: it fires the
// timers of those in memory, and has others loaded, in order and so many at a time.
//
// It must not depend on how a session is loaded, or what its timers do.
package due

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// Sessions that have something to do by themselves, and are not in memory, are named by the
// store: their timers are due, or they had attempts open when the previous server ended. After
// a long time down there may be any number of them. So they are admitted in the order of
// their times, and no more than Config.AtOnce at a time. The next one is admitted when one
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

// batch is how many sessions with something to do are asked for at once, beside
// those that are in memory, and loadAtOnce how many of them are loaded side by side.
const (
	batch      = 256
	loadAtOnce = 4
)

// trickleBusy is how often a session is admitted beyond Config.AtOnce: mostly, and while
// cores are idle.
const (
	trickleBusy = 100 * time.Millisecond
	trickleIdle = 10 * time.Millisecond
)

// fireBatch bounds the timers that fire before anything else is looked at.
const fireBatch = 256

// Sessions are the sessions of the host. S is a session in memory. The caller of all methods
// but Load and Fire holds the lock.
type Sessions[S comparable] interface {
	// Find returns a session in memory.
	Find(key host.SessionKey) (s S, ok bool)
	// Known is the number of sessions that the store names although it need not, and Awaited
	// reports whether a session is one of those: the host knows what it waits for.
	Known() int
	Awaited(key host.SessionKey) bool
	// Until returns when a session that must not be loaded now may be loaded again.
	Until(key host.SessionKey) (at time.Time, ok bool)
	// Busy reports whether somebody uses a session, or not all of it is durable.
	Busy(s S) bool
	// Leave has a session leave memory that is not busy; false: it has something to write
	// before.
	Leave(s S) bool
	// CoresIdle reports whether there is a core that nobody has.
	CoresIdle() bool

	// Load loads a session, which begins what it has to do, and calls use with the session.
	Load(key host.SessionKey, use func(S))
	// Fire fires the timers of a session that are due, and loads the session if need be.
	Fire(key host.SessionKey)
}

// Store is the part of host.Store that says who is due.
type Store interface {
	Due(ctx context.Context, until int64, limit int) (due []host.SessionKey, next int64, err error)
}

// Config says what [Dues] work with. All fields must be set.
type Config[S comparable] struct {
	Sessions Sessions[S]
	Store    Store
	Lock     sync.Locker
	Now      func() int64 // Unix nanoseconds
	Signal   func()       // says that there is work
	AtOnce   int          // sessions that are taken up at a time
	Log      *slog.Logger
}

// Dues are sessions that have something to do by themselves: those in memory by their
// timers, the others by the store. The lock guards them.
//
// A session that the store has named is in toLoad, or is being loaded, or is in admitted until
// it is through; asking holds from the question to the store until toLoad is empty and
// nothing is being loaded. firing holds while timers fire, in the order of their times.
type Dues[S comparable] struct {
	cfg          Config[S]
	timers       fair.Timers[host.SessionKey] // when loaded sessions have something to do
	next         int64                        // when to ask the store for due sessions; host.WakeNever: not
	asking       bool
	toLoad       []host.SessionKey     // due ones that the store named
	loaders      int                   // how many of them are being loaded
	admitted     []taken[S]            // those that were loaded and are not through
	in           map[host.SessionKey]S // the same
	lastAdmitted time.Time             // when the newest of them was
	firing       bool                  // timers
}

// taken is a session that was admitted.
type taken[S comparable] struct {
	key host.SessionKey
	s   S
}

// Init begins with nothing: Note says when to ask the store first.
func (d *Dues[S]) Init(cfg Config[S]) {
	*d = Dues[S]{cfg: cfg, next: host.WakeNever, in: map[host.SessionKey]S{}}
}

// Left names what is in progress, for tests; "": nothing. The caller holds the lock.
func (d *Dues[S]) Left() string {
	if len(d.admitted) == 0 && !d.firing && !d.asking && d.loaders == 0 && len(d.toLoad) == 0 {
		return ""
	}
	return fmt.Sprintf("%d sessions are admitted, firing %v, asking %v, %d loaders, %d to load", len(d.admitted), d.firing, d.asking, d.loaders, len(d.toLoad))
}

// Work forgets the sessions that are finished and loads others; next is when to look
// again, zero: when something happens. The caller holds the lock.
func (d *Dues[S]) Work(now time.Time) (work []func(), next time.Time) {
	d.letGo(now)
	// The timers of those that load now must fire before the timers of the next ones.
	if d.loaders > 0 {
		return nil, time.Time{}
	}
	for d.loaders < loadAtOnce && len(d.toLoad) > 0 {
		if len(d.admitted)+d.loaders >= d.cfg.AtOnce {
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

func (d *Dues[S]) trickle() time.Duration {
	if d.cfg.Sessions.CoresIdle() {
		return trickleIdle
	}
	return trickleBusy
}

// letGo forgets the sessions that were admitted and are through. The caller holds the lock.
func (d *Dues[S]) letGo(now time.Time) {
	if len(d.admitted) == 0 || d.firing {
		return
	}
	at := now.UnixNano()
	others := d.asking || d.next != host.WakeNever && d.next <= at // may wait
	kept := d.admitted[:0]
	for _, it := range d.admitted {
		if now, ok := d.cfg.Sessions.Find(it.key); ok && now == it.s {
			if d.cfg.Sessions.Busy(it.s) || d.timers.DueAt(it.key, at) || others && !d.cfg.Sessions.Leave(it.s) {
				kept = append(kept, it)
				continue
			}
		}
		if d.in[it.key] == it.s {
			delete(d.in, it.key)
		}
	}
	clear(d.admitted[len(kept):])
	d.admitted = kept
}

// FireWork fires the timers that are due, one after the other in the order of their
// times; next is when the next one will be. The caller holds the lock.
func (d *Dues[S]) FireWork(now time.Time) (work []func(), next time.Time) {
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
		if d.loaders > 0 && d.isAdmitted(key) {
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
			d.cfg.Sessions.Fire(key)
		}
		d.cfg.Lock.Lock()
		d.firing = false
		d.cfg.Lock.Unlock()
		d.cfg.Signal()
	}}, next
}

// Note notes that an unloaded session has something to do at a time. The caller
// holds the lock.
func (d *Dues[S]) Note(at int64) {
	if at != host.WakeNever && (d.next == host.WakeNever || at < d.next) {
		d.next = at
	}
}

// ask asks the store which sessions have something to do: Step has them
// loaded, a few side by side, and nobody asks again before they are. Sessions
// that leave memory meanwhile note their own time: it must not be lost.
func (d *Dues[S]) ask() {
	until := d.cfg.Now()
	d.cfg.Lock.Lock()
	limit := d.cfg.Sessions.Known() + batch
	d.cfg.Lock.Unlock()
	keys, next, err := d.cfg.Store.Due(context.Background(), until, limit)
	if err != nil {
		d.cfg.Log.Error("the store does not say which sessions are due", "error", err)
		next = until + int64(time.Second)
	}
	if len(keys) == limit {
		next = until // there may be more
	}
	d.cfg.Lock.Lock()
	d.Note(next)
	for _, key := range keys {
		// A session in quarantine is due again when it may be tried again.
		if until, ok := d.cfg.Sessions.Until(key); ok {
			d.Note(until.UnixNano())
			continue
		}
		if !d.cfg.Sessions.Awaited(key) {
			d.toLoad = append(d.toLoad, key)
		}
	}
	d.asking = len(d.toLoad) > 0
	d.cfg.Lock.Unlock()
	d.cfg.Signal()
}

// load has a session loaded that is due.
func (d *Dues[S]) load(key host.SessionKey) {
	d.cfg.Sessions.Load(key, func(s S) {
		d.cfg.Lock.Lock()
		defer d.cfg.Lock.Unlock()
		if was, ok := d.in[key]; !ok || was != s {
			d.in[key] = s
			d.admitted = append(d.admitted, taken[S]{key, s})
		}
	})
	d.cfg.Lock.Lock()
	d.loaders--
	d.asking = d.loaders > 0 || len(d.toLoad) > 0
	d.cfg.Lock.Unlock()
	d.cfg.Signal()
}

// isAdmitted reports whether a session in memory was admitted and is not through. The caller
// holds the lock.
func (d *Dues[S]) isAdmitted(key host.SessionKey) bool {
	s, ok := d.cfg.Sessions.Find(key)
	was, admitted := d.in[key]
	return ok && admitted && was == s
}

// SetTimer notes when a loaded session's next timer is due.
func (d *Dues[S]) SetTimer(key host.SessionKey, at int64) {
	d.cfg.Lock.Lock()
	earlier := d.timers.Set(key, at)
	d.cfg.Lock.Unlock()
	if earlier {
		d.cfg.Signal()
	}
}

// Set notes when a session has something to do next. The caller holds the lock, and steps.
func (d *Dues[S]) Set(key host.SessionKey, at int64) { d.timers.Set(key, at) }

// Remove takes the timer of a session back. The caller holds the lock.
func (d *Dues[S]) Remove(key host.SessionKey) { d.timers.Remove(key) }
