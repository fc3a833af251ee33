package scheduler

import (
	"runtime"
	"time"

	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/work"
)

// token is the right of one run of a guest to use a core; it implements
// [host.Token]. The goroutine of the run uses it.
//
// What the guest burns is counted here first, and booked to its tenant, under
// the scheduler's mutex, a turn at a time: a guest that has its core for itself
// pays no more than an addition at its checkpoints.
type token struct {
	s      *Scheduler
	at     *attempt // nil: it is of a rehearsal
	tenant string
	due    uint64 // units to burn before they are booked
	long   bool   // the guest has computed for more than a turn; the queue knows

	burnt uint64 // units of this run, booked or not
	units uint64 // not booked yet
	calls uint64 // host calls of this run
	note  deaths.CoreNote
	slot  int    // of the note; below 0: there is none
	cost  uint64 // the same for work of the host
	ahead uint64 // on the clock already, of units that are still to come

	measures bool          // the core's time is read since began
	began    time.Duration // of the goroutine's thread
	since    uint64        // units that were counted since
}

// newToken makes the token of a run.
func (c *cores) newToken(tenant string, at *attempt) *token {
	t := &token{s: c.s, at: at, tenant: tenant, slot: -1}
	c.s.mu.Lock()
	t.due = c.budgets.Slice(tenant, fair.Turn)
	if at != nil {
		c.s.starts.Demand.Used(at.work, fair.StartCost)
	}
	c.queue.Speed.Book(fair.StartCost)
	c.s.mu.Unlock()
	return t
}

// Checkpoint counts what the guest burnt. It gives the token up, and waits for
// another, if another tenant is due, or this tenant is over its budget or over the
// journal's soft limit. The error is that of an edit that burnt too much.
func (t *token) Checkpoint(units uint64) error {
	t.burnt += units
	t.units += units
	t.cost += fair.CallCost
	if t.at != nil {
		t.s.cfg.Notes.At(t.slot, t.calls, t.burnt, "")
		if err := t.at.answers.Burn(units); err != nil {
			return err
		}
	}
	// Most checkpoints end here: the lock is taken once a turn.
	if t.units+t.cost < t.due {
		return nil
	}
	s := t.s
	s.cfg.Yield()
	s.mu.Lock()
	t.book()
	if !t.long {
		t.long = true
		s.cores.queue.Computes(t.tenant, 1)
	}
	over := s.cfg.Journal.OverSoftLimit
	wait := s.cores.queue.Held(t.tenant) || s.cores.queue.Due(t.tenant, over) || over(t.tenant)
	// While suspects are tried, others that still run stand aside, and the one that runs alone
	// has no turn to give up.
	if s.suspicion.trials != nil && !s.life.stopping {
		wait = !t.alone()
	}
	if !wait {
		s.mu.Unlock()
		return nil
	}
	back := make(chan struct{})
	t.at.serving().Wants(s.now())
	s.cores.queue.Push(t.tenant, readyItem{Of: t.at, Resume: back})
	s.cores.queue.Release(t.tenant)
	s.counters.Yields++
	s.mu.Unlock()
	s.signal()
	began := s.cfg.Now()
	t.leave()
	<-back
	if t.at != nil {
		t.enter()
		t.at.answers.Idle(s.cfg.Now().Sub(began))
	}
	return nil
}

// alone reports whether the token is of the suspect that runs alone. The caller holds mu.
func (t *token) alone() bool {
	trials := t.s.suspicion.trials
	return trials != nil && t.at != nil && trials.Runs(t.at.suspectKey())
}

// Work implements [host.Worker].
func (t *token) Work(units uint64) error {
	t.ahead += units
	return t.work(units)
}

// Worked implements [host.Worker]: of what Work counted so much becomes fuel.
func (t *token) Worked(charged uint64) {
	t.measured()
	t.ahead = min(t.ahead, charged)
}

// work counts what the host does for the token's run. It gives way as Checkpoint does.
// From the first time on until Worked the core's time is read as well, and whatever is
// more is on the tenant's clock.
func (t *token) work(units uint64) error {
	t.cost += units
	t.since += units
	t.measured()
	// The measurement begins after the checkpoint, in which others may have the core.
	err := t.Checkpoint(0)
	if cpu := t.s.cfg.CPU; cpu != nil {
		runtime.LockOSThread() // the clock is the thread's
		t.measures, t.began, t.since = true, cpu(), 0
	}
	return err
}

// measured puts on the clock what the core's time is more than the units.
func (t *token) measured() {
	if !t.measures {
		return
	}
	took := max(t.s.cfg.CPU()-t.began, 0)
	runtime.UnlockOSThread()
	t.measures = false
	// Less time than the units say gives nothing back: the prices are what the tenant pays.
	if units := uint64(took) * work.UnitsPerNanosecond; units > t.since {
		t.cost += units - t.since
	}
	if underpriced(took, t.since) {
		t.s.count(&t.s.counters.Underpriced)
	}
}

// underpriced reports whether work took a core far longer than the units say that were
// counted for it. What takes less than a millisecond says nothing: a core may do
// something else in between.
func underpriced(took time.Duration, units uint64) bool {
	const far = 10
	return took > time.Millisecond && uint64(took)*work.UnitsPerNanosecond > far*units
}

// acquire waits for a token in the tenant's queue, for a run that is none of an
// attempt's.
func (t *token) acquire() {
	s := t.s
	granted := make(chan struct{})
	s.mu.Lock()
	s.cores.queue.Push(t.tenant, readyItem{Resume: granted})
	s.mu.Unlock()
	s.signal()
	<-granted
}

// book charges the tenant. The caller holds mu.
func (t *token) book() {
	again := min(t.ahead, t.units) // Work has put these on the clock
	t.ahead -= again
	t.s.cores.charge(t.tenant, t.units, t.cost, again)
	if t.at != nil {
		t.s.starts.Demand.Used(t.at.work, t.units+t.cost-again)
	}
	t.s.cores.queue.Speed.Book(t.units + t.cost - again)
	if t.alone() {
		t.s.suspicion.trials.Used(t.units + t.cost - again)
	}
	t.units, t.cost = 0, 0
}

// release gives the token back for good, and wakes the runner if somebody waits
// for it: not every run of a guest ends in something that does. fuel is all
// that the run burnt, as far as the sandbox knows, and work what the host did for it.
func (t *token) release(fuel, work uint64) {
	t.cost += work
	// What the guest burnt since its last checkpoint is known only now.
	if fuel > t.burnt {
		t.units += fuel - t.burnt
	}
	s := t.s
	s.mu.Lock()
	t.book()
	if t.long {
		s.cores.queue.Computes(t.tenant, -1)
	}
	t.at.serving().Wants(s.now())
	s.cores.queue.Release(t.tenant)
	wanted := s.cores.queue.Ready() > 0 || s.suspicion.trials != nil
	s.mu.Unlock()
	if wanted {
		s.signal()
	}
}
