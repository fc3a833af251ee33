// Package wire joins the packages of the host: it connects the interfaces that they
// declare with their implementations.
//
// It does not depend on how any package works. It opens the packages in order, closes
// them, and passes to each what it needs from the others.
package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/access"
	"github.com/weftrun/weft/host/blackbox"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/journal"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/metrics"
	"github.com/weftrun/weft/host/module"
	"github.com/weftrun/weft/host/position"
	"github.com/weftrun/weft/host/quota"
	"github.com/weftrun/weft/host/resource"
	"github.com/weftrun/weft/host/sandbox"
	"github.com/weftrun/weft/host/scheduler"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/suspects"
	"github.com/weftrun/weft/host/scheduler/versions"
	"github.com/weftrun/weft/host/store/memory"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/sqlite"
	"github.com/weftrun/weft/host/stream"
	"github.com/weftrun/weft/host/trace"
	"github.com/weftrun/weft/host/traced"
	"github.com/weftrun/weft/host/work"
)

// InMemory is the name of the data directory of a host that stores nothing on disk.
const InMemory = ":memory:"

// Config says what host to open.
type Config struct {
	// Data is the directory of the database and the compile cache. It is created if it
	// does not exist. With InMemory nothing is stored.
	Data string
	// StoreURL is the address of a store on PostgreSQL; "": the store is in Data, which
	// otherwise has the compile cache only.
	StoreURL string
	// StoreReplica acknowledges only what a synchronous replica of PostgreSQL has, too; see
	// [postgres.Options].
	StoreReplica bool
	// Place is the entry of this node among the nodes of a cluster, which must own the
	// sessions in the store at StoreURL. nil: the host has its store to itself.
	Place *cluster.Place
	// Standby is what this node has prepared for Place; see [Prepare]. nil: nothing.
	Standby *Standby
	// AcceptLoss serves a directory with missing files; see sqlite.Options.
	AcceptLoss bool
	// Lost is called with each accepted loss, which is also logged. It may be nil.
	Lost func(*sqlite.Missing)
	// Limits of uploads and new runs, and the tenants' budgets. nil: the defaults.
	Limits *limit.Table
	// Resources are the operator's resources, which workflows may call besides the
	// resources that tenants define. The caller closes them. nil: none.
	Resources *resource.Table
	// ResourceKeys encrypt the secrets in the definitions of tenants. nil: no keys.
	ResourceKeys *resource.Keys
	// IdleAfter, Tokens and Timeout: see scheduler.Config.
	IdleAfter time.Duration
	Tokens    int
	Timeout   time.Duration
	// Yield: see scheduler.Config.
	Yield func()
	// DueAtOnce, SnapshotEntries and KeepEntries: see scheduler.Config.
	DueAtOnce       int
	SnapshotEntries int
	KeepEntries     uint64
	// AdminKey is the server's own key; see access.Config.
	AdminKey string
	Log      *slog.Logger
	// Compiler is the command that compiles modules in a process of its own; see
	// sandbox.Config. It is not used if both Data and Code are empty. nil: modules are
	// compiled in this process.
	Compiler []string
	// CatchCrashes keeps the crash report of this process in Data; see blackbox.Config.
	CatchCrashes bool
	// SourceLines: see sandbox.Config.
	SourceLines bool
	// After is the host that this host replaces in the same process, after its store
	// failed. It is closed. See scheduler.Config. nil: none.
	After *Host
	// Metrics count events of the host, if not nil; see also [Host.Count].
	Metrics *metrics.Metrics
	// Tracer makes the spans of traces, if not nil. The caller closes it.
	Tracer *trace.Tracer
	// Observe is called after each invocation of a guest, on any goroutine. It
	// may be nil.
	Observe func(*host.Invocation, *host.InvocationResult)

	// CacheBytes limits the compile cache; see [sandbox.Config]. 0: no limit.
	CacheBytes int64
	// Code is the folder of the compile cache. Several processes may share it. Default: a
	// folder in Data, or none if Data is InMemory.
	Code string
	// StartWait: see scheduler.Config.
	StartWait time.Duration
	// Replacements for tests. nil: the store of Data, the sandbox without a wrapper, and
	// the system clock.
	Store  host.Store
	Around func(host.Sandbox) host.Sandbox
	Now    func() time.Time
	// WrapStore returns a wrapper around the store, for tests of a store that fails. nil:
	// no wrapper.
	WrapStore func(host.Store) host.Store
}

