package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// kernels are pieces of ordinary work, of 1 to 5 ms each; see
// testdata/plugins/kernels. sum is what all compilers make of them.
var kernels = []struct {
	name   string
	rounds int
	sum    uint64
}{
	{"cbor", 20, 0x66c735eee83fd4bb},
	{"hashmap", 8, 0x1f89c58},
	{"loadsum", 120, 0xefe1f308b7200},
	{"matrix", 8, 0xc40b640000000},
	{"regexp", 16, 0x1e00},
	{"sha256", 36, 0xef8d6cfabe060405},
	{"sort", 18, 0x180016a98f71c1f},
	{"strings", 20, 0xd07217007e386389},
}

// stopwatch is a host.Calls and host.Token that takes the time at each call of
// now, and allocates nothing.
type stopwatch struct {
	marks [2]time.Time
	n     int
}

func (s *stopwatch) Call(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
	if s.n < len(s.marks) {
		s.marks[s.n] = time.Now()
	}
	s.n++
	return abi.Null, abi.StatusOK, clock, nil
}

func (s *stopwatch) Print(uint32, []byte) {}

func (s *stopwatch) Checkpoint(uint64) error { return nil }

// runner runs a kernel one way: it gives the time between the kernel's
// beginning and its end, and its checksum.
type runner func(input []byte) (time.Duration, uint64, error)

// meteredRunner runs kernels as the sandbox runs everything.
func meteredRunner(tb testing.TB, b bench, wasm []byte) runner {
	tb.Helper()
	digest := b.library.add(wasm)
	return func(input []byte) (time.Duration, uint64, error) {
		var s stopwatch
		inv := b.invocation(digest, input)
		inv.Calls, inv.Token = &s, &s
		res, err := b.Invoke(context.Background(), inv)
		if err == nil && res.Err != nil {
			err = res.Err
		}
		if err != nil || s.n != len(s.marks) || len(res.Output) != answerHead+8 {
			return 0, 0, fmt.Errorf("run %q: %d marks, output % x: %w", input, s.n, res.Output, err)
		}
		return s.marks[1].Sub(s.marks[0]), binary.LittleEndian.Uint64(res.Output[answerHead:]), nil
	}
}

// bareRunner runs kernels as the compiler made them. ctx can end, as a
// server's does.
func bareRunner(tb testing.TB, ctx context.Context, wasm []byte, config wazero.RuntimeConfig) runner {
	tb.Helper()
	b := newBare(tb, wasm, config)
	return func(input []byte) (time.Duration, uint64, error) {
		if err := b.call(ctx, input); err != nil {
			return 0, 0, err
		}
		if len(b.marks) != 2 || len(b.output) != answerHead+8 {
			return 0, 0, fmt.Errorf("run %q: %d marks, output % x", input, len(b.marks), b.output)
		}
		return b.marks[1].Sub(b.marks[0]), binary.LittleEndian.Uint64(b.output[answerHead:]), nil
	}
}

// ratios are those of one kernel from one compiler.
type ratios struct {
	plain             time.Duration // of the original module, never stopped
	metered, closable float64       // times that
}

// BenchmarkKernels compares, call by call in turns, what guests compute in the
// sandbox, with what they do as they were compiled: where nothing can stop
// them, and where wazero's WithCloseOnContextDone can. Times are taken inside of
// the invocation, from the kernel's beginning to its end.
func BenchmarkKernels(b *testing.B) {
	for _, compiler := range guestCompilers {
		b.Run(compiler, func(b *testing.B) {
			wasm := guestBuild(b, "kernels", compiler)
			ctx := b.Context()
			ways := []runner{
				bareRunner(b, ctx, wasm, wazero.NewRuntimeConfig()),
				meteredRunner(b, newBench(b, nil), wasm),
				bareRunner(b, ctx, wasm, wazero.NewRuntimeConfig().WithCloseOnContextDone(true)),
			}
			for _, k := range kernels {
				b.Run(k.name, func(b *testing.B) {
					r := inTurns(b, ways, fmt.Appendf(nil, "%s %d", k.name, k.rounds), k.sum)
					b.ReportMetric(0, "ns/op") // is of all ways together
					b.ReportMetric(float64(r.plain)/1e6, "plain-ms")
					b.ReportMetric(r.metered, "metered/plain")
					b.ReportMetric(r.closable, "closable/plain")
				})
			}
		})
	}
}

// closableEvery is the number of turns for each with the closable way, which
// takes so long that little would be left for the others.
const closableEvery = 8

// inTurns runs a kernel in all ways, one after the other, again and again, and
// gives the medians of the ratios within each turn.
func inTurns(b *testing.B, ways []runner, input []byte, want uint64) ratios {
	b.Helper()
	run := func(way int) time.Duration {
		took, sum, err := ways[way](input)
		if err != nil || sum != want {
			b.Fatalf("way %d: checksum %#x, want %#x: %v", way, sum, want, err)
		}
		return took
	}
	for range 2 {
		for way := range ways {
			run(way)
		}
	}
	var plain []time.Duration
	var metered, closable []float64
	for n := 0; b.Loop(); n++ {
		var took [2]time.Duration
		for i := range took {
			way := (n + i) % len(took)
			took[way] = run(way)
		}
		plain = append(plain, took[0])
		metered = append(metered, float64(took[1])/float64(took[0]))
		if n%closableEvery == 0 {
			closable = append(closable, float64(run(2))/float64(took[0]))
		}
	}
	return ratios{median(plain), median(metered), median(closable)}
}

func median[T float64 | time.Duration](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// The kernels give the same from every compiler, metered or not.
func TestKernelsAgree(t *testing.T) {
	b := newBench(t, nil)
	for _, compiler := range testedCompilers() {
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			wasm := guestBuild(t, "kernels", compiler)
			plain := bareRunner(t, t.Context(), wasm, wazero.NewRuntimeConfig())
			metered := meteredRunner(t, b, wasm)
			for _, k := range kernels {
				input := fmt.Appendf(nil, "%s %d", k.name, k.rounds)
				for way, run := range []runner{plain, metered} {
					if took, sum, err := run(input); err != nil || sum != k.sum {
						t.Errorf("%s, way %d: checksum %#x in %v, want %#x: %v", k.name, way, sum, took, k.sum, err)
					}
				}
			}
		})
	}
}

var _ host.Calls = (*stopwatch)(nil)
