package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hostcall"
)

const counterManifest = `{"abi": 1, "workflow": "counter", "timeout": 0,
  "events": {"Work": {}, "Read": {}, "Done": {}},
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work", "Read"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Done"], "workers": 8},
    {"name": "read", "accepts": ["Read"], "emits": ["Done"], "workers": 4},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// Eight workers read, add and write one counter, on their own goroutines: no
// edit is lost, whoever loses often gets the write ticket, and readers, beside
// the edits and inside them, never wait.
func TestEightWorkersEditOneCounter(t *testing.T) {
	const invocations, each, readers = 2300, 5, 300
	var final atomic.Int64
	var readersParked, reads atomic.Int64
	seen := func(c *call) (n int64, err error) {
		raw, err := c.do(abi.ImportStateGet, []any{"n", 0})
		if errors.Is(err, hostcall.ErrParked) {
			readersParked.Add(1)
		}
		if err != nil {
			return 0, err
		}
		reads.Add(1)
		v, err := abi.DecodeValue(raw)
		n, _ = v.(int64)
		return n, err
	}
	edit := func(c *call) error {
		raw, err := c.do(abi.ImportStateBegin, []any{"n"})
		if err != nil {
			return err
		}
		v, err := abi.DecodeValue(raw)
		if err != nil {
			return err
		}
		runtime.Gosched() // let the others in
		beside, err := seen(c)
		if err != nil {
			return err
		}
		if n := v.(int64); beside < n {
			return fmt.Errorf("the edit began at %d, a read inside it gives %d", n, beside)
		}
		runtime.Gosched()
		_, err = c.do(abi.ImportStateCommit, []any{v.(int64) + 1})
		return err
	}
	b := &bench{tokens: 8, modules: newSimModules(t, map[string]string{"counter": counterManifest})}
	b.guest = func(_ context.Context, c *call) (abi.StepOutput, error) {
		switch c.in.Step {
		case "begin":
			if _, err := c.do(abi.ImportStateEdit, []any{[]any{"set", "n", 0}}); err != nil {
				return abi.StepOutput{}, err
			}
			out := list(invocations)
			for i := range readers {
				out.Events[i*invocations/readers].Type = "Read"
			}
			return out, nil
		case "work":
			for range each {
				if err := edit(c); err != nil {
					return abi.StepOutput{}, err
				}
			}
		case "read":
			var last int64
			for range 50 {
				n, err := seen(c)
				if err != nil {
					return abi.StepOutput{}, err
				}
				if n < last {
					return abi.StepOutput{}, fmt.Errorf("the counter went from %d to %d", last, n)
				}
				last = n
				runtime.Gosched()
			}
		case "end":
			n, err := seen(c)
			final.Store(n)
			return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: abi.EmptyMap}}}, err
		}
		return abi.StepOutput{}, nil
	}
	b.open(t)
	b.now = time.Now()
	var runners sync.WaitGroup
	jctx, stopJournal := context.WithCancel(t.Context())
	sctx, stop := context.WithCancel(t.Context())
	journal, runs := make(chan error, 1), make(chan error, 1)
	runners.Go(func() { journal <- b.journal.Run(jctx) })
	runners.Go(func() { runs <- b.sched.Run(sctx, time.Minute) })
	run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "counter", Wait: true})
	stop()
	if err := errors.Join(err, <-runs); err != nil {
		t.Fatal(err)
	}
	stopJournal()
	if err := <-journal; err != nil {
		t.Fatal(err)
	}
	runners.Wait()
	c := b.sched.Counters()
	t.Logf("%+v, %d reads", c, reads.Load())
	if want := int64((invocations - readers) * each); run.Status != host.StatusCompleted || final.Load() != want {
		t.Fatalf("the run is %s (%s), the counter is at %d, want %d", run.Status, run.Error, final.Load(), want)
	}
	if c.Conflicts == 0 || c.Parks == 0 {
		t.Errorf("%d conflicts, %d waits for the write ticket: there was no contention", c.Conflicts, c.Parks)
	}
	if readersParked.Load() != 0 {
		t.Errorf("readers waited %d times", readersParked.Load())
	}
}