// Runs serves runs and sessions: the scheduler controls them, and the reader answers
// questions about them from the store. It implements host.Runs, host.Sessions and
// host.Admission.
type Runs struct {
	*scheduler.Scheduler
	*history.Reader
}

// Host is a whole host, without its HTTP server.
type Host struct {
	Runs    Runs
	Plugins *module.Service
	Access  *access.Service
	Store   host.Store
	Journal *journal.Journal
	Sandbox *sandbox.Sandbox
	Streams *stream.Hub
	Quotas  *quota.Service
	// Resources are those of the operator and of tenants.
	Resources *resource.Service
	// Secret is random, and stays the same for the life of the store.
	Secret []byte

	database *postgres.Store // Store without what stands in for it; nil: it is not on PostgreSQL
	files    *sqlite.Store   // Store without its wrapper; nil: it is not in files
	box      *blackbox.Box   // nil: there is no crash report
	position *blackbox.Position
	log      *slog.Logger
	stopRuns context.CancelFunc
	stopJrnl context.CancelFunc
	runs     chan error
	jrnl     chan error
	stopAcc  context.CancelFunc
	acc      chan struct{} // closed when the goroutines of Access and Resources have ended
	dead     chan struct{}
	failure  error // of the journal; set before dead is closed
	stopping sync.Once
	stopped  error
	once     sync.Once
	err      error

	mu       sync.Mutex // guards draining
	draining bool
}

