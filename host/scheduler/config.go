package scheduler

import (
	"context"
	"crypto/rand"
	"log/slog"
	"runtime"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/downtime"
	"github.com/weftrun/weft/host/scheduler/due"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/retention"
	"github.com/weftrun/weft/host/scheduler/suspects"
	"github.com/weftrun/weft/host/scheduler/versions"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/traced"
	"github.com/weftrun/weft/host/usage"
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
	kv.Store
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
	Notes suspects.Notes

	// Quotas counts what tenants have and use. Default: there are none.
	Quotas usage.Quotas

	// Tracer makes the spans of traces. nil: there are none, and telling it costs
	// nothing.
	Tracer traced.Tracer

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

func (c *Config) setDefaults() {
	if c.Tokens == 0 {
		c.Tokens = runtime.GOMAXPROCS(0)
	}
	if c.Spare == nil {
		c.Spare = func(bool) {}
	}
	if c.Yield == nil {
		c.Yield = runtime.Gosched
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = time.Second
	}
	if c.DueAtOnce == 0 {
		c.DueAtOnce = 256
	}
	if c.AdmitAtOnce == 0 {
		c.AdmitAtOnce = max(admission.LeastPlaces, admission.PlacesPerCore*c.Tokens)
	}
	if c.AdmitLine == 0 {
		c.AdmitLine = admission.DefaultLine
	}
	if c.AdmitPatience == 0 {
		c.AdmitPatience = admission.DefaultPatience
	}
	if c.StartWait == 0 {
		c.StartWait = defaultStartWait
	}
	if c.Timeout == 0 {
		c.Timeout = host.DefaultRunTimeout
	}
	if c.SnapshotEntries == 0 {
		c.SnapshotEntries = 10_000
	}
	if c.SnapshotBytes == 0 {
		c.SnapshotBytes = 8 << 20
	}
	if c.EraseRows == 0 {
		c.EraseRows = 256
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Entropy == nil {
		c.Entropy = func(b []byte) { _, _ = rand.Read(b) } // never fails
	}
	if c.Resources == nil {
		c.Resources = calls.NoResources{}
	}
	if c.Notes == nil {
		c.Notes = suspects.NoNotes()
	}
	if c.Quotas == nil {
		c.Quotas = usage.Unlimited()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// defaultStartWait is how long a start that waits for its run's end may have to wait for
// its first core.
const defaultStartWait = 15 * time.Second
