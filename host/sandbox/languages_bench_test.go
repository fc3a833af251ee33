package sandbox

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// workloads are what testdata/plugins/workload and workload-ts do, and how much of it.
var workloads = []struct {
	task string
	n    int
}{
	{"json", 3000},
	{"sort", 20_000},
	{"regexp", 5000},
	{"calls", 24},
	{"digest", 100_000},
	{"loop", 20_000},
}

// scriptBuild builds a project of testdata/plugins in TypeScript.
func scriptBuild(tb testing.TB, name, language string, _ ...string) []byte {
	tb.Helper()
	name += "-" + language
	dir := filepath.Join(tb.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(suite.Root(), "testdata", "plugins", name))); err != nil {
		tb.Fatal(err)
	}
	weft := cmp.Or(os.Getenv("WEFT_BIN"), filepath.Join(suite.Root(), "bin", "weft"))
	if text, err := exec.Command(weft, "build", dir).CombinedOutput(); err != nil {
		tb.Fatalf("build %s (make build makes %s): %v\n%s", name, weft, err, text)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "build", name+".wasm"))
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

// BenchmarkLanguages compares how long steps take that do the same in several languages,
// whole invocations in turns. All must give the same. The figures are those of the
// fastest invocation, because other programs on the machine make none of them faster.
func BenchmarkLanguages(b *testing.B) {
	languages := []string{"ts", "tinygo", "go"}
	s := newBench(b, nil)
	for _, w := range workloads {
		b.Run(w.task, func(b *testing.B) {
			var invs []host.Invocation
			for _, language := range languages {
				build := guestBuild
				if language == "ts" {
					build = scriptBuild
				}
				inv := s.invocation(s.library.add(build(b, "workload", language)), nil)
				inv = stepOf(b, inv, "workload", "work", map[string]any{"task": w.task, "n": w.n})
				inv.Limits.Fuel = 1 << 40
				invs = append(invs, inv)
			}
			took, fuel := make([][]time.Duration, len(invs)), make([]uint64, len(invs))
			turn := func() {
				var first []byte
				for i, inv := range invs {
					began := time.Now()
					res, err := s.Invoke(b.Context(), inv)
					took[i] = append(took[i], time.Since(began))
					if err != nil || res.Err != nil || res.Code != 0 {
						b.Fatalf("%s: %+v, %v", languages[i], res, err)
					}
					if fuel[i] = res.Fuel; i == 0 {
						first = res.Output
					} else if !bytes.Equal(res.Output, first) {
						b.Fatalf("%s gives % x, %s % x", languages[i], res.Output, languages[0], first)
					}
				}
			}
			turn() // compiles, and makes instances
			took = make([][]time.Duration, len(invs))
			for b.Loop() {
				turn()
			}
			b.ReportMetric(0, "ns/op") // is of all languages together
			for i, language := range languages {
				b.ReportMetric(float64(slices.Min(took[i]))/1e6, language+"-ms")
				b.ReportMetric(float64(fuel[i])/1e6, fmt.Sprintf("%s-Munits", language))
			}
		})
	}
}
