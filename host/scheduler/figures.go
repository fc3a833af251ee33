package scheduler

import (
	"fmt"
	"time"

	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/fair"
)

// Counters counts the scheduler's work, for tests and metrics.
type Counters struct {
	Attempts  uint64 // runs of guests
	Conflicts uint64 // commits that lost
	Parks     uint64 // waits for a write ticket
	Replayed  uint64 // runs of guests beyond an attempt's first
	Loaded    uint64 // sessions folded from the store
	Evicted   uint64
	Suspended uint64 // runs of guests that ended in a wait or a sleep
	Yields    uint64 // tokens given up in mid-run
	Holds     uint64 // times that a tenant was over its fuel budget
	Calls     uint64 // of resources, made
	Backoffs  uint64 // runs of guests that the host could not do, and tried again later
	Lined     uint64 // starts and events that waited in line
	Shed      uint64 // starts and events that there was no room for
	Blamed    uint64 // runs blocked and sessions quarantined, as the server ends by them
	Unnoted   uint64 // work that held a core and could not be noted; see Notes
	admission.Counts
	Underpriced uint64 // host calls that took a core far longer than they were charged for
	OwnMost     uint64 // the most units of work on a state that one tick did under its session's mutex
	CodeWaits   uint64 // attempts that gave their token back, as their module's code was not in memory
}

// Load is the scheduler's work at a moment.
type Load struct {
	Sessions int // in memory
	InLine   int // starts and events that wait until others are through
	Ready    int // attempts that wait for a token
	Running  int // attempts that have one
	Cores    int // tokens
	Spared   int // tokens beside these that nobody gets for a while; see Reduced
	Suspects int // what held a core when the server ended, and has not come back since
	// Starts is the number of runs that never had a core, Demand what accepted runs
	// still need, in units, and Speed what all cores get done in a second.
	Starts int
	Demand int64
	Speed  float64
}

// Load returns the work that the scheduler has at the moment.
func (s *Scheduler) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Load{Sessions: len(s.table.sessions), InLine: s.gate.Waiting(), Ready: s.cores.queue.Ready(), Running: s.cores.queue.Size() - s.cores.queue.Free(), Cores: s.cores.queue.Size(), Spared: s.cores.spare.tokens, Suspects: s.suspicion.list.Len()}
	l.Starts, l.Demand, l.Speed = s.starts.Demand.Starts(), s.starts.Demand.Units(), s.cores.queue.Rate()
	return l
}

// Counters gives the counters.
func (s *Scheduler) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters
	c.Counts, c.Lined, c.Shed, c.Calls = s.starts.Counts, s.gate.Lined, s.gate.Shed, s.calls.Made
	c.Unnoted = s.cfg.Notes.Unnoted()
	return c
}

// StartedAfter returns how the previous server ended: 0 cleanly, or it is not known how; 1
// killed for an unknown reason; 2 for its memory; 3 by a crash.
func (s *Scheduler) StartedAfter() int {
	return map[deaths.DeathClass]int{deaths.DeathUnknown: 1, deaths.DeathMemory: 2, deaths.DeathCrash: 3}[s.death]
}

// Loaded is the number of sessions in memory.
func (s *Scheduler) Loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table.sessions)
}

// Busy reports whether attempts wait for a run token that are about to add to the
// journal, as their turn comes soon.
func (s *Scheduler) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cores.queue.Soon()
}

// Usage gives what a tenant has used; nothing for one that has run nothing.
func (s *Scheduler) Usage(tenant string) fair.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cores.budgets.Usage(tenant)
}

// Waits are how long a new run surely waits for its first core: one of a tenant that has
// nothing to do, and one of the tenant that has the most. What a run takes is what runs
// took so far.
func (s *Scheduler) Waits() (idle, busiest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts.Waits()
}

// Reduced says in what way, and why, less is done at a time than could be; "" if all is.
func (s *Scheduler) Reduced() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cores.spare.until.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d of %d steps run at a time and half of the instances are kept, until %s: the system has ended the server twice for its memory",
		s.cores.queue.Size(), s.cores.queue.Size()+s.cores.spare.tokens, s.cores.spare.until.UTC().Format(time.RFC3339))
}

// Reading tells whether the store can be read: not if more than a tenth of what was
// read in the last ten seconds, or in the ten before them, failed.
func (s *Scheduler) Reading() error {
	if tries, failed := s.reads.Counts(s.now()); failed*10 > tries {
		return fmt.Errorf("the store does not read: %d of %d reads failed", failed, tries)
	}
	return nil
}

// Health tells whether the server can serve.
func (s *Scheduler) Health() error {
	if err := s.cfg.Journal.Err(); err != nil {
		return fmt.Errorf("the store does not work: %w", err)
	}
	return nil
}
