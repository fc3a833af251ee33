package js_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest/suite"
)

var codec = sync.OnceValues(func() (plugin, error) {
	p, _, err := load(prelude+`const run = f => ({ again: weft.encode(weft.decode(f.bytes)) });`, nil)
	return p, err
})

// The engine reads what the host accepts, refuses what the host refuses, and writes again
// what it has read. A map with the only key "$bytes" is known to the host alone.
func FuzzCBOR(f *testing.F) {
	for _, pattern := range []string{"*.cbor", "invalid/*.cbor"} {
		files, err := filepath.Glob(filepath.Join(suite.Root(), "testdata", "abi", filepath.FromSlash(pattern)))
		if err != nil || len(files) < 50 {
			f.Fatalf("%d vectors, %v", len(files), err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		p, err := codec()
		if err != nil {
			t.Fatal(problems(err))
		}
		refused := abi.CheckValue(b, abi.MaxMessageDepth)
		got, failed := again(t, p, b)
		switch {
		case refused != nil && failed == nil && !strings.Contains(refused.Error(), "$bytes"):
			t.Fatalf("the engine reads % x, which the host refuses: %v", b, refused)
		case refused == nil && failed != nil:
			t.Fatalf("the engine refuses % x: %v", b, failed)
		case refused == nil && canonical(t, got) != canonical(t, b):
			t.Fatalf("% x is written again as\n%s\nwant\n%s", b, canonical(t, got), canonical(t, b))
		}
	})
}
