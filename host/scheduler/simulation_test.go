package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler"
	"github.com/weftrun/weft/host/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simSeeds is how many seeds a run of the tests plays; beside the race detector fewer,
// of which the sums are not checked.
const simSeeds = 200

// TestSimulation plays whole lives of a server: clients, guests, commits,
// crashes, all interleaved by one seed. See simulation_check_test.go for what
// has to hold. WEFT_SEED=n plays one seed again, WEFT_SEEDS=n plays so many, others
// each time.
func TestSimulation(t *testing.T) {
	first, count := uint64(1), simSeeds
	switch {
	case testing.Short():
		count = 8
	case few:
		count = 50
	}
	if n, err := strconv.ParseUint(os.Getenv("WEFT_SEED"), 10, 64); err == nil {
		first, count = n, 1
	} else if n, err := strconv.Atoi(os.Getenv("WEFT_SEEDS")); err == nil {
		first, count = uint64(time.Now().UnixNano()), n
	}
	var total simStats
	for seed := first; seed < first+uint64(count); seed++ {
		s := &sim{t: t, seed: seed, total: &total}
		synctest.Test(t, func(t *testing.T) {
			s.t = t
			s.play()
		})
		if t.Failed() {
			t.Fatalf("seed %d failed: WEFT_SEED=%d plays it again", seed, seed)
		}
	}
	t.Logf("%d seeds: %+v", count, total)
	if count >= simSeeds {
		total.check(t)
	}
}

// simStats counts what the seeds have come to, so that nobody takes a
// simulation for a test that has stopped doing anything.
type simStats struct {
	scheduler.Counters
	Crashes, CleanStops, Reopened, Refused, Starts, Sends, Cancels, Purges, Ends, StreamEvents, Entries, Children, Messages       int
	Suspected, Apart, Control                                                                                                     int // of deaths: what held a core, and in which phases they were
	Tidied, Queued, Turns, Repeated, OutAnswers, Unknown, Dropped, FromSnapshots, Told, Retried, Migrated, Edited, Outrun, Erased int
}

func (s *simStats) add(c scheduler.Counters) {
	s.Attempts += c.Attempts
	s.Conflicts += c.Conflicts
	s.Parks += c.Parks
	s.Replayed += c.Replayed
	s.Loaded += c.Loaded
	s.Evicted += c.Evicted
	s.Yields += c.Yields
	s.Holds += c.Holds
	s.Suspended += c.Suspended
	s.Calls += c.Calls
	s.Lined += c.Lined
}

func (s *simStats) check(t *testing.T) {
	for name, n := range map[string]uint64{
		"conflicts": s.Conflicts, "parks": s.Parks, "replays": s.Replayed, "loads": s.Loaded, "evictions": s.Evicted, "yields": s.Yields, "holds": s.Holds, "waits and sleeps": s.Suspended, "starts and events in line": s.Lined,
		"crashes": uint64(s.Crashes), "reopened stores": uint64(s.Reopened), "refused commits": uint64(s.Refused), "cancels": uint64(s.Cancels), "purges": uint64(s.Purges),
		"suspects of deaths": uint64(s.Suspected), "deaths while suspects ran alone": uint64(s.Apart), "deaths in pauses between suspects": uint64(s.Control), "children": uint64(s.Children), "messages between sessions": uint64(s.Messages),
		"clean-ups": uint64(s.Tidied), "queued starts": uint64(s.Queued), "repeated starts": uint64(s.Repeated), "turns": uint64(s.Turns),
		"calls to the outside": s.Calls, "answers of the outside": uint64(s.OutAnswers), "unknown outcomes": uint64(s.Unknown),
		"old runs deleted": uint64(s.Dropped), "loads from snapshots": uint64(s.FromSnapshots), "entries of timelines": uint64(s.Told),
		"retries": uint64(s.Retried), "migrations": uint64(s.Migrated),
		"edits from outside": uint64(s.Edited), "edits that others outran": uint64(s.Outrun), "deleted sessions": uint64(s.Erased),
	} {
		if n == 0 {
			t.Errorf("the simulation has no %s: it does not test what it is to test", name)
		}
	}
}

