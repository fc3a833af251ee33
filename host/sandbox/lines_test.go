package sandbox

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// Where a guest has trapped is told by the line of its sources, if it was built with
// debug information and the host is asked to look.
func TestSourceLines(t *testing.T) {
	with := newBench(t, func(c *Config) { c.SourceLines, c.CacheDir = true, t.TempDir() })
	without := newBench(t, nil)
	for compiler, source := range map[string]string{"tinygo-debug": "extism-go/main.go", "rust-debug": "time-rust/src/lib.rs"} {
		t.Run(compiler, func(t *testing.T) {
			wasm, panics := []byte(nil), `panic!("a panic's`
			if compiler == "rust-debug" {
				wasm = guestBuild(t, "time", compiler)
			} else {
				wasm, panics = asSteps(t, extismBuild(t, compiler), nil, "trap", "echo"), `panic("out of `
			}
			place := fmt.Sprintf("%s:%d)", filepath.Base(source), lineOf(t, source, panics))
			for _, b := range []bench{with, without} {
				inv := b.invocation(b.library.add(wasm), []byte("panic"))
				if compiler != "rust-debug" {
					inv = extismInvocation(t, b, inv.Digest, "trap", []byte("order"), nil)
				}
				inv.Limits, inv.Calls = suite.Limits(), answers{}
				for range 2 { // also in an instance that was reset
					res, err := b.Invoke(t.Context(), inv)
					if err != nil || res.Err == nil {
						t.Fatalf("Invoke = %+v, %v", res, err)
					}
					if told := strings.Contains(res.Err.Message, place); told != b.sourceLines {
						t.Errorf("with lines: %v: %q, the place is %q", b.sourceLines, res.Err.Message, place)
					}
				}
				if _, err := b.Agree(t.Context(), 3, func(int) host.Invocation { return inv }); err != nil {
					t.Error(err)
				}
			}
			a, b := with.digests(t, wasm), without.digests(t, wasm)
			if a != b {
				t.Errorf("with lines the module is another one: %v, %v", a, b)
			}
		})
	}
}

// digests are what a module is known by.
func (b bench) digests(t *testing.T, wasm []byte) (d [2]string) {
	t.Helper()
	r, problems := b.Report(t.Context(), wasm, host.Limits{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return [2]string{r.Rewritten, r.ImageHash}
}

// lineOf is the number of the first line of a plugin's source with a text.
func lineOf(t *testing.T, source, text string) int {
	t.Helper()
	content := readFile(t, filepath.Join("..", "..", "testdata", "plugins", source))
	for i, line := range bytes.Split(content, []byte("\n")) {
		if bytes.Contains(line, []byte(text)) {
			return i + 1
		}
	}
	t.Fatalf("%s has no %q", source, text)
	return 0
}
