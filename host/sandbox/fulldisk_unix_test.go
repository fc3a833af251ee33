//go:build unix

package sandbox

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weftrun/weft/host"
)

// smallFiles has a compiler of the tests fail to write what it has compiled.
const smallFiles = "small-files"

func init() {
	if slices.Contains(os.Args, smallFiles) {
		signal.Ignore(unix.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
			panic(err)
		}
	}
}

// A full disk is no fault of the module: it is the server that cannot build it now,
// and what the disk says, with folders of the host, is for the log.
func TestFullDiskIsNoFaultOfTheModule(t *testing.T) {
	wasm := plugin(t, "counter-tinygo")
	b := elsewhere(t, func(c *Config) { c.Compiler = append(c.Compiler, smallFiles) })
	problems := check2(t, b, wasm)
	if len(problems) != 1 || problems[0].Code != string(host.CodeUnavailable) || strings.Contains(problems[0].Message, b.cacheDir) {
		t.Errorf("problems = %+v", problems)
	}
	if _, err := b.Describe(t.Context(), b.library.add(wasm), wasm, host.Limits{}); host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("Describe = %v", err)
	}
	if _, err := b.Invoke(t.Context(), b.invocation(digestOf(wasm), nil)); host.CodeOf(err) != host.CodeUnavailable {
		t.Errorf("Invoke = %v", err)
	}
}