// sim is one play. What it holds survives the crashes of its worlds.
type sim struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	total *simStats

	store      *memory.Store
	modules    simModules
	tokens     int
	batchBytes int
	tight      int // starts and events at a time; 0: the default
	snapshots  int // entries after which a session writes one
	eraseRows  int
	limits     *limit.Table
	retention  retained
	billing    billing
	calm       time.Duration // after which everything has come to an end
	crashes    int           // per 10,000 steps
	refusals   int           // per 100 commits
	hot        bool          // one session, one path, and everybody edits it
	chaos      bool
	after      *scheduler.Scheduler // whose place the next one takes in the process; nil: it is the first
	atRest     bool                 // nothing was to do for a while

	w     *world
	box   *box
	now   time.Time
	soon  time.Time // when something wants to be stepped; zero: nothing does
	ops   int
	facts facts

	children atomic.Int64 // that guests have heard of

	mu      sync.Mutex // guards what follows, which goroutines of a world use
	chance  *rand.Rand // entropy
	attempt map[attemptKey][]effect
	outside map[string]*outsideCall
	answers int  // of the outside, that guests have had
	retries bool // of runs were asked for: answers may be of the run before
	failure string
}

type attemptKey struct {
	run     string
	inv     uint64
	attempt uint64
}

// clock is the simulation's.
func (s *sim) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *sim) advance(d time.Duration) {
	s.mu.Lock()
	s.now = s.now.Add(d)
	s.mu.Unlock()
}

func (s *sim) note(next time.Time) {
	if !next.IsZero() && (s.soon.IsZero() || next.Before(s.soon)) {
		s.soon = next
	}
}

func (s *sim) entropy(w *world, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.dead.Load() {
		_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // must not move the seed's own stream
		return
	}
	for i := range b {
		b[i] = byte(s.chance.Uint32())
	}
}

func (s *sim) refuse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.chaos || s.chance.IntN(100) >= s.refusals {
		return false
	}
	s.total.Refused++
	return true
}

// finished notes what a guest did that came to its end.
func (s *sim) finished(in *abi.StepInput, done []effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Step == "tidy" {
		s.total.Tidied++
	}
	s.attempt[attemptKey{in.Run.RunID, in.Run.Invocation, in.Run.Attempt}] = done
}

func (s *sim) failf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == "" {
		s.failure = fmt.Sprintf(format, args...)
	}
}

// verdict fails the test if something was found.
func (s *sim) verdict() {
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	if failure != "" {
		s.w.crash()
		s.t.Fatalf("seed %d, after %d client requests: %s", s.seed, s.ops, failure)
	}
}

func (s *sim) play() {
	s.rng = rand.New(rand.NewPCG(s.seed, 1))
	s.chance = rand.New(rand.NewPCG(s.seed, 2))
	s.store = memory.New()
	s.attempt = map[attemptKey][]effect{}
	s.outside = map[string]*outsideCall{}
	s.facts, s.billing = newFacts(), newBilling()
	s.modules = newSimModules(s.t, map[string]string{
		"long":  fmt.Sprintf(simManifest, "long", int64(time.Hour)),
		"brief": fmt.Sprintf(simManifest, "brief", int64(time.Second)),
		"kid":   kidManifest,
	})
	s.now = time.Unix(1_700_000_000, 0)
	s.tokens = 1 + s.rng.IntN(4)
	s.tight = []int{0, 1, 0, 2, 5}[s.seed%5]
	s.batchBytes = []int{1 << 10, 8 << 10, 1 << 20}[s.rng.IntN(3)]
	s.snapshots = []int{3, 20, 1 << 20}[s.rng.IntN(3)]
	s.eraseRows = 1 + s.rng.IntN(4)
	s.calm = 20 * time.Second
	if s.rng.IntN(3) == 0 { // little enough to be over it
		s.calm = 10 * time.Minute
		s.limits = must(limit.Parse([]byte(`{"tenants": {"u": {"tenant_fuel_per_second": 2e6}}}`)))
	}
	s.retain(rand.New(rand.NewPCG(s.seed, 3)))
	s.crashes = []int{0, 20, 100, 300}[s.rng.IntN(4)]
	s.refusals = []int{0, 5, 30}[s.rng.IntN(3)]
	if s.hot = s.rng.IntN(4) == 0; s.hot {
		s.tokens = 6
	}
	s.chaos = true
	s.box = newBox()
	s.w = s.open()
	for range 400 + s.rng.IntN(800) {
		s.turn()
		s.verdict()
	}
	s.chaos = false
	s.quiet(s.calm)
	if s.rng.IntN(2) == 0 {
		s.help()
	}
	s.atRest = true
	s.checkDurable()
	s.verdict()
	s.endAll()
	s.checkDurable()
	s.eraseSome()
	s.leave()
	s.verdict()
}

