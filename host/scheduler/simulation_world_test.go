package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/journal"
	"github.com/weftrun/weft/host/position"
	"github.com/weftrun/weft/host/scheduler"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/versions"
	"github.com/weftrun/weft/host/store/memory"
	"github.com/weftrun/weft/host/stream"
	"github.com/weftrun/weft/host/work"
)

// errCrashed is what everything gets that belongs to a world that crashed.
var errCrashed = errors.New("the machine lost power")

// world is one life of a server: between its start over what the store holds
// and its crash or clean end. Its goroutines run one at a time: each stops at
// every interleaving point until the simulation lets it go on.
type world struct {
	sim    *sim
	ctx    context.Context
	cancel context.CancelFunc
	dead   atomic.Bool // it crashed: whatever still runs has to come out
	driver atomic.Bool // the simulation itself runs: no interleaving points

	journal *journal.Journal
	sched   *scheduler.Scheduler
	hub     *stream.Hub
	tally   *tally
	life    *boxLife
	due     time.Time // when the scheduler wants to be stepped; zero: when it says so

	mu    sync.Mutex // guards what follows
	ready []*stopped
	next  uint64
	live  int
}

// stopped is a goroutine at an interleaving point.
type stopped struct {
	id uint64
	at string
	on chan struct{}
}

// yield is an interleaving point.
func (w *world) yield(at string) {
	if w.dead.Load() || w.driver.Load() {
		return
	}
	st := &stopped{at: at, on: make(chan struct{})}
	w.mu.Lock()
	w.next++
	st.id = w.next
	w.ready = append(w.ready, st)
	w.mu.Unlock()
	<-st.on
}

// spawn begins a goroutine, which stops at once.
func (w *world) spawn(at string, work func()) {
	w.mu.Lock()
	w.live++
	w.mu.Unlock()
	w.driver.Store(false)
	go func() {
		w.yield(at)
		work()
		w.mu.Lock()
		w.live--
		w.mu.Unlock()
	}()
	w.settle()
}

// settle returns when everybody waits.
func (w *world) settle() {
	synctest.Wait()
	w.driver.Store(true)
}

// resume lets one stopped goroutine go on to its next stop.
func (w *world) resume() bool {
	w.mu.Lock()
	if len(w.ready) == 0 {
		w.mu.Unlock()
		return false
	}
	i := w.sim.rng.IntN(len(w.ready))
	st := w.ready[i]
	w.ready = slices.Delete(w.ready, i, i+1)
	w.mu.Unlock()
	w.driver.Store(false)
	close(st.on)
	w.settle()
	return true
}

// step steps the scheduler and begins its work.
func (w *world) step() bool {
	work, next := w.sched.Step(w.sim.clock())
	w.settle() // guests that got their token back
	w.due = next
	for _, fn := range work {
		w.spawn("work", fn)
	}
	return len(work) > 0
}

// stepIfWoken steps the scheduler as its runner does: when it asked for it.
func (w *world) stepIfWoken() bool {
	select {
	case <-w.sched.Wake():
	default:
		if w.due.IsZero() || w.sim.clock().Before(w.due) {
			return false
		}
	}
	return w.step()
}

// commit steps the journal.
func (w *world) commit() bool {
	commit, next := w.journal.Step(w.sim.clock())
	w.sim.note(next)
	if commit == nil {
		return false
	}
	w.spawn("commit", func() { _ = commit(context.Background()) })
	return true
}

// crash ends the world without a word: what is not in the store is gone. It
// returns when all its goroutines are out.
func (w *world) crash() {
	w.dead.Store(true)
	w.cancel()
	for n := range 10_000 {
		w.mu.Lock()
		ready, live := w.ready, w.live
		w.ready = nil
		w.mu.Unlock()
		for _, st := range ready {
			close(st.on)
		}
		synctest.Wait()
		if live == 0 {
			w.hub.Close()
			return
		}
		// Later and later: a guest may wait for its tenant's budget.
		work, _ := w.sched.Step(w.sim.clock().Add(time.Duration(n) * time.Second))
		for _, fn := range work {
			w.mu.Lock()
			w.live++
			w.mu.Unlock()
			go func() {
				fn()
				w.mu.Lock()
				w.live--
				w.mu.Unlock()
			}()
		}
		synctest.Wait()
	}
	w.sim.failf("%d goroutines of a world that crashed do not end", w.live)
}

