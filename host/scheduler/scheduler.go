// Package scheduler owns the sessions in memory: it feeds their ticks to the
// reducer, hands the entries to the journal, gives run tokens to attempts,
// fairly between tenants, fires timers, and loads and evicts sessions.
//
// It must not depend on HTTP, SQL or Wasm: guests, the journal, the store,
// resources and the answers to host calls are interfaces that it declares.
//
// Everything that needs no session in memory has a package of its own below: fair (tokens,
// budgets, timers, goroutines), admission (who may begin), due (sessions with something to do), calls (of resources),
// idempotency (repeated requests), suspects (what ends the process), quarantine, downtime,
// retention, tickets (for writes), versions (of workflows), handlers (their ids), mail
// (between sessions), requests (of clients; with edits of states, and continuation: forks,
// retries, exports, imports, migrations), refusal (how errors read), and history (what is
// stored, read without a session). Here are the sessions, their ticks and attempts, and components that
// join them to those packages:
//
//	table      sessions in memory, loaded and evicted       dues       timers, sessions that are due
//	cores      who gets a core                              calls      of resources
//	gate       starts and events of clients enter           suspicion  what is suspected, tried alone
//	starts     how long a start would wait                  life       of this server: marks, stopping
//
// # Protocol
//
// A session in memory is a reducer behind a mutex. Whatever changes it (a
// start, a post, a host call, a finish, a timer, a cancel) is one tick:
//
//	lock session
//	    result = reducer.Reduce(now, tick)      decide and fold
//	    journal.Append(entry)                   takes its queue position
//	    carry out commands                      ready attempts, end waiters
//	unlock
//	if a client waits: journal.Wait(position)   then answer
//
// Invariants:
//
//  1. Lock order: a session's mutex before the scheduler's, and that before the mutexes
//     of the idempotency keys, the reserved handlers, the mailer, the sweeper, the spaces of calls and the counts of reads,
//     which take none of these. No I/O and no guest under any of them.
//  2. Who uses a session pins it; a session without pins, open attempts and
//     un-durable entries may leave memory.
//  3. A guest runs only while its attempt holds a token. Tokens are as many as
//     cores. At its checkpoints it gives the token to a tenant that is due, and
//     waits while its own is over its fuel budget. Both are decided by the units
//     that guests burn, not by measured time.
//  4. An attempt is open from its worker slot to its finish entry. It runs as
//     often as it takes; each run starts pristine and replays its record. While
//     it waits for an event or sleeps it is closed, and its record alone is kept,
//     for as long as its session stays in memory.
//  5. A tick that ends a run is followed by those that begin queued runs, before
//     anybody else gets the session's mutex; so is the loading of a session.
//  6. A start or an event of a client is reduced when its tenant's turn has come, if
//     many want that at once; see package admission.
//  7. The scheduler owns no goroutine of its own: [Scheduler.Step] says what is
//     to be done, [Scheduler.Run] is the small runner that does it.
package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/due"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/mail"
	"github.com/weftrun/weft/host/scheduler/quarantine"
	"github.com/weftrun/weft/host/scheduler/requests"
	"github.com/weftrun/weft/host/scheduler/retention"
	"github.com/weftrun/weft/host/scheduler/runlog"
)

// Scheduler owns the sessions in memory. Its methods may be called from any
// goroutine.
type Scheduler struct {
	*requests.Service // carries out what clients ask of runs and sessions

	cfg     Config
	wake    chan struct{} // capacity 1: something for Run to look at
	workers *fair.Pool
	duties  []duty // of Step
	// stopped is closed when the scheduler begins to stop.
	stopped chan struct{}
	// base ends when the scheduler begins to stop: code is prepared in it.
	base    context.Context
	endBase context.CancelFunc
	boot    int64 // when this scheduler was made, Unix nanoseconds

	death deaths.DeathClass // how the process before ended

	past     *history.Reader
	keys     *idempotency.Keys      // of requests that may be repeated
	reserved *handlers.Reservations // ids of handlers that are about to start
	old      *retention.Sweeper

	mailer mail.Mailer // messages between sessions

	log   runlog.Logger
	reads quarantine.Reads // has a mutex of its own

	mu        sync.Mutex         // guards what follows, and what its types say
	table     table              // sessions in memory
	cores     cores              // who gets a core
	gate      admission.Gate     // for starts and events of clients
	starts    admission.Starts   // which starts are admitted
	dues      due.Dues[*session] // when sessions have something to do by themselves
	calls     calls.Caller       // of resources; has a part that mu does not guard
	suspicion suspicion          // of what ends the process
	life      life               // of this server
	counters  Counters
}

// History gives what answers questions about runs and sessions from what is stored.
func (s *Scheduler) History() *history.Reader { return s.past }

// now is the time, which is never before the boot, though the clock may be set back:
// an entry from before the boot is an earlier server's (see session.recover).
func (s *Scheduler) now() int64 { return max(s.cfg.Now().UnixNano(), s.boot) }

func (s *Scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// duty is a part of what Step does. do returns the work of this moment, and when to look again;
// zero: when something happens. Its caller holds mu.
type duty struct {
	do     func(now time.Time) (work []func(), next time.Time)
	always bool // also while suspects are tried
}

func (s *Scheduler) count(c *uint64) {
	s.mu.Lock()
	*c++
	s.mu.Unlock()
}