// Open opens the store, recovers its content and starts to run it.
func Open(ctx context.Context, cfg Config) (h *Host, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h = &Host{log: cfg.Log, runs: make(chan error, 1), jrnl: make(chan error, 1), dead: make(chan struct{})}
	opened := h // the result is nil if Open fails
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.release(context.WithoutCancel(ctx)))
		}
	}()
	if h.Store, err = h.openStore(ctx, cfg); err != nil {
		return nil, err
	}
	if cfg.WrapStore != nil {
		h.Store = cfg.WrapStore(h.Store)
	}
	h.openBox(cfg)
	if h.Secret, err = secret(ctx, h.Store); err != nil {
		return nil, err
	}
	if h.Sandbox == nil {
		if h.Sandbox, err = newSandbox(ctx, cfg, h.Store); err != nil {
			return nil, err
		}
	}
	if h.Quotas, err = quota.New(ctx, quota.Config{Store: h.Store, Limits: cfg.Limits, Now: cfg.Now}); err != nil {
		return nil, err
	}
	h.Resources, err = resource.NewService(ctx, resource.Config{Store: h.Store, File: cfg.Resources, Keys: cfg.ResourceKeys, Freed: h.Quotas.Freed, Log: cfg.Log, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	h.Plugins, err = module.New(module.Config{Store: h.Store, Sandbox: h.Sandbox, Limits: cfg.Limits, Log: cfg.Log, Quota: h.Quotas.Plugin,
		Work:    func(ctx context.Context, tenant string) (*work.Meter, func()) { return h.Runs.Work(ctx, tenant) },
		Settled: func(ctx context.Context) error { return h.Journal.Wait(ctx, h.Journal.Stats().Position) }})
	if err != nil {
		return nil, fmt.Errorf("load the plugins: %w", err)
	}
	h.Streams = stream.NewHub(h.Store)
	h.Journal, err = journal.Open(ctx, journal.Config{
		Store: h.Store, Published: h.Streams.Publish, Purged: h.Streams.Purged,
		Wrote: h.Quotas.Wrote,
		Wake:  func() { h.Runs.Nudge() }, Busy: func() bool { return h.Runs.Busy() }, Committed: committed(cfg.Metrics),
		Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	var after *scheduler.Scheduler
	if cfg.After != nil {
		after = cfg.After.Runs.Scheduler
	}
	h.Runs.Scheduler, err = scheduler.New(ctx, scheduler.Config{
		Journal: h.Journal, Store: h.Store, Modules: modules{h.Plugins}, Streams: streams{h.Streams}, Sandbox: around(&flows{Sandbox: h.Sandbox, source: source{h.Store}}, cfg),
		Answers: func(l scheduler.Live, o engine.AttemptOpen, r []engine.CallRecord) scheduler.Answers {
			return hostcall.New(l, o, r)
		},
		Rehearse: func(o engine.AttemptOpen, r []engine.CallRecord, p *engine.Pending) continuation.Rehearsal {
			return hostcall.NewRehearsal(o, r, p)
		},
		Notes: notes(h.box), Classify: func(err error) scheduler.Unwound { return scheduler.Unwound(hostcall.Classify(err)) }, Parked: hostcall.ErrParked, Observer: observer(cfg.Metrics), Quotas: h.Quotas, Tracer: tracer(cfg.Tracer),
		Tokens: cfg.Tokens, Yield: cfg.Yield, IdleAfter: cfg.IdleAfter, Limits: cfg.Limits, Resources: h.Resources, Timeout: cfg.Timeout, Now: cfg.Now, CPU: sandbox.ThreadTime, Log: cfg.Log,
		SnapshotEntries: cfg.SnapshotEntries, KeepEntries: cfg.KeepEntries, DueAtOnce: cfg.DueAtOnce, After: after,
		StartWait: cfg.StartWait, Memory: new(memoryReader).read, Spare: h.Sandbox.Spare,
	})
	if err != nil {
		return nil, err
	}
	h.Runs.Reader = h.Runs.History()
	h.Access, err = access.New(ctx, access.Config{
		Store: h.Store, Runs: h.Runs, Plugins: h.Plugins, AdminKey: cfg.AdminKey, Forget: h.forget, Quotas: h.Quotas.Usage, Log: cfg.Log, Now: cfg.Now,
		Settled: func(ctx context.Context) error { return h.Journal.Wait(ctx, h.Journal.Stats().Position) },
	})
	if err != nil {
		return nil, err
	}
	h.begin(ctx)
	return h, nil
}

// forget removes a tenant that nobody uses from memory.
func (h *Host) forget(ctx context.Context, tenant string) error {
	if err := h.Runs.Forget(ctx, tenant); err != nil {
		return err
	}
	h.Quotas.Forget(tenant)
	h.Resources.Forget(tenant)
	return nil
}

// lost logs the accepted losses.
func (c *Config) lost(m *sqlite.Missing) {
	c.Log.Warn("the data directory has lost something, which is accepted", "dir", m.Dir, "code", m.Code, "what", m.What, "commits", m.Commits, "until", m.Since)
	if c.Lost != nil {
		c.Lost(m)
	}
}

// storeWait is how long a start waits for another server on the same PostgreSQL to end:
// PostgreSQL takes some seconds to notice that a machine is gone.
const storeWait = 15 * time.Second

func (h *Host) openStore(ctx context.Context, cfg Config) (host.Store, error) {
	if cfg.Store != nil {
		return cfg.Store, nil
	}
	if cfg.Standby != nil {
		h.database, h.Sandbox = cfg.Standby.store, cfg.Standby.sandbox
		return h.database, nil
	}
	if cfg.StoreURL != "" {
		s, err := openPostgres(ctx, cfg)
		if err != nil {
			return nil, err // not s: an interface that holds a nil pointer is not nil
		}
		h.database = s
		return s, nil
	}
	if cfg.Data == InMemory {
		return memory.New(), nil
	}
	h.position = blackbox.NewPosition(cfg.Data)
	options := sqlite.Options{AcceptLoss: cfg.AcceptLoss, Lost: cfg.lost, Acknowledged: h.position}
	if cfg.After != nil && cfg.After.files != nil {
		held := cfg.After.files.Held()
		options.After = &held
	}
	s, err := sqlite.OpenWith(cfg.Data, options)
	if err != nil {
		return nil, err // not s: an interface that holds a nil pointer is not nil
	}
	h.files = s
	return s, nil
}

// openBox reads how the previous process ended. The store is open, so no other process
// uses the directory.
func (h *Host) openBox(cfg Config) {
	if cfg.Data == InMemory || cfg.Store != nil {
		return
	}
	if h.database != nil {
		if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
			cfg.Log.Warn("the data directory cannot be made", "dir", cfg.Data, "error", err)
			return
		}
	}
	h.box = blackbox.Open(blackbox.Config{Dir: cfg.Data, Cores: cmp.Or(cfg.Tokens, runtime.GOMAXPROCS(0)), Position: h.position, Catch: cfg.CatchCrashes, Log: cfg.Log})
}

// notes returns nil without a box, because an interface that holds a nil pointer is not nil.
func notes(b *blackbox.Box) suspects.Notes {
	if b == nil {
		return nil
	}
	return b
}

// observedSandbox reports invocations.
type observedSandbox struct {
	host.Sandbox
	observe func(*host.Invocation, *host.InvocationResult)
}

func around(s host.Sandbox, cfg Config) host.Sandbox {
	if cfg.Around != nil {
		s = cfg.Around(s)
	}
	if cfg.Observe != nil {
		s = observedSandbox{s, cfg.Observe}
	}
	return s
}

// Invoke implements host.Sandbox.
func (s observedSandbox) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	res, err := s.Sandbox.Invoke(ctx, inv)
	s.observe(&inv, &res)
	return res, err
}

// tracer returns nil, and not an interface that holds a nil pointer, if there is no
// tracer.
func tracer(t *trace.Tracer) traced.Tracer {
	if t == nil {
		return nil
	}
	return t
}

// source gives the sandbox the bytes of modules.
type source struct{ store host.Store }

func (s source) Wasm(ctx context.Context, digest string) ([]byte, error) {
	m, err := s.store.Module(ctx, digest)
	return m.Bytes, err
}

// begin starts the goroutines of the journal and the scheduler.
func (h *Host) begin(ctx context.Context) {
	jctx, stopJrnl := context.WithCancel(context.WithoutCancel(ctx))
	rctx, stopRuns := context.WithCancel(context.WithoutCancel(ctx))
	h.stopJrnl, h.stopRuns = stopJrnl, stopRuns
	if h.database != nil {
		h.database.OnReturn(h.Runs.Nudge)
	}
	go func() {
		err := h.Journal.Run(jctx)
		h.failure = err
		close(h.dead)
		h.jrnl <- err
	}()
	go func() { h.runs <- h.Runs.Run(rctx, grace) }()
	actx, stopAcc := context.WithCancel(context.WithoutCancel(ctx))
	h.stopAcc, h.acc = stopAcc, make(chan struct{})
	go func() {
		defer close(h.acc)
		var uses sync.WaitGroup
		uses.Go(func() { h.Resources.Run(actx) })
		h.Access.Run(actx)
		uses.Wait()
	}()
}

// grace is how long running guests may take to end when the host closes.
const grace = 5 * time.Second

// Dead is closed when the journal has stopped: by Close, or because the store failed in a
// way that requires opening it again to determine what is durable. Then waiting requests
// will not be answered, and the host must be closed.
func (h *Host) Dead() <-chan struct{} { return h.dead }

// Failure returns why the journal stopped, once Dead is closed; nil if Close stopped it.
func (h *Host) Failure() error {
	<-h.dead
	return h.failure
}

// Drain makes Ready fail, so that load balancers send no more work.
func (h *Host) Drain() {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
}

// Healthy implements host.Health. While PostgreSQL is away the server is not ready, but
// healthy: it continues when PostgreSQL is back, and a restart would only load all again.
func (h *Host) Healthy() error {
	if h.database != nil && h.database.Stalled() {
		return nil
	}
	return h.Runs.Health()
}

// Ready implements host.Health.
func (h *Host) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return errors.New("the server is draining")
	}
	if err := h.Runs.Health(); err != nil {
		return err
	}
	return h.Runs.Reading()
}

