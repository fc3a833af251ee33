package sandbox

import (
	"context"
	"testing"

	"github.com/weftrun/weft/host/limit"
)

// BenchmarkBuild takes modules in: everything that the compiler's process does of an
// upload, without the process.
func BenchmarkBuild(b *testing.B) {
	for _, name := range []string{"counter-go", "counter-tinygo", "counter-rust"} {
		b.Run(name, func(b *testing.B) {
			wasm := plugin(b, name)
			for b.Loop() {
				s, err := New(context.Background(), Config{Spares: -1, CacheDir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Describe(context.Background(), digestOf(wasm), wasm, limit.Default()); err != nil {
					b.Fatal(err)
				}
				_ = s.Close(context.Background())
			}
		})
	}
}
