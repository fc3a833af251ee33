package hosttest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// puppetBlock begins the block of the puppet's data section that contains its manifest.
// puppetRoom is the largest length of a manifest.
const (
	puppetBlock = "puppet manifest:"
	puppetRoom  = 16 << 10
)

// puppetFile is the puppet as TinyGo builds it, once for all tests.
var (
	puppetMu   sync.Mutex // guards puppetFile
	puppetFile []byte
)

func builtPuppet(tb testing.TB) []byte {
	tb.Helper()
	puppetMu.Lock()
	defer puppetMu.Unlock()
	if puppetFile != nil {
		return puppetFile
	}
	out := filepath.Join(tb.TempDir(), "puppet.wasm")
	cmd := exec.Command(suite.Tool(tb, "tinygo"), "build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-gc=leaking", "-no-debug", "-o", out, ".")
	cmd.Dir = filepath.Join(hosttest.Root(), "testdata", "plugins", "puppet")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if text, err := suite.Build(cmd, out, cmd.Dir, suite.GuestSDK()); err != nil {
		tb.Fatalf("build the puppet: %v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	puppetFile = wasm
	return wasm
}

// puppet returns a guest that does what it is told, with the given manifest.
func puppet(tb testing.TB, manifest string) []byte {
	tb.Helper()
	wasm := builtPuppet(tb)
	raw, err := abi.FromJSON([]byte(manifest))
	if err != nil {
		tb.Fatal(err)
	}
	at := bytes.Index(wasm, []byte(puppetBlock))
	if at < 0 || bytes.Count(wasm, []byte(puppetBlock)) > 1 || len(raw) > puppetRoom {
		tb.Fatalf("the manifest of %d bytes has no place at %d", len(raw), at)
	}
	out := bytes.Clone(wasm)
	at += copy(out[at:], fmt.Sprintf("%s%05d", puppetBlock, len(raw)))
	copy(out[at:], raw)
	return out
}
