package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// runaways are kernels that have to be stopped: a tight loop, and a recursion
// without a loop, which comes to its end where nothing stops it.
var runaways = []struct{ name, input string }{
	{"loop", "spin 1"},
	{"recursion", "tree 27"},
}

// notifier is a host.Calls and host.Token that closes begun when the guest
// marks its beginning.
type notifier struct {
	stopwatch
	begun chan struct{}
}

func (n *notifier) Call(im abi.Import, request []byte, clock int64) ([]byte, abi.Status, int64, error) {
	if n.n == 0 {
		close(n.begun)
	}
	return n.stopwatch.Call(im, request, clock)
}

// runs gives the ways to run a kernel until it ends or ctx does.
func runs(b *testing.B, wasm []byte) map[string]func(ctx context.Context, input string, begun chan struct{}) error {
	const memory = 1280 << 20
	s := newBench(b, func(c *Config) { c.Limits.MemoryBytes = memory })
	inv := s.invocation(s.library.add(wasm), nil)
	inv.Limits.MemoryBytes, inv.Limits.Fuel, inv.Limits.WallTime = memory, 1<<60, time.Hour
	closable := newBare(b, wasm, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	closable.memory = hotMemory{buf: make([]byte, memory)}
	return map[string]func(context.Context, string, chan struct{}) error{
		"metered": func(ctx context.Context, input string, begun chan struct{}) error {
			inv := inv
			n := &notifier{begun: begun}
			inv.Input, inv.Calls, inv.Token = []byte(input), n, n
			res, err := s.Invoke(ctx, inv)
			return stoppedBy(ctx, err, res)
		},
		"closable": func(ctx context.Context, input string, begun chan struct{}) error {
			closable.began = begun
			err := closable.call(ctx, []byte(input))
			if exit := (*sys.ExitError)(nil); errors.As(err, &exit) {
				err = ctx.Err()
			}
			if again := closable.fresh(); again != nil {
				return again
			}
			return stoppedBy(ctx, err, host.InvocationResult{})
		},
	}
}

// stoppedBy is nil if a guest was stopped because ctx had ended, or came to its
// end.
func stoppedBy(ctx context.Context, err error, res host.InvocationResult) error {
	if err != nil && errors.Is(err, ctx.Err()) || err == nil && res.Err == nil {
		return nil
	}
	return fmt.Errorf("the guest was not stopped by its context: %+v, %w", res, err)
}

// BenchmarkStop shows how long after a deadline a guest stops: in the sandbox,
// and with wazero's WithCloseOnContextDone.
func BenchmarkStop(b *testing.B) {
	ways := runs(b, guestBuild(b, "kernels", "rust"))
	for _, kernel := range runaways {
		for _, way := range []string{"metered", "closable"} {
			b.Run(kernel.name+"/"+way, func(b *testing.B) {
				var late []time.Duration
				for b.Loop() {
					deadline := time.Now().Add(5 * time.Millisecond)
					ctx, cancel := context.WithDeadline(context.Background(), deadline)
					if err := ways[way](ctx, kernel.input, make(chan struct{})); err != nil {
						b.Fatal(err)
					}
					late = append(late, time.Since(deadline))
					cancel()
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(median(late))/1e3, "us-late")
				b.ReportMetric(float64(late[len(late)-1])/1e3, "us-late-at-worst")
			})
		}
	}
}

// BenchmarkCollection shows how long a garbage collection of the host takes
// while a guest runs: none, one in a tight loop, and one that fills a gigabyte
// by single instructions.
func BenchmarkCollection(b *testing.B) {
	ways := runs(b, guestBuild(b, "kernels", "rust"))
	b.Run("no guest", collect)
	for _, kernel := range []struct{ name, input string }{{"loop", "spin 1"}, {"fill", "fill 1024"}} {
		for _, way := range []string{"metered", "closable"} {
			b.Run(kernel.name+"/"+way, func(b *testing.B) {
				ctx, cancel := context.WithCancel(context.Background())
				begun, ended := make(chan struct{}), make(chan error, 1)
				go func() { ended <- ways[way](ctx, kernel.input, begun) }()
				select {
				case <-begun:
					collect(b)
					if len(ended) > 0 {
						b.Error("the guest ended while it was watched")
					}
					cancel()
					if err := <-ended; err != nil {
						b.Fatal(err)
					}
				case err := <-ended:
					cancel()
					b.Fatalf("it ended before it began: %v", err)
				}
			})
		}
	}
}

func collect(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		runtime.GC()
		took = append(took, time.Since(began))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(took))/1e3, "us/GC")
	b.ReportMetric(float64(took[len(took)-1])/1e3, "us/GC-at-worst")
}
