package rewrite

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// kernel is one export of a module of kernels, and how often it runs at once.
type kernel struct {
	name string
	n    uint64
}

var watKernels = []kernel{
	{"sum", 1 << 18}, {"sum4", 1 << 17}, {"count", 1 << 19}, {"mix", 1 << 17}, {"fib", 20}, {"bytes", 1 << 17},
	{"collatz", 1 << 10}, {"copies", 1 << 14}, {"calls", 1 << 17}, {"machine", 1 << 16},
}

var goKernels = []kernel{
	{"sort", 1 << 10}, {"sha256", 2}, {"crc32", 10}, {"matrix", 2}, {"fib", 17}, {"copying", 1 << 8},
	{"count", 10}, {"sieve", 1 << 16}, {"text", 20}, {"tree", 1 << 10},
	{"cbor", 100}, {"regexp", 4},
}

// named are the kernels that stand for ordinary guests.
var named = []string{"cbor", "sort", "regexp", "sha256", "matrix", "text", "count"}

// kernelModules are the modules, by the toolchain that makes them.
func kernelModules(tb testing.TB) (names []string, modules map[string][]byte) {
	modules = map[string][]byte{"wat": readFile(tb, "testdata", "kernels.wasm")}
	names = append(names, "wat")
	for _, tool := range []struct {
		name string
		args []string
	}{
		{"tinygo", []string{"build", "-target=wasip1", "-no-debug", "-opt=2"}},
		{"go", []string{"build", "-ldflags=-s -w"}},
	} {
		path, err := exec.LookPath(tool.name)
		if err != nil {
			tb.Logf("left out: %v", err)
			continue
		}
		wasm := filepath.Join(tb.TempDir(), "kernels.wasm")
		cmd := exec.Command(path, append(tool.args, "-buildmode=c-shared", "-o", wasm, filepath.Join("testdata", "kernels.go"))...)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if tool.name == "tinygo" {
			cmd.Env = os.Environ()
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		names, modules[tool.name] = append(names, tool.name), readFile(tb, wasm)
	}
	return names, modules
}

// timed gives the fastest of several runs of an export.
func timed(tb testing.TB, guest api.Module, k kernel, runs int) time.Duration {
	fn, best := guest.ExportedFunction(k.name), time.Hour
	for range runs {
		begin := time.Now()
		if _, err := fn.Call(context.Background(), k.n); err != nil {
			tb.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	return best
}

// BenchmarkKernels compares kernels as they are with the same metered, one
// after the other in one run: slower is the ratio of their times, charged the
// ratio of their units to those of a module that charges each way exactly.
func BenchmarkKernels(b *testing.B) {
	names, modules := kernelModules(b)
	var slower, ordinary, charged []float64
	for _, name := range names {
		original := modules[name]
		metered := mustRewrite(b, original, Options{})
		precise, err := rewriteWith(original, Options{}, exact)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %+v", name, metered.Stats)
		plainHost, meterHost, exactHost := newMachine(b, compiler), newMachine(b, compiler), newMachine(b, compiler)
		plain, meter, ex := plainHost.start(b, original), meterHost.start(b, metered.Wasm), exactHost.start(b, precise.Wasm)
		kernels := goKernels
		if name == "wat" {
			kernels = watKernels
		}
		for _, k := range kernels {
			b.Run(name+"/"+k.name, func(b *testing.B) {
				without, with, exactly := time.Hour, time.Hour, time.Hour
				units, fine := int64(math.MaxInt64), int64(math.MaxInt64) // of a run without the guest's collector
				for range 30 * b.N {
					without = min(without, timed(b, plain, k, 1))
					before, exactBefore := meterHost.total(meter), exactHost.total(ex)
					with = min(with, timed(b, meter, k, 1))
					exactly = min(exactly, timed(b, ex, k, 1))
					units, fine = min(units, meterHost.total(meter)-before), min(fine, exactHost.total(ex)-exactBefore)
				}
				ratio, over := float64(with)/float64(without), quarters*float64(units)/float64(fine)
				b.ReportMetric(float64(without.Microseconds()), "us")
				b.ReportMetric(ratio, "slower")
				if !strings.HasPrefix(k.name, "cop") { // helpers charge whole units in either
					b.ReportMetric(over, "charged")
					charged = append(charged, over)
				}
				b.ReportMetric(float64(without)/float64(units), "ns/unit")
				b.ReportMetric(float64(exactly)/float64(without), "exact-slower")
				slower = append(slower, ratio)
				if slices.Contains(named, k.name) && name != "wat" {
					ordinary = append(ordinary, ratio)
				}
			})
		}
	}
	if len(ordinary) > 0 && len(charged) > 0 {
		for _, list := range [][]float64{slower, ordinary, charged} {
			slices.Sort(list)
		}
		b.ReportMetric(ordinary[len(ordinary)/2], "named-slower")
		b.ReportMetric(slower[len(slower)/2], "all-slower")
		b.Logf("slower: of named kernels median %.2f, most %.2f, of all median %.2f, most %.2f; charged: median %.2f, most %.2f",
			ordinary[len(ordinary)/2], ordinary[len(ordinary)-1], slower[len(slower)/2], slower[len(slower)-1], charged[len(charged)/2], charged[len(charged)-1])
	}
}