// Reduced implements host.Health.
func (h *Host) Reduced() string { return h.Runs.Reduced() }

// Close stops the runs as Stop does, and releases the store. It returns when all goroutines
// have ended. It may be called twice.
func (h *Host) Close(ctx context.Context) error {
	h.once.Do(func() { h.err = errors.Join(h.Stop(ctx), h.release(ctx)) })
	return h.err
}

// Stop stops the runs (they continue at the next Open), and makes everything that happened
// durable. Then the host changes nothing any more. Stop may be called twice, and before Close.
func (h *Host) Stop(ctx context.Context) error {
	h.stopping.Do(func() { h.stopped = h.stop(ctx) })
	return h.stopped
}

func (h *Host) stop(ctx context.Context) error {
	h.Drain()
	select {
	case <-h.dead:
		h.Runs.Abandon()
	default:
	}
	h.stopAcc() // first, because its work needs the others
	<-h.acc
	h.stopRuns()
	err := <-h.runs
	h.stopJrnl()
	jerr := <-h.jrnl
	if jerr == nil {
		jerr = h.Runs.Close(ctx)
	}
	return errors.Join(err, jerr)
}

func (h *Host) release(ctx context.Context) error {
	var errs []error
	if h.Streams != nil {
		h.Streams.Close()
	}
	if h.Resources != nil {
		h.Resources.Close()
	}
	if h.Sandbox != nil {
		errs = append(errs, h.Sandbox.Close(ctx))
	}
	if h.box != nil {
		errs = append(errs, h.box.Close())
	}
	if h.Store != nil {
		errs = append(errs, h.Store.Close())
	}
	return errors.Join(errs...)
}