// turn does one thing.
func (s *sim) turn() {
	switch n := s.rng.IntN(100); {
	case n < 52:
		if !s.w.resume() && !s.w.step() {
			s.w.commit()
		}
	case n < 72:
		s.w.step()
	case n < 84:
		s.w.commit()
	case n < 92:
		s.pass()
	default:
		s.request()
	}
	if s.rng.IntN(10_000) < s.crashes {
		s.restart()
	}
}

// pass lets time pass: a little mostly, now and then more than a step may
// take, and sometimes the machine's clock is set back.
func (s *sim) pass() {
	switch n := s.rng.IntN(100); {
	case n < 80:
		s.advance(time.Duration(s.rng.IntN(8)) * time.Millisecond)
	case n < 93:
		s.advance(time.Duration(s.rng.IntN(100)) * time.Millisecond)
	case n < 97:
		s.advance(time.Duration(s.rng.IntN(3000)) * time.Millisecond)
	default:
		s.advance(-time.Duration(s.rng.IntN(300)) * time.Millisecond)
	}
}

// restart crashes the server, or ends it cleanly, and starts another.
func (s *sim) restart() {
	s.total.add(s.w.sched.Counters())
	how := s.rng.IntN(6)
	switch how {
	case 2: // the box goes on
	case 3, 4:
		s.w.life.die(deaths.DeathUnknown)
		s.total.Apart += s.box.phases[deaths.PhaseApart]
		s.total.Control += s.box.phases[deaths.PhaseControl]
		clear(s.box.phases)
	default: // a clean end, or a loss of power
		s.w.life.lose()
	}
	s.w.crash()
	s.after = nil
	switch how {
	case 0, 1: // it ended cleanly: what was open stays open
		s.total.CleanStops++
		s.must(s.store.SetMeta(context.Background(), "unclean_boot", nil))
	case 2: // its store failed, and was opened again in the same process
		s.total.Reopened++
		s.after = s.w.sched
	default:
		s.total.Crashes++
		s.facts.crashes++
	}
	s.advance(time.Duration(1 + s.rng.IntN(2_000_000_000)))
	s.checkDurable()
	clear(s.facts.pending)
	if s.rng.IntN(4) == 0 {
		s.publish()
	}
	s.w = s.open()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *sim) must(err error) {
	if err != nil {
		s.failf("%v", err)
	}
}

// quiet runs everything, fairly, for so long after which nothing is left to do
// but what waits for the outside, or for a time further away.
func (s *sim) quiet(long time.Duration) {
	end := s.clock().Add(long)
	s.w.step()
	for turns := 0; s.clock().Before(end); turns++ {
		if turns > 200_000 {
			s.failf("the server does not come to rest")
			return
		}
		s.soon = time.Time{}
		busy := s.w.resume()
		busy = s.w.stepIfWoken() || busy
		busy = s.w.commit() || busy
		if busy {
			continue
		}
		if s.w.sched.Overslept() {
			s.failf("an attempt and a token are there, and nobody brings them together")
		}
		s.verdict()
		s.note(s.w.due)
		wait := end.Sub(s.clock())
		if !s.soon.IsZero() {
			wait = min(wait, s.soon.Sub(s.clock()))
		}
		s.advance(max(wait, time.Millisecond))
	}
}

// tenantOf says whose a handler is: there are two tenants that want tokens.
func tenantOf(handler string) string { return handler[:1] }

// Handlers and named sessions of each tenant.
const (
	simHandlers = 6
	simSessions = 2
)

