package scheduler_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/journal"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/scheduler"
	"github.com/weftrun/weft/host/scheduler/continuation"
	"github.com/weftrun/weft/host/scheduler/suspects"
	"github.com/weftrun/weft/host/store/memory"
	"github.com/weftrun/weft/host/usage"
)

// bench is a scheduler, with all that is below it, that a test steps by hand.
type bench struct {
	t       testing.TB
	store   host.Store
	journal *journal.Journal
	// snapshots, snapshotBytes and keep are SnapshotEntries, SnapshotBytes and KeepEntries.
	snapshots, snapshotBytes int
	keep                     uint64
	sched                    *scheduler.Scheduler
	modules                  simModules
	tokens                   int
	limits                   *limit.Table
	outside                  host.Resources // default: none
	log                      io.Writer      // of the server; default: the test's
	batch                    int            // bytes of a commit; default: the journal's
	seldom                   int            // rest commits after so many steps; default: each
	real                     bool           // the clock is package time's, a bubble's mostly
	dueAtOnce, erase         int
	quotas                   usage.Quotas // default: none
	fails                    bool         // commits may fail, for good
	beside                   bool         // work waits for commits: it goes on beside the test
	begun                    int          // such work
	aside                    atomic.Int64 // such work that has not ended
	after                    *scheduler.Scheduler
	box                      *box       // nil: no notes are taken
	life                     *boxLife   // of the scheduler
	code                     *codeCache // default: all code is always there
	memory                   func() (live, limit int64)
	spares                   bool // the newest call of Config.Spare

	mu    sync.Mutex // guards now
	now   time.Time
	guest func(ctx context.Context, g *call) (abi.StepOutput, error)
}

// call is one run of a guest: a Go function.
type call struct {
	in    abi.StepInput
	inv   host.Invocation
	clock int64
	burnt uint64 // units so far
	pays  bool   // burns what calls cost, as metered guests do
}

