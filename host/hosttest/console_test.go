package hosttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// consoleScript returns a call of .ci/console, which needs what it has installed before.
func consoleScript(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	suite.NotShort(t, "needs Node and a browser")
	script := filepath.Join(hosttest.Root(), ".ci", "console")
	if out, err := exec.Command(script, "ready").CombinedOutput(); err != nil {
		suite.Missing(t, "needs Node and a browser: %v\n%s", err, out)
	}
	return exec.CommandContext(t.Context(), script, args...)
}

// The files in the binary are what the sources of the console give, to the byte.
func TestConsoleIsBuilt(t *testing.T) {
	if out, err := consoleScript(t, "same").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A real browser uses the console of real servers, in light and dark: one without keys and
// one with keys.
func TestConsoleInABrowser(t *testing.T) {
	t.Parallel() // its time is waiting
	cmd := consoleScript(t, "e2e")
	p := hosttest.Serve(t, t.TempDir())
	for _, name := range []string{"approval", "counter", "human", "quiz", "wordcount"} {
		put(t, p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	const key = "the-admin-key-of-a-test-that-is-long-enough"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	wasm := filepath.Join(t.TempDir(), "counter.wasm")
	if err := os.WriteFile(wasm, hosttest.Plugin(t, "counter-tinygo"), 0o600); err != nil {
		t.Fatal(err)
	}
	keyed := hosttest.Serve(t, t.TempDir(), "--admin-key-file", file)
	cmd.Env = append(os.Environ(), "WEFT_URL="+p.URL, "WEFT_KEYED_URL="+keyed.URL, "WEFT_KEY="+key, "WEFT_RESULTS="+t.TempDir(), "WEFT_WASM="+wasm)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, &out)
		return
	}
	t.Log(out.String())
}
