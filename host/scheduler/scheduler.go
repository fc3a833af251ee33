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
	"log/slog"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/downtime"
	"github.com/weftrun/weft/host/scheduler/due"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/mail"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/requests"
	"github.com/weftrun/weft/host/scheduler/retention"
	"github.com/weftrun/weft/host/scheduler/versions"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// Journal makes entries durable. See package journal.
type Journal interface {
	Append(now time.Time, it host.JournalItem) (pos uint64)
	Wait(ctx context.Context, pos uint64) error
	Durable() uint64
	// A tenant over its hard limit must add nothing to the queue; one over its soft limit
	// must begin nothing until the disk has caught up. A tenant over the hard limit is over
	// the soft limit.
	OverHardLimit(tenant string) bool
	OverSoftLimit(tenant string) bool
	Err() error
	// Load reads a session's entries: decode gets arrays of them, in order.
	Load(ctx context.Context, key host.SessionKey, decode func(array []byte) error) (last uint64, err error)
	history.Journal
}

// Store is the part of host.Store that the scheduler reads.
type Store interface {
	history.Store
	due.Store
	retention.Store
	downtime.Store
	idempotency.Store
	host.KVStore
}

// Live is what the answers to an attempt's host calls are made from and act on.
// See package hostcall.
type Live interface {
	Now() int64
	State() *state.Node
	Begin(p state.Path, want bool) (n *state.Node, ok bool, err error)
	End()
	Effect(m *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error
	Atomic() bool
	Try(m *work.Meter, root *state.Node, req engine.Request) (engine.Tried, error)
}

// Answers answers the host calls of one attempt over all its runs, and keeps
// its record. One goroutine at a time uses it.
type Answers interface {
	host.Calls
	Restart()
	// Burn counts units that the guest burnt, up to now; its error unwinds the
	// guest. Idle says for how long the guest waited for its token after that.
	Burn(units uint64) error
	Idle(waited time.Duration)
	Open() engine.AttemptOpen
	// Record is the record of an attempt that is suspended.
	Record() []engine.CallRecord
	// Unfinished is the failure of a guest that ended inside an edit, else nil.
	Unfinished() *abi.Error
	// Stage is what an atomic step did; nil for others. Lost says that the state
	// has changed meanwhile, and that it runs again.
	Stage() *engine.Stage
	Lost()
	Finish(e *engine.Entry)
	Logs() []engine.LogRecord
}

// Observer hears what happens. Its methods are called under mutexes: they must neither
// block nor call back.
type Observer interface {
	// Started: a run has begun, or waits for its session's turn.
	Started(tenant string)
	// Ended: a run has its final record, which perhaps is not durable yet.
	Ended(run *host.Run)
	// Waited: an attempt has waited for a token for so long.
	Waited(d time.Duration)
}

// Config says what a scheduler works with. Fields without a default must be
// set.
type Config struct {
	Journal Journal
	Store   Store
	Modules versions.Source
	Streams history.Streams
	Sandbox host.Sandbox
	// Answers makes the answers of an attempt from its first entry and its record so
	// far. It asks live for what the record does not have.
	Answers func(live Live, open engine.AttemptOpen, record []engine.CallRecord) Answers
	// Rehearse plays the record of an attempt to a guest, up to the call that the
	// attempt waits in (pending; nil: none).
	Rehearse func(open engine.AttemptOpen, record []engine.CallRecord, pending *engine.Pending) continuation.Rehearsal
	// Classify says what an error that unwound a guest means.
	Classify func(error) Unwound
	// Parked is the error by which Live unwinds a guest that waits for a
	// ticket; Classify knows it.
	Parked error

	// Observer hears what happens, if it is not nil.
	Observer Observer

	// Notes keep what holds a core over an end of the process. Default: none are taken.
	Notes Notes

	// Quotas counts what tenants have and use. Default: there are none.
	Quotas Quotas

	// Tracer makes the spans of traces. nil: there are none, and telling it costs
	// nothing.
	Tracer Tracer

	// Resources are those that workflows may call. Default: none.
	Resources host.Resources

	// Tokens is how many guests run at once. Default: the number of cores.
	Tokens int
	// Yield is called at the end of each turn of a guest that computes for longer than a
	// turn, on the guest's goroutine and without any lock. It gives the core to goroutines
	// that are not guests and wait for it, such as those that read requests. Default
	// runtime.Gosched.
	Yield func()
	// IdleAfter is how long a session that has nothing to do stays in memory.
	// Default 1 s.
	IdleAfter time.Duration
	// Limits has the limits that new runs take by their tenant and plugin, the
	// tenants' fuel budgets, and how long their ended runs are kept. Default:
	// limit.Default, no budgets, and all runs.
	Limits *limit.Table
	// Timeout of runs whose manifest names none: it bounds their work, and does not
	// count time in which all of a run waits. Default 45 s; below 0 they have none.
	Timeout time.Duration
	// DueAtOnce is how many sessions that are not in memory, and have something to do
	// by themselves, are taken up at a time: after a long time down timers are overdue in
	// any number. Default 256.
	DueAtOnce int
	// AdmitAtOnce is how many starts and events of clients wait for the disk at a time;
	// others wait in line, in the fair order of their tenants. Default 64 a
	// token, 128 at least.
	AdmitAtOnce int
	// AdmitLine and AdmitPatience are how many of a tenant wait in line at most, and
	// for how long. Defaults 10,000 and 15 s: if a client sends many at once, all are served,
	// later.
	AdmitLine     int
	AdmitPatience time.Duration
	// StartWait is how long a start that waits for its run's end may have to wait for its
	// first core. A start that would certainly wait longer is refused. Default 15 s; below 0:
	// any time.
	StartWait time.Duration
	// Memory gives the bytes of live objects and the process's memory limit, 0 if it
	// has none. It is called every 100 ms at most. Default: there is no limit.
	Memory func() (live, limit int64)
	// Spare is called when the system has ended the process for its memory again and
	// again, and when that is long ago: caches in memory must
	// shrink to half their size meanwhile. It must not block. Default: nothing does.
	Spare func(on bool)
	// SnapshotEntries and SnapshotBytes say after how many entries, or bytes of
	// them, a session writes a snapshot, from which it is loaded: what a load folds
	// is no more than about that, or the snapshot's own size if that is more.
	// Defaults 10,000 (folded in some 50 ms) and 8 MiB (a batch of the journal).
	SnapshotEntries int
	SnapshotBytes   int
	// KeepEntries is how many entries before a snapshot are kept, at least, for
	// timelines and forks. Default 0: all.
	KeepEntries uint64
	// EraseRows is how many rows of a session that is deleted go in one transaction.
	// Default 256.
	EraseRows int
	// After is the scheduler of this process in whose place this one comes, after
	// its store failed: it has stopped, its journal is dead. nil: none.
	After *Scheduler
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// CPU is the time of a core that the calling thread has had: calls that take more
	// than they are charged are on their tenant's clock by that. nil: counts alone are.
	CPU func() time.Duration
	// Entropy fills a buffer with random bytes. Default crypto/rand.
	Entropy func([]byte)
	Log     *slog.Logger
}

// Unwound says what happens to an attempt whose guest was unwound.
type Unwound struct {
	// Exactly one of these holds.
	Again  bool // run it again at once: a commit lost
	Parked bool // run it again when a write ticket is free
	Stale  bool // its result is no longer needed
	// Suspended: it continues when what it waits for has arrived.
	Suspended bool
	Later     bool       // run it again after a while: the host could not now
	Fail      *abi.Error // the attempt failed
	// Block: the run stops until an operator resumes it.
	Block *host.Blocked
}

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

	log   logger
	reads readCounts // has a mutex of its own

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

// New makes a scheduler over what the store holds. It loads nothing yet: the
// first Step begins with the sessions that have something to do.
func New(ctx context.Context, cfg Config) (*Scheduler, error) {
	s := newScheduler(ctx, cfg)
	if err := s.life.begin(ctx); err != nil {
		return nil, err
	}
	s.dues.Note(s.boot)
	s.suspicion.begin()
	s.cfg.After = nil // it need not stay in memory
	return s, nil
}

// newScheduler makes a scheduler that has not looked at the store yet.
func newScheduler(ctx context.Context, cfg Config) *Scheduler {
	cfg.setDefaults()
	s := &Scheduler{
		cfg:     cfg,
		log:     logger{cfg.Log},
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		boot:    cfg.Now().UnixNano(),
	}
	s.base, s.endBase = context.WithCancel(context.WithoutCancel(ctx))
	s.workers = fair.NewPool(2*cfg.Tokens, s.stopped)
	s.keys = idempotency.New(idempotency.Config{Store: cfg.Store, Journal: cfg.Journal, Now: s.now})
	s.past = history.New(history.Config{Journal: cfg.Journal, Store: cfg.Store, Streams: cfg.Streams, Graph: s.cfg.graph, Clocked: s.clocked})
	s.old = retention.New(retention.Config{
		Store: cfg.Store, Journal: cfg.Journal, Limits: cfg.Limits, Drop: s.table.dropFrom, Done: s.signal, Now: cfg.Now, Clock: s.now, Log: cfg.Log,
	})
	s.table.init(s)
	s.reserved = handlers.New(handlers.Config{Store: cfg.Store, Journal: cfg.Journal, Now: s.now, Entropy: cfg.Entropy})
	s.cores.init(s)
	s.starts.Init(admission.Config{Limits: cfg.Limits, Cores: &s.cores.queue, Budget: s.cores.budgets.Rate, Now: cfg.Now, Memory: cfg.Memory})
	s.gate.Init(admission.GateConfig{
		Places: cfg.AdmitAtOnce, Line: cfg.AdmitLine, Patience: cfg.AdmitPatience, Clocks: &s.cores.queue, Journal: cfg.Journal,
		Lock: &s.mu, Open: s.taking, Stopped: s.stopped,
	})
	s.suspicion.s, s.life.s = s, s
	s.mailer.Init(mail.Config{
		Acquire: s.table.mailbox, RetryAfter: s.table.retryAfter, Gone: refusal.ErrGone, Signal: s.signal,
		Readable: cfg.readable,
		Log: func(level slog.Level, message string, from host.SessionKey, args ...any) {
			s.log.session(context.Background(), level, message, from, args)
		},
	})
	s.calls.Init(calls.CallerConfig{
		Host: callHost{s}, Lock: &s.mu, Resources: cfg.Resources, Store: cfg.Store, Grow: cfg.Quotas.Grow, Journal: cfg.Journal,
		Clock: cfg.Now, Now: s.now, Tracer: cfg.Tracer,
	})
	s.Service = requests.New(requests.Config{
		Sessions: askedSessions{&s.table}, Past: s.past, Store: cfg.Store, Journal: cfg.Journal, Modules: cfg.Modules, Resources: cfg.Resources,
		Limits: cfg.Limits, Quotas: cfg.Quotas, Keys: s.keys, Reserved: s.reserved, Gate: &s.gate, Timeout: cfg.Timeout,
		Graph: cfg.graph, Readable: cfg.readable, Accepting: s.accepting, Taking: s.taking, Stopped: s.stopped, AskStart: s.AskStart,
		Work: s.bounded, Settle: s.mailer.Settle, Rehearse: cfg.Rehearse, Play: s.cores.play, Trace: s.traceOf, Now: s.now,
		Entropy: cfg.Entropy, MaxSnapshot: maxSnapshot,
	})
	s.dues.Init(due.Config[*session]{
		Sessions: dueSessions{&s.table}, Store: cfg.Store, Lock: &s.mu, Now: s.now, Signal: s.signal, AtOnce: cfg.DueAtOnce, Log: cfg.Log,
	})
	s.setDuties()
	return s
}

// History gives what answers questions about runs and sessions from what is stored.
func (s *Scheduler) History() *history.Reader { return s.past }

// graph gives the graph of a workflow version.
func (c *Config) graph(version string) (*engine.Graph, error) {
	m, err := c.Modules.ByDigest(version)
	if err != nil {
		return nil, err
	}
	return m.Graph, nil
}

// readable brings a workflow version into memory.
func (c *Config) readable(version string) error {
	_, err := c.Modules.ByDigest(version)
	return err
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

// now is the time, which is never before the boot, though the clock may be set back:
// an entry from before the boot is an earlier server's (see session.recover).
func (s *Scheduler) now() int64 { return max(s.cfg.Now().UnixNano(), s.boot) }

func (s *Scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
