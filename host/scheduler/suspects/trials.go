package suspects

import (
	"math"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/work"
)

// After a death the suspects are tried one after the other, before any other guest,
// load or call begins. Reads of the store work meanwhile, and starts are taken.
//
//	waiting -> now: [pause] -> load the session -> run alone -> came back, or window over
//
// A suspect that has come back is no longer suspected. Who still runs at the end of the window
// continues beside the others when the phase is over.

// Windows in which a suspect runs alone, by the deaths at which it was noted: the first
// ones are short, as most suspects only happened to run. From then on it runs until it
// comes back, for the time on a core that its limits give it.
//
// The window of a guest is work, so that a guest which gets little of a busy machine gets
// as far in it as another: units, which it burns and which the host counts for it. Only a
// guest that does not get that far in patience times the window is let go without it.
// A resource call computes little. Its windows are times, and each of them beyond the
// first ones is twice the one before: a call that ends the server late is alone one day.
var windows = []time.Duration{250 * time.Millisecond, 2 * time.Second}

const (
	patience   = 20
	callWindow = 10 * time.Second // the first one beyond windows
	mostWindow = 10 * time.Minute // of a call
	// lookAgain is how soon a window is looked at again, at least.
	lookAgain = 10 * time.Millisecond
)

// pauses are the control pauses before a suspect runs alone that has died alone so
// often.
var pauses = []time.Duration{0, 200 * time.Millisecond, time.Second}

// Host does what trials want done. Its methods are called under the caller's lock.
type Host[A any] interface {
	// Phase notes what the server does from now on.
	Phase(p deaths.CorePhase)
	// Idle reports whether nothing has a token.
	Idle() bool
	Durable() uint64
	// Load gives work that loads the suspect's session, and ends with a call of Loaded.
	Load(key deaths.CoreKey) (work func())
	// RunAlone gives work that runs an attempt at once, and the most time that it may have a
	// core.
	RunAlone(a A) (work func(), most time.Duration)
	// CallAlone gives work that makes the suspect's call; nil if the call cannot begin yet.
	// there is false if nothing waits for the call.
	CallAlone(key deaths.CoreKey) (work func(), there bool)
	// Awaits reports whether the suspect's attempt waits until it is durable.
	Awaits(key deaths.CoreKey) bool
	// Release gives an attempt back that was not run.
	Release(a A)
	// Acquit forgets the suspect; Blame does so, too, once its run is blocked.
	Acquit(key deaths.CoreKey)
	Blame(key deaths.CoreKey)
}

// Trials is the phase in which suspects are tried. A is what runs a suspect's step. All
// methods may be called on nil trials: the phase is over.
type Trials[A any] struct {
	host    Host[A]
	list    *List
	waiting []deaths.CoreKey
	now     *trial
	// held are attempts of suspects that are ready to run.
	held map[deaths.CoreKey]A
	over chan struct{} // closed at the end of the phase
}

// Try makes the trials of suspects, in this order.
func Try[A any](h Host[A], list *List, keys []deaths.CoreKey) *Trials[A] {
	return &Trials[A]{host: h, list: list, waiting: keys, held: map[deaths.CoreKey]A{}, over: make(chan struct{})}
}

// Over is closed at the end of the phase.
func (t *Trials[A]) Over() <-chan struct{} { return t.over }

// Left is the number of suspects that are not tried yet, the one that is tried now included.
func (t *Trials[A]) Left() int {
	if t == nil {
		return 0
	}
	return len(t.waiting) + 1
}

// Stages of a trial.
type stage int

const (
	pausing stage = iota
	loading
	preparing // its module's code is
	ready
	running
	blocking // its run: the trial ends when that is durable
)

// trial is a suspect that is tried now.
type trial struct {
	key   deaths.CoreKey
	stage stage
	until time.Time // of a pause, or of the window, whatever is left of the units
	left  uint64    // units of the window; those of a call do not become less
	pos   uint64    // of the entry that blocks the run
	over  bool      // it came back, or there is nothing to try
}

func (t *trial) is(key deaths.CoreKey) bool { return t != nil && t.key == key }

// windowOver reports whether the window is over, and when to look again.
func (t *trial) windowOver(now time.Time) (over bool, next time.Time) {
	// The units cannot run out earlier than a core can do them.
	soonest := now.Add(max(time.Duration(t.left/work.UnitsPerNanosecond), lookAgain))
	if t.until.Before(soonest) {
		soonest = t.until
	}
	return t.left == 0 || !now.Before(t.until), soonest
}

// Keeps takes an attempt that is ready, if it is of a suspect whose turn has not come
// or comes now.
func (t *Trials[A]) Keeps(key deaths.CoreKey, a A) bool {
	if t == nil {
		return false
	}
	mine := t.now.is(key) && t.now.stage < running
	// The attempt waited for its code, and is back.
	if mine && t.now.stage == preparing {
		t.now.stage = ready
	}
	for i := 0; i < len(t.waiting) && !mine; i++ {
		mine = t.waiting[i] == key
	}
	if mine {
		t.held[key] = a
	}
	return mine
}

// Bars reports whether a session may not be loaded now.
func (t *Trials[A]) Bars(key host.SessionKey) bool {
	return t != nil && (t.now == nil || t.now.stage == pausing || key != host.SessionKey{Tenant: t.now.key.Tenant, Session: t.now.key.Session})
}

