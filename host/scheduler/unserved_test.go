package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Workflows of one step: hog has no timeout, quick has one of 45 s for the run and of
// 10 s for the step, plain has the default.
const (
	hog   = `{"abi": 1, "workflow": "hog", "timeout": 0, "events": {}, "steps": [{"name": "hog", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`
	quick = `{"abi": 1, "workflow": "quick", "timeout": 45000000000, "events": {"Answer": {"kind": "human_response"}},
	  "steps": [{"name": "quick", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"], "timeout": 10000000000}]}`
	plain = `{"abi": 1, "workflow": "plain", "events": {"Answer": {"kind": "human_response"}},
	  "steps": [{"name": "ask", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]}]}`
	set = `{"abi": 1, "workflow": "set", "timeout": 45000000000, "events": {"Answer": {"kind": "human_response"}},
	  "steps": [{"name": "ask", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]}]}`
)

// unserved is a bench of one core with these workflows.
func unserved(t *testing.T) *bench {
	return &bench{tokens: 1, modules: newSimModules(t, map[string]string{"hog": hog, "quick": quick, "plain": plain, "set": set})}
}

func (b *bench) startOf(workflow, tenant string) (host.Run, error) {
	return b.sched.Start(b.t.Context(), host.StartRequest{Tenant: tenant, Workflow: workflow, HandlerID: workflow})
}

// within carries out everything from inside of a guest until a request is through.
func (b *bench) within(request func() error) {
	done := make(chan error, 1)
	go func() { done <- request() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				b.t.Error(err)
			}
			return
		default:
			b.workOff()
		}
	}
}

// workOff does what is to be done now, once.
func (b *bench) workOff() {
	for _, w := range b.step() {
		w()
	}
	b.commit()
}

// seconds lets so many seconds go by.
func (b *bench) seconds(n int) {
	for range n {
		b.advance(time.Second)
		b.workOff()
	}
}

// idle lets so many seconds go by in which no guest runs.
func (b *bench) idle(n int) {
	for range n {
		b.advance(time.Second)
		b.rest()
	}
}

func (b *bench) of(workflow, tenant string) host.Run {
	b.t.Helper()
	run, err := b.sched.History().Get(b.t.Context(), tenant, workflow)
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// extended counts the entries that have moved a timeout of a run.
func (b *bench) extended(workflow string) (n int) {
	b.t.Helper()
	tl, err := b.sched.History().Timeline(b.t.Context(), host.TimelineQuery{Tenant: "t", ID: workflow, Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range tl.Entries {
		if e.Kind == "extend" {
			n++
		}
	}
	return n
}

// A run that is ready and gets no core for ten times its timeouts, of the run and of
// its step, loses none of them; and one entry is written each time that one was due.
func TestTimeWithoutCoreIsNoTimeout(t *testing.T) {
	b := unserved(t)
	ran := 0
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "quick" {
			ran++
			return stopEvent(), nil
		}
		b.within(func() error { _, err := b.startOf("quick", "t"); return err })
		b.seconds(450)
		if ran > 0 {
			t.Error("there is one core, and two guests run")
		}
		return stopEvent(), nil
	}
	b.open(t)
	if _, err := await(b, func() (host.Run, error) { return b.startOf("hog", "t") }); err != nil {
		t.Fatal(err)
	}
	if run := b.of("quick", "t"); run.Status != host.StatusCompleted || ran != 1 {
		t.Errorf("%+v, run %d times", run, ran)
	}
	// The step's timeout of 10 s was due 45 times, that of the run 10 times.
	if n := b.extended("quick"); n < 6 || n > 60 {
		t.Errorf("%d entries have moved a timeout", n)
	}
}

// What a run does with its core counts: the timeouts strike when that is as long.
func TestTimeWithCoreCounts(t *testing.T) {
	b := unserved(t)
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		b.seconds(9)
		if ctx.Err() != nil {
			t.Error("the timeout of 10 s strikes after 9 s")
		}
		b.seconds(2)
		if ctx.Err() == nil {
			t.Error("the timeout of 10 s does not strike after 11 s")
		}
		return abi.StepOutput{}, ctx.Err()
	}
	b.open(t)
	if _, err := await(b, func() (host.Run, error) { return b.startOf("quick", "t") }); err != nil {
		t.Fatal(err)
	}
	if run := b.of("quick", "t"); run.ErrorCode != host.RunTimeout || b.extended("quick") != 0 {
		t.Errorf("%+v, extended %d times", run, b.extended("quick"))
	}
}

// While the host cannot run a guest, and tries again later, no timeout counts.
func TestTimePutOffIsNoTimeout(t *testing.T) {
	b := unserved(t)
	tries := 0
	b.guest = func(context.Context, *call) (abi.StepOutput, error) {
		if tries++; tries < 40 {
			return abi.StepOutput{}, &host.Error{Code: host.CodeUnavailable, Message: "no memory"}
		}
		return stopEvent(), nil
	}
	b.open(t)
	if _, err := await(b, func() (host.Run, error) { return b.startOf("quick", "t") }); err != nil {
		t.Fatal(err)
	}
	b.idle(250)
	if run := b.of("quick", "t"); run.Status != host.StatusCompleted {
		t.Errorf("%+v after %d tries", run, tries)
	}
}

// What a run waited for a core counts for it also when it has left memory since, and
// when another server goes on with it. A set timeout counts the rest of the wait.
func TestTimeWithoutCoreIsKept(t *testing.T) {
	for name, between := range map[string]func(*bench){
		"in memory":      func(*bench) {},
		"evicted":        func(b *bench) { b.idle(2) },
		"another server": func(b *bench) { b.idle(2); b.open(b.t) },
	} {
		t.Run(name, func(t *testing.T) {
			b := unserved(t)
			b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
				if g.in.Step == "ask" {
					resp, err := g.do(abi.ImportWait, map[string]any{"type": "Answer"})
					if err != nil || resp == nil {
						return abi.StepOutput{}, err
					}
					return stopEvent(), nil
				}
				b.within(func() error { _, err := b.startOf("set", "t"); return err })
				b.seconds(40)
				return stopEvent(), nil
			}
			b.open(t)
			if _, err := await(b, func() (host.Run, error) { return b.startOf("hog", "t") }); err != nil {
				t.Fatal(err)
			}
			b.rest()
			between(b)
			b.idle(41)
			if run := b.of("set", "t"); run.Status != host.StatusRunning {
				t.Fatalf("%+v", run)
			}
			b.idle(5)
			if run := b.of("set", "t"); run.ErrorCode != host.RunTimeout {
				t.Errorf("its 45 s are over: %+v", run)
			}
		})
	}
}