// request is a client's: it goes on beside everything else.
func (s *sim) request() {
	s.ops++
	switch n := s.rng.IntN(100); {
	case n < 45 || len(s.facts.starts) == 0:
		s.spawnStart()
	case n < 65:
		s.spawnSend(s.someHandler(), "Work")
	case n < 67:
		s.spawnNudge(s.someHandler())
	case n < 69:
		s.spawnSteer(s.someHandler(), s.rng.IntN(3) > 0)
	case n < 72 || s.hot && n >= 86:
		s.spawnSend(s.someHandler(), "Close")
	case n < 78:
		s.spawnRetry(s.someHandler())
	case n < 80:
		s.spawnMigrate()
	case n < 83:
		s.spawnCancel(s.someRun(), false)
	case n < 87:
		s.spawnCancel(s.someHandler(), true)
	case n < 90:
		s.spawnLook(s.someHandler())
	case n < 95:
		s.spawnOutside()
	case n < 96:
		s.spawnErase()
	default:
		s.spawnReader(s.someHandler())
	}
}

// spawnLook looks at what a run has done and is made of. What it is told is in
// order, ends if the run has, and does not go back.
func (s *sim) spawnLook(id string) {
	s.ops++
	ctx, w, tenant := s.hurried(), s.w, tenantOf(s.facts.handlerOf(id))
	limit := 1 + s.rng.IntN(20)
	w.spawn("look", func() {
		last := uint64(0)
		for {
			part, err := w.sched.History().Timeline(ctx, host.TimelineQuery{Tenant: tenant, ID: id, After: last, Limit: limit})
			w.yield("looked")
			s.expect("timeline", err, host.CodeNotFound, host.CodeUnavailable)
			if err != nil || w.dead.Load() {
				break
			}
			s.total.Told += len(part.Entries)
			for _, e := range part.Entries {
				if e.Seq <= last {
					s.failf("the timeline of %s tells of entry %d after %d", id, e.Seq, last)
				}
				last = e.Seq
			}
			if part.Next == 0 {
				break
			}
			if part.Next != last {
				s.failf("the timeline of %s goes on behind %d, and was told up to %d", id, part.Next, last)
			}
		}
		_, err := w.sched.Export(ctx, tenant, id)
		w.yield("exported")
		s.expect("export", err, host.CodeNotFound, host.CodeConflict, host.CodeUnavailable)
	})
}

func (s *sim) someHandler() string {
	return s.facts.starts[s.rng.IntN(len(s.facts.starts))].handler
}

// someRun names a run by its own id if there is one.
func (s *sim) someRun() string {
	op := s.facts.starts[s.rng.IntN(len(s.facts.starts))]
	if op.runID != "" {
		return op.runID
	}
	return op.handler
}

// hurried is a client that may leave before it is answered.
func (s *sim) hurried() context.Context {
	if !s.chaos || s.rng.IntN(8) != 0 {
		return s.w.ctx
	}
	ctx, leave := context.WithCancel(s.w.ctx)
	s.w.spawn("client leaves", leave)
	return ctx
}

func (s *sim) spawnStart() {
	op := &startOp{handler: fmt.Sprint([]string{"t", "u"}[s.rng.IntN(2)], s.rng.IntN(simHandlers))}
	req := host.StartRequest{Tenant: tenantOf(op.handler), Workflow: []string{"long", "long", "brief"}[s.rng.IntN(3)], HandlerID: op.handler, Wait: s.rng.IntN(4) == 0}
	if s.hot {
		req.SessionID = "s0"
	} else if s.rng.IntN(2) == 0 {
		req.SessionID = fmt.Sprint("s", s.rng.IntN(simSessions))
	}
	if !s.hot { // else many are to run at once
		req.OnBusy = []host.OnBusy{host.OnBusyShare, host.OnBusyShare, host.OnBusyQueue, host.OnBusyQueue, host.OnBusyReject}[s.rng.IntN(5)]
	}
	req.Event.Body, _ = abi.EncodeValue(map[string]any{"tag": fmt.Sprint("op", s.ops)})
	if s.rng.IntN(4) == 0 { // the same key for the same handler: the same request
		req.Once = host.Once{Route: "start", Key: fmt.Sprint(op.handler, req.SessionID, req.Workflow, s.ops/60), Hash: "body"}
		op.once = req.Once.Key
	}
	s.facts.starts = append(s.facts.starts, op)
	ctx, w := s.hurried(), s.w
	w.spawn("start", func() {
		run, err := w.sched.Start(ctx, req)
		w.yield("started")
		if err == nil && !w.dead.Load() {
			s.facts.started(op, run, req.Wait)
			s.total.Starts++
		}
		if op.once != "" {
			s.expect("start once", err, host.CodeConflict, host.CodeOverloaded, host.CodeUnavailable, host.CodeNotFound)
			return
		}
		s.expect("start", err, host.CodeConflict, host.CodeOverloaded, host.CodeUnavailable)
	})
}