// Prepares notes that an attempt waits for its module's code, and comes back.
func (t *Trials[A]) Prepares(key deaths.CoreKey) {
	if t.Runs(key) {
		t.now.stage = preparing
	}
}

// Runs reports whether an attempt is the one that runs alone.
func (t *Trials[A]) Runs(key deaths.CoreKey) bool {
	return t != nil && t.now != nil && t.now.stage == running && t.now.is(key)
}

// Used counts units that the work used which runs alone.
func (t *Trials[A]) Used(units uint64) { t.now.left -= min(t.now.left, units) }

// Came notes that a suspect has come back to the host, and reports whether its trial was
// in progress.
func (t *Trials[A]) Came(key deaths.CoreKey) bool {
	if t == nil || !t.now.is(key) {
		return false
	}
	t.now.over = true
	return true
}

// Found says what Load has found: there is false if the suspect no longer exists;
// with blame its run was blocked by an entry at pos. The trial may be over meanwhile.
func (t *Trials[A]) Found(key deaths.CoreKey, blame, there bool, pos uint64) {
	if t == nil || !t.now.is(key) {
		return // it came back while it was loaded
	}
	now := t.now
	switch {
	case blame:
		now.stage, now.pos = blocking, pos
	// The journal does not have the work: the client begins the same step again, perhaps.
	// The list remembers the likeness of the step for that.
	case !there:
		now.over = true
		t.list.Gone(key)
		t.host.Acquit(key)
	default:
		now.stage = ready
	}
}

// Work continues the trials. It returns what to do now, when to look again, and whether
// the phase has ended.
func (t *Trials[A]) Work(at time.Time) (work []func(), next time.Time, over bool) {
	for {
		now := t.now
		switch {
		case now == nil && len(t.waiting) == 0:
			close(t.over)
			return work, time.Time{}, true
		case now == nil:
			t.begin(at)
		case now.over:
			t.end()
		case now.stage == pausing && at.Before(now.until):
			return work, now.until, false
		// After the pause a death tells against the suspect, which runs alone from here on.
		case now.stage == pausing:
			t.host.Phase(deaths.PhaseApart)
			now.stage = loading
			return append(work, t.host.Load(now.key)), time.Time{}, false
		// An earlier suspect that continues beside the others gives its token up soon.
		case now.stage == ready && t.host.Idle():
			if run := t.run(now, at); run != nil {
				_, next = now.windowOver(at)
				return append(work, run), next, false
			}
			if now.stage == ready && !now.over {
				return work, time.Time{}, false // it cannot begin before it is durable
			}
		case now.stage == running:
			if now.over, next = now.windowOver(at); !now.over {
				return work, next, false
			}
		// The blame is forgotten only when the block of the run is durable.
		case now.stage == blocking && now.pos <= t.host.Durable():
			t.host.Blame(now.key)
			now.over = true
		default:
			return work, time.Time{}, false
		}
	}
}

// begin begins the next trial, with a pause if its suspect has died alone before.
func (t *Trials[A]) begin(at time.Time) {
	t.now, t.waiting = &trial{key: t.waiting[0]}, t.waiting[1:]
	s := t.list.Find(t.now.key)
	if s == nil {
		t.now.over = true // it has come back by itself
		return
	}
	// A blamed suspect does not run again, so no pause is needed.
	if pause := pauses[min(int(s.Alone), len(pauses)-1)]; pause > 0 && !s.Blamed {
		t.host.Phase(deaths.PhaseControl)
		t.now.until = at.Add(pause)
	}
}

// end forgets the suspect that was tried.
func (t *Trials[A]) end() {
	key := t.now.key
	t.now = nil
	if a, ok := t.held[key]; ok { // it was not run: nobody wants it, or it waits as others do
		delete(t.held, key)
		t.host.Release(a)
	}
}

// run begins the work of a suspect alone; nil if it cannot begin yet, or no
// longer exists.
func (t *Trials[A]) run(now *trial, at time.Time) (run func()) {
	noted := int(t.list.Find(now.key).Noted)
	var window time.Duration // 0: as long as the work may take
	if noted <= len(windows) {
		window = windows[max(noted, 1)-1]
	}
	if now.key.Kind == deaths.CoreRun {
		a, ok := t.held[now.key]
		if !ok {
			// An attempt that is not ready waits for something, so it has come back to the host.
			if !t.host.Awaits(now.key) {
				t.host.Acquit(now.key) // it waits for something: it came back
			}
			return nil
		}
		delete(t.held, now.key)
		var most time.Duration
		// A guest has no more time than its limits give it, whatever the window.
		if run, most = t.host.RunAlone(a); window == 0 || window > most {
			window = most
		}
		now.left, now.until = uint64(window)*work.UnitsPerNanosecond, at.Add(patience*window)
	} else {
		var there bool
		if run, there = t.host.CallAlone(now.key); !there {
			t.host.Acquit(now.key)
		}
		if run == nil {
			return nil
		}
		if window == 0 {
			window = min(callWindow<<min(noted-len(windows)-1, 10), mostWindow)
		}
		now.left, now.until = math.MaxInt64, at.Add(window)
	}
	now.stage = running
	return run
}