// An attempt that is open when the server ends loses none of its timeouts by the time
// in which nobody could run it, before the end and until it is loaded again.
func TestTimeoutsOverRestarts(t *testing.T) {
	b := unserved(t)
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "quick" {
			return stopEvent(), nil
		}
		b.within(func() error { _, err := b.startOf("quick", "t"); return err })
		b.seconds(9)
		return abi.StepOutput{}, context.Canceled // the server ends
	}
	b.open(t)
	if _, err := await(b, func() (host.Run, error) { return b.startOf("hog", "a") }); err != nil {
		t.Fatal(err)
	}
	b.guest = func(ctx context.Context, _ *call) (abi.StepOutput, error) {
		b.seconds(8) // of the 10 that the step has
		return stopEvent(), ctx.Err()
	}
	b.advance(5 * time.Second)
	b.open(t)
	b.advance(20 * time.Second) // before anything is loaded
	b.rest()
	if run := b.of("quick", "t"); run.Status != host.StatusCompleted {
		t.Errorf("%+v", run)
	}
}

// The default timeout does not count the time in which all of a run waits: the run
// needs no timer. One that the author has set does.
func TestDefaultTimeoutCountsWork(t *testing.T) {
	b := unserved(t)
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		resp, err := g.do(abi.ImportWait, map[string]any{"type": "Answer"})
		if err != nil || resp == nil {
			return abi.StepOutput{}, err
		}
		return stopEvent(), nil
	}
	b.open(t)
	for _, workflow := range []string{"plain", "set"} {
		if _, err := await(b, func() (host.Run, error) { return b.startOf(workflow, "t") }); err != nil {
			t.Fatal(err)
		}
	}
	b.idle(50)
	if run := b.of("set", "t"); run.ErrorCode != host.RunTimeout {
		t.Errorf("the timeout that its author has set is over: %+v", run)
	}
	keys, next, err := b.store.Due(t.Context(), b.clock().Add(1000*time.Hour).UnixNano(), 10)
	if err != nil || len(keys) != 0 || next != host.WakeNever {
		t.Errorf("who waits has a timer: %v at %d, %v", keys, next, err)
	}
	b.advance(1000 * time.Hour)
	b.open(t)
	b.rest()
	ev := abi.Event{Type: "Answer", Body: abi.EmptyMap}
	if _, err := await(b, func() (struct{}, error) { return struct{}{}, b.sched.Send(t.Context(), "t", "plain", ev, "") }); err != nil {
		t.Fatal(err)
	}
	if run := b.of("plain", "t"); run.Status != host.StatusCompleted {
		t.Errorf("%+v", run)
	}
}
