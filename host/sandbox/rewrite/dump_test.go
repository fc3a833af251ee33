package rewrite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
)

func TestDump(t *testing.T) {
	f := os.Getenv("DUMP")
	if f == "" {
		t.Skip()
	}
	out, err := exec.Command("wat2wasm", f, "-o", "/tmp/dump/x.wasm").CombinedOutput()
	if err != nil {
		t.Fatal(string(out))
	}
	b, _ := os.ReadFile("/tmp/dump/x.wasm")
	for _, w := range []string{"plain", "metered"} {
		dir := "/tmp/dump/" + w
		os.RemoveAll(dir)
		c, _ := wazero.NewCompilationCacheWithDir(dir)
		ctx := context.Background()
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(c))
		x := b
		if w == "metered" {
			r, err := Rewrite(b, Options{})
			if err != nil {
				t.Fatal(err)
			}
			x = r.Wasm
			os.WriteFile("/tmp/dump/m.wasm", x, 0o600)
		}
		if _, err := rt.CompileModule(ctx, x); err != nil {
			t.Fatal(err)
		}
		fs, _ := filepath.Glob(dir + "/*/*")
		o, _ := exec.Command("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", fs[0]).CombinedOutput()
		os.WriteFile("/tmp/dump/"+w+".s", o, 0o600)
	}
}
