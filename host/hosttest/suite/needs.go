package suite

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Missing ends a test that lacks a prerequisite. It skips the test with the reason. Under
// "make test", which provides all prerequisites (WEFT_COMPLETE), it fails the test.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("WEFT_COMPLETE") != "" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// Root returns the project's top folder. The process must have started in the folder of a
// package, as under go test.
func Root() string { return root }

// root is determined at the start, because a test may change the working directory. The
// binary does not contain the path of its sources if it is built with -trimpath.
var root = findRoot()

// findRoot returns the nearest parent folder with the project's go.mod, or "" if there is
// none, for example in a test binary that acts as a command elsewhere.
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

// Plugins returns the folder of the built example plugins: $WEFT_PLUGINS, or the folder
// that "make plugins" fills.
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

// Tool finds a program that builds guests, such as "tinygo": on PATH, or in the folder
// that "make toolchain" fills. The user's own cargo and rustc replace wasm32-cargo and
// wasm32-rustc.
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