// modules gives the scheduler its view of the module service.
type modules struct{ s *module.Service }

func (m modules) Newest(tenant, workflow string) (versions.Module, error) {
	return moduleOf(m.s.Newest(tenant, workflow))
}

func (m modules) Starting() (done func()) { return m.s.Starting() }

func (m modules) ByDigest(digest string) (versions.Module, error) {
	return moduleOf(m.s.ByDigest(digest))
}

func moduleOf(v *module.Version, err error) (versions.Module, error) {
	if err != nil {
		return versions.Module{}, err
	}
	out := versions.Module{Digest: v.Digest, ImageHash: v.ImageHash, Graph: v.Graph, Plugin: v.Plugin}
	if v.Steps != nil {
		out.Plugins = v.Plugins
		out.Step = func(name string) (versions.Step, bool) {
			s, ok := v.Steps[name]
			return versions.Step(s), ok
		}
	}
	return out, nil
}

func (m modules) PrepareEvent(meter *work.Meter, digest, typ string, body abi.Raw) (abi.Raw, error) {
	return m.s.PrepareEvent(meter, digest, typ, body)
}

type streams struct{ h *stream.Hub }

func (s streams) Subscribe(ctx context.Context, tenant, handlerID string, after int64) (host.Stream, error) {
	return s.h.Subscribe(ctx, tenant, handlerID, after)
}

func (s streams) SubscribeRun(ctx context.Context, tenant, handlerID, runID string, after int64) (host.Stream, error) {
	return s.h.SubscribeRun(ctx, tenant, handlerID, runID, after)
}

func (s streams) SubscribeFamily(ctx context.Context, tenant, handlerID, runID string, from position.Family) (host.FamilyStream, error) {
	return s.h.SubscribeFamily(ctx, tenant, handlerID, runID, from)
}
