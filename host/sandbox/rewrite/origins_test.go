package rewrite

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// Every instruction that is written as it was has the origin that it has.
func TestOrigins(t *testing.T) {
	for _, path := range modulePaths(t) {
		if base := filepath.Base(path); base != "kernels.wasm" && base != "remember_growth.wasm" && !strings.HasPrefix(base, "counter-") || raced {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			wasm := readFile(t, path)
			r, err := Rewrite(wasm, Options{Extract: true})
			if err != nil {
				t.Fatal(err)
			}
			written := codeOf(t, r.Wasm)
			asked := make([]uint32, 200_000) // of the end, where helpers are too
			for i := range asked {
				asked[i] = uint32(max(0, len(written)-1-i)) // the last first
			}
			found, err := Origins(wasm, Options{Extract: true}, asked)
			if err != nil {
				t.Fatal(err)
			}
			original := codeOf(t, wasm)
			m, err := wasmbin.Parse(wasm)
			if err != nil {
				t.Fatal(err)
			}
			checkOrigins(t, m, original, written, asked, found)
		})
	}
}

// codeOf is the content of the code section.
func codeOf(t *testing.T, wasm []byte) []byte {
	t.Helper()
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	code := m.Sections[wasmbin.SectionCode]
	if !bytes.Equal(wasm[m.Offsets[wasmbin.SectionCode]:][:len(code)], code) {
		t.Fatal("the code section is not where it is said to be")
	}
	return code
}

// checkOrigins wants that origins grow with what they are of, and that nearly all
// bytes of the original are where they come from.
func checkOrigins(t *testing.T, m *wasmbin.Module, original, written []byte, asked, found []uint32) {
	t.Helper()
	seen := make([]bool, len(original))
	last := uint32(0)
	for i := len(asked) - 1; i >= 0; i-- {
		if found[i] == 0 {
			continue
		}
		if found[i] < last {
			t.Fatalf("what is written at %d comes from %d, what is before from %d", asked[i], found[i], last)
		}
		last = found[i]
		if int(last) >= len(original) {
			t.Fatalf("what is written at %d comes from %d of %d", asked[i], last, len(original))
		}
		if original[found[i]] == written[asked[i]] {
			seen[found[i]] = true
		}
	}
	all, there, first := 0, 0, 0
	for first < len(seen) && !seen[first] {
		first++
	}
	for i := range m.Bodies {
		begin := bytes.Index(original, m.Bodies[i].Code)
		if begin < first {
			continue // not asked for
		}
		for at := range m.Bodies[i].Code {
			all++
			if seen[begin+at] {
				there++
			}
		}
	}
	if there*10 < all*9 {
		t.Errorf("of %d bytes of code, %d are where they come from", all, there)
	}
}
