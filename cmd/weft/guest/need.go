package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const (
	wasmTarget = "wasm32-unknown-unknown"
	// killAfter is how long a cancelled compiler may take to close its output.
	killAfter = 5 * time.Second
	// leastGo is the minor version of the oldest Go that builds the SDK.
	leastGo = 24
)

// Missing is returned if this machine does not have the tools for a language.
type Missing struct {
	What string // what is missing
	How  string // how to get it
}

// Error implements error.
func (m *Missing) Error() string { return m.What + ": " + m.How }

const howGo = "install Go from https://go.dev/dl/ or by your system's packages"

// needGo checks the tools for building with Go.
func needGo(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return &Missing{"Go is not installed (no program go on PATH)", howGo}
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	version := strings.TrimSpace(string(out))
	if err != nil {
		// Go reads go.mod and reports errors in it.
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			return fmt.Errorf("go: %s", strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("ask go for its version: %w", err)
	}
	if minor, ok := goMinor(version); ok && minor < leastGo && os.Getenv("GOTOOLCHAIN") == "local" {
		return &Missing{fmt.Sprintf("%s is too old: the SDK needs go1.%d or newer", version, leastGo), howGo}
	}
	return nil
}

// goMinor reads 26 from go1.26.1; ok is false for other forms of versions.
func goMinor(version string) (minor int, ok bool) {
	_, rest, found := strings.Cut(version, "go1.")
	if !found {
		return 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	minor, err := strconv.Atoi(rest[:end])
	return minor, err == nil
}

// needTinyGo checks the tools for building with TinyGo, which calls Go.
func needTinyGo(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("tinygo"); err != nil {
		return &Missing{"TinyGo is not installed (no program tinygo on PATH)",
			"install it (https://tinygo.org/getting-started/install/), or build larger modules with --lang go"}
	}
	return needGo(ctx, dir)
}

// needCargo finds a cargo that can build for WebAssembly: wasm32-cargo, which has its own
// standard library, or the user's cargo if its standard library supports WebAssembly.
func needCargo(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("wasm32-cargo"); err == nil {
		return "wasm32-cargo", nil
	}
	const how = "install Rust from https://rustup.rs, then 'rustup target add " + wasmTarget + "'"
	if _, err := exec.LookPath("cargo"); err != nil {
		return "", &Missing{"Rust is not installed (no program cargo on PATH)", how}
	}
	out, err := exec.CommandContext(ctx, "rustc", "--print", "target-libdir", "--target", wasmTarget).Output()
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(strings.TrimSpace(string(out))); err == nil && info.IsDir() {
			return "cargo", nil
		}
	}
	return "", &Missing{"this machine's Rust cannot build WebAssembly (no standard library for " + wasmTarget + ")",
		"'rustup target add " + wasmTarget + "', or a package of your system such as libstd-rust-dev-wasm32"}
}
