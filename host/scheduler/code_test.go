package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// codeCache is the code that a bench's sandbox has in memory.
type codeCache struct {
	mu       sync.Mutex // guards what follows
	here     bool
	prepared int
	fail     error
	keep     bool          // what is prepared stays
	wait     chan struct{} // Prepare waits until it is closed
}

func (c *codeCache) ready(*host.Invocation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here
}

func (c *codeCache) prepare(ctx context.Context, _ *host.Invocation) (uint64, error) {
	select {
	case <-c.wait:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prepared++
	c.here = c.fail == nil && c.keep
	return 5_000_000, c.fail
}

// While the code of a module is prepared, its attempts hold no core: with one core,
// 50 of them wait, and another run passes. The code is prepared once, and nobody is
// counted as having begun.
func TestCodeIsPreparedWithoutACore(t *testing.T) {
	b := &bench{tokens: 1, code: &codeCache{keep: true}}
	begun := 0
	b.guest = func(context.Context, *call) (abi.StepOutput, error) {
		begun++
		return stopEvent(), nil
	}
	live(t, b, func(t *testing.T) {
		b.code.wait = make(chan struct{}) // of the bubble
		for i := range 50 {
			b.begin(t, "t", string(rune('A'+i)))
		}
		pass(1) // until everybody waits
		if c, l := b.sched.Counters(), b.sched.Load(); c.CodeWaits != 50 || l.Running != 0 || l.Ready != 0 || begun != 0 || c.Attempts != 0 {
			t.Errorf("%+v, %+v, %d guests have begun", c, l, begun)
		}
		close(b.code.wait)
		b.solo(t, "t")
		pass(1) // the others may come after it
	})
	if b.code.prepared != 1 || begun != 51 {
		t.Errorf("prepared %d times, %d guests have begun", b.code.prepared, begun)
	}
}

// Code that cannot be kept, or prepared, does not keep an attempt from its sandbox
// for ever: it is asked for three times, and then the sandbox runs it or says why not.
func TestCodeThatDoesNotStay(t *testing.T) {
	for name, fail := range map[string]error{"dropped again": nil, "not built": errors.New("the compiler fails")} {
		t.Run(name, func(t *testing.T) {
			b := &bench{tokens: 1, code: &codeCache{fail: fail}}
			b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
			live(t, b, func(t *testing.T) {
				b.code.wait = make(chan struct{})
				close(b.code.wait)
				if run := b.solo(t, "t"); run.Status != host.StatusCompleted {
					t.Errorf("%+v", run)
				}
			})
			if b.code.prepared != 3 {
				t.Errorf("prepared %d times", b.code.prepared)
			}
		})
	}
}

// A compiler that takes ten times the timeouts of a run and of its step, for code that
// the cache has lost, costs the run neither of the two.
func TestCodeThatComesLateIsNoTimeout(t *testing.T) {
	b := unserved(t)
	b.code = &codeCache{keep: true}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	live(t, b, func(t *testing.T) {
		b.code.wait = make(chan struct{}) // of the bubble
		if _, err := b.startOf("quick", "t"); err != nil {
			t.Fatal(err)
		}
		pass(450 * time.Second)
		close(b.code.wait)
		pass(time.Second)
		if run := b.of("quick", "t"); run.Status != host.StatusCompleted {
			t.Errorf("%+v", run)
		}
	})
	if b.code.prepared != 1 {
		t.Errorf("prepared %d times", b.code.prepared)
	}
}
