// Package suite contains what the tests of every package share: the time after which a
// wait counts as a hang, limits that no slow machine exceeds, and how much of a long test
// runs.
//
// No test's outcome depends on how fast the machine is or on what else runs on the
// machine. A test bounds work in fuel, counts, or the time of a fake clock. A wall time
// bounds a hang only. The package knows nothing of hosts and servers.
package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// Hang is how long a test waits before the wait counts as a hang. No machine that is
// usable for the tests is slow enough to reach it.
const Hang = 30 * time.Minute

// Context returns the context of the test, which also ends after [Hang]. Its cause
// then names the test.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), Hang, fmt.Errorf("%s hangs: nothing has happened for %s", tb.Name(), Hang))
	tb.Cleanup(cancel)
	return ctx
}

// Untimed returns the limits with every time limit at its maximum. The limits on fuel,
// counts and bytes bound a test.
func Untimed(l host.Limits) host.Limits {
	most := limit.Most()
	l.WallTime, l.RegionTime = most.WallTime, most.RegionTime
	l.DescribeTime, l.CompileTime = most.DescribeTime, most.CompileTime
	l.CleanupTime = most.CleanupTime
	return l
}

// Limits returns the defaults of the server, untimed.
func Limits() host.Limits { return Untimed(limit.Default()) }

// RunTimeout is the timeout of runs in tests that set none.
const RunTimeout = 24 * time.Hour

// Soak reports whether to run all seeds, modules, histories and kills, as "make soak"
// does, or only those needed to trust a change.
func Soak() bool { return os.Getenv("WEFT_SOAK") != "" }

// OnlySoak skips a test that is not needed to trust a change, except under "make soak".
func OnlySoak(tb testing.TB) {
	tb.Helper()
	if !Soak() {
		tb.Skip("make soak plays it")
	}
}

// NotShort skips a test that "make test-quick" omits, with the reason.
func NotShort(tb testing.TB, why string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}

// Environ returns additional environment variables for a server in a separate process:
// its runs and invocations have no time limits, unless the server's flags set some. Files
// named by the variables are removed with the test.
func Environ(tb testing.TB) []string {
	tb.Helper()
	most := limit.Most()
	text := fmt.Sprintf(`{"defaults": {"wall_time": %q, "region_time": %q, "describe_time": %q, "compile_time": %q, "cleanup_time": %q}}`+"\n",
		most.WallTime, most.RegionTime, most.DescribeTime, most.CompileTime, most.CleanupTime)
	path := filepath.Join(tb.TempDir(), "limits.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return []string{"WEFT_LIMITS=" + path, "WEFT_RUN_TIMEOUT=" + RunTimeout.String()}
}
