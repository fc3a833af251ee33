package suite

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Missing ends a test that cannot find what it needs. It skips the test and gives the
// reason. Under "make test", which puts everything in place (WEFT_COMPLETE), it fails
// the test.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("WEFT_COMPLETE") != "" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// Root is the project's top folder. The process must have begun in the folder of a
// package, as go test has it.
func Root() string { return root }

// root is looked for at the beginning, as a test may go to another folder. The program
// does not know where its sources are, as it may be built with -trimpath.
var root = findRoot()

// findRoot gives the nearest folder above that has the project's go.mod; "": none, as
// for a program of tests that plays a command elsewhere.
func findRoot() string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if content, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(content, []byte("module github.com/weftrun/weft\n")) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return ""
}

// Plugins is the folder of the built example plugins: $WEFT_PLUGINS, or where
// "make plugins" puts them.
func Plugins() string {
	if dir := os.Getenv("WEFT_PLUGINS"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "build", "plugins")
}

// Plugin reads a built example, such as "counter-tinygo".
func Plugin(tb testing.TB, build string) []byte {
	tb.Helper()
	NotShort(tb, "needs built plugins")
	path := filepath.Join(Plugins(), build+".wasm")
	if _, err := os.Stat(path); err != nil {
		Missing(tb, "needs built plugins: make plugins")
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

// Tool finds a program that builds guests, such as "tinygo": on PATH, or where "make
// toolchain" puts it. In place of its wasm32-cargo and wasm32-rustc the user's own do.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	NotShort(tb, "needs the guests' compilers")
	prefix := os.Getenv("WEFT_TOOLCHAIN")
	if cache, err := os.UserCacheDir(); prefix == "" && err == nil {
		prefix = filepath.Join(cache, "weft-toolchain")
	}
	own := map[string]string{"wasm32-cargo": "cargo", "wasm32-rustc": "rustc"}[name]
	for _, program := range []string{name, filepath.Join(prefix, "bin", name), own} {
		if program == "" {
			continue
		}
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	Missing(tb, "needs %s: make toolchain", name)
	return ""
}