func (s *sim) spawnSend(id, typ string) {
	s.ops++
	op := &sendOp{tag: fmt.Sprint("post", s.ops)}
	ctx, w, tenant := s.hurried(), s.w, tenantOf(s.facts.handlerOf(id))
	body, _ := abi.EncodeValue(map[string]any{"tag": op.tag})
	w.spawn("send", func() {
		run, err := w.sched.History().Get(ctx, tenant, id)
		if err == nil {
			op.run, op.session = run.RunID, host.SessionKey{Tenant: tenant, Session: run.SessionID}
			err = w.sched.Send(ctx, tenant, run.RunID, abi.Event{Type: typ, Body: body}, "")
		}
		w.yield("sent")
		if err == nil && !w.dead.Load() {
			s.facts.sent(op)
			s.total.Sends++
		}
		s.expect("send", err, host.CodeConflict, host.CodeNotFound, host.CodeUnavailable)
	})
}

// spawnNudge sends what steps wait for, or will.
func (s *sim) spawnNudge(handler string) {
	body, _ := abi.EncodeValue(map[string]any{"tag": fmt.Sprint("nudge", s.ops), "k": s.ops % 2})
	ctx, w := s.hurried(), s.w
	w.spawn("nudge", func() {
		err := w.sched.Send(ctx, tenantOf(handler), handler, abi.Event{Type: "Nudge", Body: body}, "")
		w.yield("nudged")
		s.expect("nudge", err, host.CodeConflict, host.CodeNotFound, host.CodeUnavailable)
	})
}

// spawnSteer pauses or resumes.
func (s *sim) spawnSteer(handler string, resume bool) {
	ctx, w := s.hurried(), s.w
	w.spawn("steer", func() {
		do := w.sched.Pause
		if resume {
			do = w.sched.Resume
		}
		_, err := do(ctx, tenantOf(handler), handler)
		w.yield("steered")
		s.expect("steer", err, host.CodeConflict, host.CodeNotFound, host.CodeUnavailable)
	})
}

func (s *sim) spawnCancel(id string, purge bool) {
	op := s.facts.cancelBegins(id, purge)
	ctx, w, tenant := s.hurried(), s.w, tenantOf(s.facts.handlerOf(id))
	w.spawn("cancel", func() {
		_, err := w.sched.Cancel(ctx, tenant, id, purge)
		w.yield("cancelled")
		if !w.dead.Load() {
			s.facts.cancelEnds(op, err == nil)
			if err == nil && purge {
				s.total.Purges++
			} else if err == nil {
				s.total.Cancels++
			}
		}
		s.expect("cancel", err, host.CodeNotFound, host.CodeUnavailable, host.CodeConflict)
	})
}

// spawnReader follows a stream to its end, or the world's.
func (s *sim) spawnReader(handler string) {
	seen := s.facts.reader(handler)
	w := s.w
	w.spawn("reader", func() {
		sub, err := w.sched.History().Events(w.ctx, tenantOf(handler), handler, seen.last)
		if err != nil {
			s.expect("events", err, host.CodeNotFound, host.CodeUnavailable)
			return
		}
		defer sub.Close()
		for {
			events, err := sub.Next(w.ctx, time.Hour)
			w.yield("read")
			if w.dead.Load() || w.ctx.Err() != nil {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					s.expect("next", err, host.CodeNotFound, host.CodeUnavailable)
				}
				return
			}
			s.must(seen.take(events))
			s.total.StreamEvents += len(events)
		}
	})
}

// expect fails on an error that a client must not get.
func (s *sim) expect(what string, err error, codes ...host.Code) {
	if err == nil || s.w.dead.Load() || s.w.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	if slices.Contains(codes, host.CodeOf(err)) {
		return
	}
	s.failf("%s: %v (%s)", what, err, host.CodeOf(err))
}