// burn computes for so many units, a slice at a time, as metered guests do.
func (c *call) burn(ctx context.Context, units uint64) error {
	for ; units > 0 && ctx.Err() == nil; units -= min(units, slice) {
		c.burnt += min(units, slice)
		if err := c.inv.Token.Checkpoint(min(units, slice)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// slice is what a guest burns between two checkpoints, in units.
const slice = 50_000

// do makes a host call. A nil answer and no error: the host refused it.
func (c *call) do(im abi.Import, req any) (abi.Raw, error) {
	b, err := abi.EncodeValue(req)
	if err != nil {
		return nil, err
	}
	resp, status, clock, err := c.inv.Calls.Call(im, b, c.clock)
	if err == nil && c.pays {
		err = c.inv.Token.Checkpoint(c.inv.Calls.(host.Metered).Charged())
	}
	if err != nil || status != abi.StatusOK {
		return nil, err
	}
	c.clock = clock
	return resp, nil
}

// Inspect, Describe and Invoke implement host.Sandbox.
func (b *bench) Inspect(context.Context, []byte, host.Limits) ([]string, []host.Problem) {
	return nil, nil
}
func (b *bench) Describe(context.Context, string, []byte, host.Limits) (host.Description, error) {
	return host.Description{}, nil
}

// Ready and Prepare implement host.Sandbox: code is always there, unless the test says
// what it takes to prepare some.
func (b *bench) Ready(inv *host.Invocation) bool { return b.code == nil || b.code.ready(inv) }
func (b *bench) Prepare(ctx context.Context, inv *host.Invocation) (uint64, error) {
	return b.code.prepare(ctx, inv)
}
func (b *bench) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	in, err := abi.DecodeStepInput(inv.Input)
	if err != nil {
		return host.InvocationResult{}, err
	}
	c := &call{in: in, inv: inv, clock: inv.Clock}
	out, err := b.guest(ctx, c)
	if own := (*abi.Error)(nil); errors.As(err, &own) && !errors.As(err, new(*hostcall.LimitError)) {
		return host.InvocationResult{Err: own, Fuel: c.burnt + 1}, nil
	}
	if err != nil {
		return host.InvocationResult{Fuel: c.burnt}, err
	}
	data, err := out.Encode()
	return host.InvocationResult{Output: data, Fuel: c.burnt + 1}, err
}

func (b *bench) clock() time.Time {
	if b.real {
		return time.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	b.now = b.now.Add(d)
	b.mu.Unlock()
}

// twoStep is a workflow whose start emits Work, in a list, and whose run ends by
// a Close from outside or its deadline.
const twoStep = `{"abi": 1, "workflow": "two", "timeout": 60000000000,
  "events": {"Work": {}, "Close": {"kind": "human_response"}},
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["StopEvent"], "workers": 100},
    {"name": "close", "accepts": ["Close"], "emits": ["StopEvent"]}]}`

// open makes a bench over its store, a fresh one if it has none.
func (b *bench) open(t testing.TB) *bench {
	t.Helper()
	b.t = t
	if b.store == nil {
		b.store, b.now = memory.New(), time.Unix(1_700_000_000, 0)
	}
	if b.modules == nil {
		b.modules = newSimModules(t, map[string]string{"two": twoStep})
	}
	if b.log == nil {
		b.log = t.Output()
	}
	var err error
	b.journal, err = journal.Open(t.Context(), journal.Config{Store: b.store, MaxBatchBytes: b.batch, Wake: func() { b.sched.Nudge() }})
	if err != nil {
		t.Fatal(err)
	}
	var notes suspects.Notes
	if b.box != nil {
		b.life = b.box.open()
		notes = b.life
	}
	b.sched, err = scheduler.New(t.Context(), scheduler.Config{
		Notes: notes, Journal: b.journal, Store: b.store, Modules: b.modules, Sandbox: b,
		Answers: func(l scheduler.Live, o engine.AttemptOpen, r []engine.CallRecord) scheduler.Answers {
			return hostcall.New(l, o, r)
		},
		Rehearse: func(o engine.AttemptOpen, r []engine.CallRecord, p *engine.Pending) continuation.Rehearsal {
			return hostcall.NewRehearsal(o, r, p)
		},
		Classify: classify, Parked: hostcall.ErrParked, Tokens: b.tokens, IdleAfter: 20 * time.Millisecond, Now: b.clock, Limits: b.limits, Resources: b.outside, Quotas: b.quotas,
		SnapshotEntries: b.snapshots, SnapshotBytes: b.snapshotBytes, KeepEntries: b.keep, After: b.after, DueAtOnce: b.dueAtOnce, EraseRows: b.erase, Memory: b.memory, Spare: func(on bool) { b.spares = on },
		Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// step gives the scheduler's work at this time.
func (b *bench) step() []func() {
	work, _ := b.sched.Step(b.clock())
	return work
}

// commit makes what is queued durable.
func (b *bench) commit() {
	b.t.Helper()
	for {
		commit, _ := b.journal.Step(b.clock().Add(time.Hour))
		if commit == nil {
			if b.fails && b.journal.Err() != nil {
				b.advance(time.Second) // it is tried again later
			}
			return
		}
		if err := commit(b.t.Context()); err != nil && !b.fails {
			b.t.Fatal(err)
		}
	}
}

// rest carries out everything until nothing is left to do.
func (b *bench) rest() {
	b.t.Helper()
	for n := 0; ; n++ {
		work := b.step()
		for _, w := range work {
			if b.beside {
				b.begun++
				b.aside.Add(1)
				go func() {
					defer b.aside.Add(-1)
					w()
				}()
				continue
			}
			w()
		}
		if n >= b.seldom || len(work) == 0 {
			b.commit()
			n = 0
		}
		if len(work) == 0 {
			return
		}
	}
}

// settle goes on until nothing is left to do, beside the test neither.
func (b *bench) settle() {
	b.t.Helper()
	for {
		idle, begun := b.aside.Load() == 0, b.begun
		if b.rest(); idle && b.begun == begun {
			return
		}
		runtime.Gosched()
	}
}

// await runs a client's request while everything goes on.
func await[T any](b *bench, request func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := request()
		done <- answer{v, err}
	}()
	for {
		select {
		case a := <-done:
			b.rest()
			return a.v, a.err
		default:
			b.rest()
			runtime.Gosched()
		}
	}
}

// start starts a run of twoStep with so many Work events.
func (b *bench) start(handler, session string) host.Run {
	b.t.Helper()
	run, err := await(b, func() (host.Run, error) {
		return b.sched.Start(b.t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: handler, SessionID: session})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// status is a run's, as the store has it.
func (b *bench) status(runID string) host.Status {
	b.t.Helper()
	run, err := b.store.Run(b.t.Context(), "t", runID)
	if err != nil {
		b.t.Fatal(err)
	}
	return run.Status
}

func list(n int) abi.StepOutput {
	events := make([]abi.Event, n)
	for i := range events {
		events[i] = abi.Event{Type: "Work", Body: abi.EmptyMap}
	}
	return abi.StepOutput{Events: events, List: true}
}
