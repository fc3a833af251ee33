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
)

// puppetBlock is what begins the block of the puppet's data section that holds
// its manifest, and puppetRoom how long a manifest may be.
const (
	puppetBlock = "puppet manifest:"
	puppetRoom  = 16 << 10
)

var puppetBuilt = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "weft-puppet-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "puppet.wasm")
	cmd := exec.Command(tinygo(), "build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-gc=leaking", "-no-debug", "-o", out, ".")
	cmd.Dir = filepath.Join(hosttest.Root(), "testdata", "plugins", "puppet")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the puppet (make toolchain installs TinyGo): %w\n%s", err, text)
	}
	return os.ReadFile(out)
})

// tinygo is the compiler on PATH, or where make toolchain puts it.
func tinygo() string {
	if path, err := exec.LookPath("tinygo"); err == nil {
		return path
	}
	prefix := os.Getenv("WEFT_TOOLCHAIN")
	if cache, err := os.UserCacheDir(); prefix == "" && err == nil {
		prefix = filepath.Join(cache, "weft-toolchain")
	}
	return filepath.Join(prefix, "bin", "tinygo")
}

// puppet is the guest that does what it is told, with a manifest.
func puppet(tb testing.TB, manifest string) []byte {
	tb.Helper()
	wasm, err := puppetBuilt()
	if err != nil {
		tb.Fatal(err)
	}
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
