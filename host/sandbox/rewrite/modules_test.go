package rewrite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// modulePaths are what toolchains have written: the kernels, the example plugins
// as far as they were built, and hostile guests.
func modulePaths(tb testing.TB) []string {
	paths := []string{filepath.Join("testdata", "kernels.wasm")}
	root := filepath.Join("..", "..", "..")
	plugins := os.Getenv("WEFT_PLUGINS")
	if plugins == "" {
		plugins = filepath.Join(root, "build", "plugins")
	}
	for _, folder := range []string{plugins, filepath.Join(root, "testdata", "hostile")} {
		found, err := filepath.Glob(filepath.Join(folder, "*.wasm"))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Logf("%d modules in %s", len(found), folder)
		paths = append(paths, found...)
	}
	return paths
}

// memoryPages is the most memory that a guest of TestModules gets.
const memoryPages = 4_096

// TestModules rewrites them: what comes out is metered, compiles if the original
// does, and while it initializes itself no two checks are further apart than
// promised.
func TestModules(t *testing.T) {
	longest, refuels := int64(0), 0
	for _, path := range modulePaths(t) {
		if few && largeAndAlike(filepath.Base(path)) {
			continue
		}
		wasm := readFile(t, path)
		m := newMachine(t, interpreter)
		compiled, err := m.CompileModule(t.Context(), wasm)
		if err != nil {
			_, _ = Rewrite(wasm, Options{}) // any answer, but no panic
			continue
		}
		if err := compiled.Close(t.Context()); err != nil {
			t.Error(err)
		}
		result, err := Rewrite(wasm, Options{TableEntries: 65_536, MemoryPages: memoryPages, Extract: true})
		if errors.Is(err, ErrReserved) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := Verify(result.Wasm); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if excess := wasmbin.DefaultCaps().Exceeded(mustParse(t, result.Wasm)); len(excess) > 0 && filepath.Base(filepath.Dir(path)) == "plugins" {
			t.Errorf("%s: %v", path, excess)
		}
		m.slice, m.stopAfter = 0, 20_000
		initialize(t, m, path, result)
		longest, refuels = max(longest, m.longest), refuels+m.refuels
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if longest > MaxCharge {
		t.Errorf("%d units between two checks", longest)
	}
	t.Logf("%d checks, %d units apart at most", refuels, longest)
}

// largeAndAlike reports whether a file holds what counter's module in the same language
// holds: the runtime of Go, or an interpreter.
func largeAndAlike(name string) bool {
	plugin, language, _ := strings.Cut(strings.TrimSuffix(name, ".wasm"), "-")
	return slices.Contains([]string{"go", "py", "ts"}, language) && plugin != "counter"
}

// initialize compiles a rewritten module and runs its _initialize with imports
// that answer zero. A guest may trap.
func initialize(t *testing.T, m machine, path string, result *Result) {
	t.Helper()
	compiled, err := m.CompileModule(t.Context(), result.Wasm)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		host, name, _ := f.Import()
		if host == MeterModule || host == wasi_snapshot_preview1.ModuleName {
			continue
		}
		if hosts[host] == nil {
			hosts[host] = m.NewHostModuleBuilder(host)
		}
		zero := api.GoFunc(func(_ context.Context, stack []uint64) { clear(stack) })
		hosts[host].NewFunctionBuilder().WithGoFunction(zero, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for name, host := range hosts {
		if _, err := host.Instantiate(t.Context()); err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
	}
	guest, err := m.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return // it imports a memory, or wants too much
	}
	if result.MemoryPages > memoryPages {
		return // a memory of 4 GiB would be memory of this process
	}
	if result.MemoryPages > 0 {
		guest.Memory().Grow(result.MemoryPages)
	}
	for _, s := range result.Segments {
		guest.Memory().Write(s.Offset, s.Data)
	}
	if f := guest.ExportedFunction("_initialize"); f != nil {
		var exit *sys.ExitError
		if _, err := f.Call(t.Context()); errors.As(err, &exit) && exit.ExitCode() == exitOverflow {
			t.Errorf("%s: its frames did not fit", path)
		}
	}
}