// open starts a server over what the store holds.
func (s *sim) open() *world {
	w := &world{sim: s}
	w.driver.Store(true)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	st := &simStore{Store: s.store, w: w}
	w.hub = stream.NewHub(st)
	var err error
	w.journal, err = journal.Open(w.ctx, journal.Config{Store: st, Published: w.hub.Publish, Purged: w.hub.Purged,
		MaxBatchBytes: s.batchBytes, Wake: func() { w.sched.Nudge() }})
	if err != nil {
		s.t.Fatal(err)
	}
	w.tally = newTally(s.store)
	w.life = s.box.open()
	s.total.Suspected += len(w.life.before.Noted)
	w.sched, err = scheduler.New(w.ctx, scheduler.Config{
		Notes: w.life, Journal: simJournal{w}, Store: st, Modules: s.modules, Streams: simStreams{w}, Sandbox: simSandbox{w},
		Resources: simResources{w: w, under: map[string]int{}}, Quotas: w.tally,
		Answers: func(l scheduler.Live, o engine.AttemptOpen, r []engine.CallRecord) scheduler.Answers {
			return hostcall.New(l, o, r)
		},
		Rehearse: func(o engine.AttemptOpen, r []engine.CallRecord, p *engine.Pending) continuation.Rehearsal {
			return hostcall.NewRehearsal(o, r, p)
		},
		Classify: classify, Parked: hostcall.ErrParked, Tokens: s.tokens, IdleAfter: 20 * time.Millisecond, Limits: s.limits,
		Now: s.clock, Entropy: func(b []byte) { s.entropy(w, b) }, Log: slog.New(simLog{w}), SnapshotEntries: s.snapshots, EraseRows: s.eraseRows, After: s.after,
		AdmitAtOnce: s.tight,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// classify says what unwound a guest.
func classify(err error) scheduler.Unwound { return scheduler.Unwound(hostcall.Classify(err)) }

// simLog lets no error of the server pass unseen.
type simLog struct{ w *world }

func (simLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (l simLog) Handle(_ context.Context, r slog.Record) error {
	if !l.w.dead.Load() && r.Message != "the previous server crashed or was killed" {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		l.w.sim.failf("the server complains: %s", text)
	}
	return nil
}
func (l simLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l simLog) WithGroup(string) slog.Handler      { return l }

// simStore is the durable part of the machine: it has what was appended. It
// refuses commits, and may lose power before or after one.
type simStore struct {
	*memory.Store
	w *world
}

func (s *simStore) Append(ctx context.Context, b host.Batch) error {
	s.w.yield("before the commit")
	if s.w.dead.Load() {
		return errCrashed
	}
	if s.w.sim.refuse() {
		return fmt.Errorf("disk full: %w", host.ErrNotCommitted)
	}
	if err := s.Store.Append(ctx, b); err != nil {
		s.w.sim.failf("the store refuses a batch: %v", err)
		return err
	}
	s.w.sim.retention.note(s.w.sim, &b)
	s.w.sim.billing.note(s.w.sim, &b)
	s.w.sim.facts.letGo(s.w.sim, &b)
	s.w.yield("after the commit")
	if s.w.dead.Load() {
		return errCrashed
	}
	return nil
}

// read is an interleaving point before a look at the store.
func (s *simStore) read(at string) error {
	s.w.yield(at)
	if s.w.dead.Load() {
		return errCrashed
	}
	return nil
}

func (s *simStore) Handler(ctx context.Context, tenant, id string) (host.Handler, error) {
	if err := s.read("handler"); err != nil {
		return host.Handler{}, err
	}
	return s.Store.Handler(ctx, tenant, id)
}

func (s *simStore) Run(ctx context.Context, tenant, id string) (host.Run, error) {
	if err := s.read("run"); err != nil {
		return host.Run{}, err
	}
	return s.Store.Run(ctx, tenant, id)
}

func (s *simStore) Repeat(ctx context.Context, tenant, route, key string) (host.Repeat, error) {
	if err := s.read("repeat"); err != nil {
		return host.Repeat{}, err
	}
	r, err := s.Store.Repeat(ctx, tenant, route, key)
	s.w.yield("repeat, answered")
	return r, err
}

func (s *simStore) Due(ctx context.Context, until int64, limit int) ([]host.SessionKey, int64, error) {
	if err := s.read("due"); err != nil {
		return nil, 0, err
	}
	keys, next, err := s.Store.Due(ctx, until, limit)
	s.w.yield("due, answered")
	return keys, next, err
}

func (s *simStore) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	if err := s.read("load"); err != nil {
		return host.StoredSession{}, err
	}
	stored, err := s.Store.LoadSession(ctx, key)
	s.w.yield("loaded")
	return stored, err
}

func (s *simStore) SetMeta(ctx context.Context, key string, value []byte) error {
	if err := s.read("meta"); err != nil {
		return err
	}
	return s.Store.SetMeta(ctx, key, value)
}

// simJournal is the journal, with an interleaving point behind every wait.
type simJournal struct{ w *world }

func (j simJournal) Append(now time.Time, it host.JournalItem) uint64 {
	return j.w.journal.Append(now, it)
}

func (j simJournal) Wait(ctx context.Context, pos uint64) error {
	if ctx.Done() == nil {
		ctx = j.w.ctx
	}
	err := j.w.journal.Wait(ctx, pos)
	j.w.yield("durable")
	if j.w.dead.Load() {
		return errCrashed
	}
	return err
}

func (j simJournal) Durable() uint64 { return j.w.journal.Durable() }

func (j simJournal) OverHardLimit(tenant string) bool {
	return !j.w.dead.Load() && j.w.journal.OverHardLimit(tenant)
}

func (j simJournal) OverSoftLimit(tenant string) bool {
	return !j.w.dead.Load() && j.w.journal.OverSoftLimit(tenant)
}

func (j simJournal) Err() error {
	if j.w.sim.tight > 0 {
		j.w.yield("let in") // or on the way there
	}
	if j.w.dead.Load() {
		return errCrashed
	}
	return j.w.journal.Err()
}

func (j simJournal) Load(ctx context.Context, key host.SessionKey, decode func([]byte) error) (uint64, error) {
	return j.w.journal.Load(ctx, key, decode)
}

func (j simJournal) History(ctx context.Context, key host.SessionKey, position uint64, decode func([]byte) (bool, error)) error {
	return j.w.journal.History(ctx, key, position, decode)
}

type simStreams struct{ w *world }

func (s simStreams) Subscribe(ctx context.Context, tenant, handlerID string, after int64) (host.Stream, error) {
	return s.w.hub.Subscribe(ctx, tenant, handlerID, after)
}

func (s simStreams) SubscribeRun(ctx context.Context, tenant, handlerID, runID string, after int64) (host.Stream, error) {
	return s.w.hub.SubscribeRun(ctx, tenant, handlerID, runID, after)
}

func (s simStreams) SubscribeFamily(ctx context.Context, tenant, handlerID, runID string, from position.Family) (host.FamilyStream, error) {
	return s.w.hub.SubscribeFamily(ctx, tenant, handlerID, runID, from)
}

// simModules has the workflows of the simulation; a digest is a name, or NAME@N for
// a version that is newer than that of the name alone.
type simModules map[string]*engine.Graph

func newSimModules(tb testing.TB, manifests map[string]string) simModules {
	tb.Helper()
	m := simModules{}
	for name, text := range manifests {
		raw, err := abi.FromJSON([]byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		manifest, err := abi.DecodeManifest(raw)
		if err != nil {
			tb.Fatal(err)
		}
		g, problems := engine.Compile(&manifest)
		if problems != nil {
			tb.Fatalf("%s: %+v", name, problems)
		}
		m[name] = g
	}
	return m
}

func (m simModules) Newest(_, workflow string) (versions.Module, error) {
	newest := workflow
	for digest := range m {
		if strings.HasPrefix(digest, workflow+"@") && digest > newest {
			newest = digest
		}
	}
	return m.ByDigest(newest)
}

func (m simModules) Starting() (done func()) { return func() {} }

func (m simModules) ByDigest(digest string) (versions.Module, error) {
	g, ok := m[digest]
	if !ok {
		return versions.Module{}, host.Errorf(host.CodeNotFound, "no workflow %s", digest)
	}
	return versions.Module{Digest: digest, Graph: g, Plugin: digest + "-plugin"}, nil
}

func (m simModules) PrepareEvent(_ *work.Meter, _, _ string, body abi.Raw) (abi.Raw, error) {
	return body, nil
}
