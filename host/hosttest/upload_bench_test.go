package hosttest_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// BenchmarkUpload measures the CPU time of a server and of its compilers for the first
// upload of a plugin in a language, and for the uploads of further plugins in that
// language. The plugins are those of 'weft new', each with a name of its own. Each round
// begins with a server that has compiled nothing.
func BenchmarkUpload(b *testing.B) {
	const further = 5
	kept := hosttest.Code
	hosttest.Code = "" // a server lends its code to later servers
	b.Cleanup(func() { hosttest.Code = kept })
	weft := hosttest.Binary(b)
	for _, lang := range []string{"ts", "py", "go"} {
		b.Run(lang, func(b *testing.B) {
			var modules [][]byte
			for i := range further + 1 {
				modules = append(modules, freshProject(b, weft, lang, "greet"+strconv.Itoa(i)))
			}
			var first, later time.Duration
			for range b.N {
				p := hosttest.Serve(b, b.TempDir(), "--log-level", "error")
				for i, wasm := range modules {
					before := cpuWithChildren(p.PID())
					if status, body := p.Do(b, http.MethodPut, "/plugins/greet"+strconv.Itoa(i), wasm); status >= http.StatusMultipleChoices {
						b.Fatalf("upload: %d %s", status, body)
					}
					if took := cpuWithChildren(p.PID()) - before; i == 0 {
						first += took
					} else {
						later += took
					}
				}
				p.Kill(b)
			}
			b.ReportMetric(0, "ns/op") // removes the default
			b.ReportMetric(first.Seconds()*1e3/float64(b.N), "first-cpu-ms")
			b.ReportMetric(later.Seconds()*1e3/float64(b.N*further), "further-cpu-ms")
			b.ReportMetric(float64(len(modules[0]))/1e6, "MB")
		})
	}
}

// freshProject builds what 'weft new' makes.
func freshProject(b *testing.B, weft, lang, name string) []byte {
	b.Helper()
	dir := filepath.Join(b.TempDir(), name)
	for _, args := range [][]string{{"new", dir, "--lang", lang}, {"build", dir}} {
		if out, err := exec.Command(weft, args...).CombinedOutput(); err != nil {
			if strings.Contains(string(out), "without the engine for Python") {
				b.Skip("needs the engine for Python: make engines build")
			}
			b.Fatalf("weft %q: %v\n%s", args, err, out)
		}
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "build", name+".wasm"))
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

// cpuWithChildren returns the CPU time of a process and of its children that have ended.
func cpuWithChildren(pid int) time.Duration { return cpuIn(pid, 11, 15) }
