package sandbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
)

// unitsIn3Nanos: units are estimated from time until guests are metered. The
// default fuel of an invocation, 10^10 units, stands for about 3 s of ordinary
// code.
const unitsIn3Nanos = 10

// watch is the stopwatch of one call into a guest. It cancels the call when
// the guest has held its core for too long; the time that it waited for its
// run token does not count. The timer's goroutine shares it with the guest's.
type watch struct {
	limit  time.Duration
	start  time.Time
	cancel context.CancelFunc

	waited  atomic.Int64 // nanoseconds spent waiting for the token
	waiting atomic.Int64 // when the present wait began, as elapsed() + 1; 0: none
	over    atomic.Bool  // it has cancelled the call
	ended   atomic.Bool
	// replaying: the guest is on its way to where an earlier run came to, which
	// takes as long as it takes.
	replaying atomic.Bool
}

// newWatch starts a watch; its timer is to be stopped by stop.
func newWatch(limit time.Duration, cancel context.CancelFunc) *watch {
	return &watch{limit: limit, start: time.Now(), cancel: cancel}
}

// arm starts the timer and returns what stops it.
func (w *watch) arm() (stop func()) {
	timer := time.AfterFunc(w.limit, w.fire)
	return func() {
		w.ended.Store(true)
		timer.Stop()
	}
}

// elapsed is the time since the start.
func (w *watch) elapsed() time.Duration { return time.Since(w.start) }

// checkpoint calls the token's Checkpoint, whose time does not count.
func (w *watch) checkpoint(token host.Token, units uint64) error {
	began := w.elapsed()
	w.waiting.Store(int64(began) + 1)
	err := token.Checkpoint(units)
	w.waited.Add(int64(w.elapsed() - began))
	w.waiting.Store(0)
	return err
}

// held is how long the guest has had its core.
func (w *watch) held() time.Duration {
	now := w.elapsed()
	held := now - time.Duration(w.waited.Load())
	if began := w.waiting.Load(); began > 0 {
		held -= now - time.Duration(began-1)
	}
	return held
}

// restart forgets the time held so far. Called on the guest's goroutine.
func (w *watch) restart() {
	w.waited.Store(int64(w.elapsed()))
	w.replaying.Store(false)
}

// fire runs when the limit may be over. A timer that it starts anew outlives
// the call, and then does nothing.
func (w *watch) fire() {
	if w.ended.Load() {
		return
	}
	if w.replaying.Load() {
		time.AfterFunc(w.limit, w.fire)
		return
	}
	if left := w.limit - w.held(); left > 0 {
		time.AfterFunc(left, w.fire)
		return
	}
	w.over.Store(true)
	w.cancel()
}

// units estimates what a guest burns in the given time.
func units(d time.Duration) uint64 {
	return uint64(max(d, 0)) * unitsIn3Nanos / 3
}
