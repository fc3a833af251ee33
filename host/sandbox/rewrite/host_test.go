package rewrite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// meterHost serves the two imports of a rewritten module and counts.
type meterHost struct {
	slice   int64 // that refuel puts into the fuel global
	refuels int   // calls
	units   int64 // taken before the last refuel
	longest int64 // units between two refuels
	given   int64 // what was in the fuel global at the last refuel

	stopAfter int // refuels; 0: never

	guest  api.Module // whose global is
	global api.MutableGlobal
}

// Exit codes of guests that were stopped.
const (
	exitOverflow = 77
	exitStopped  = 78
)

func (h *meterHost) refuel(_ context.Context, guest api.Module, _ []uint64) {
	h.settle(guest)
	if h.refuels++; h.refuels == h.stopAfter {
		panic(sys.NewExitError(exitStopped))
	}
	h.given = h.slice
	h.fuel(guest).Set(uint64(h.given))
}

// settle adds what was taken since the last refuel.
func (h *meterHost) settle(guest api.Module) {
	taken := h.given - int64(h.fuel(guest).Get())
	h.units += taken
	h.longest = max(h.longest, taken)
	h.given -= taken
}

func (h *meterHost) overflow(context.Context, api.Module, []uint64) {
	panic(sys.NewExitError(exitOverflow))
}

// total gives the units that were taken so far.
func (h *meterHost) total(guest api.Module) int64 {
	h.settle(guest)
	return h.units
}

// fuel gives the fuel global of an instance.
func (h *meterHost) fuel(guest api.Module) api.MutableGlobal {
	if h.guest != guest {
		h.guest, h.global = guest, guest.ExportedGlobal(ExportFuel).(api.MutableGlobal)
	}
	return h.global
}

// machine is a runtime with what guests import.
type machine struct {
	wazero.Runtime
	*meterHost
}

var (
	compiler    = wazero.NewRuntimeConfigCompiler
	interpreter = wazero.NewRuntimeConfigInterpreter
)

func newMachine(tb testing.TB, config func() wazero.RuntimeConfig) machine {
	tb.Helper()
	ctx := context.Background()
	m := machine{wazero.NewRuntimeWithConfig(ctx, config().WithCoreFeatures(api.CoreFeaturesV2)), &meterHost{slice: Slice}}
	tb.Cleanup(func() {
		if err := m.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	b := m.NewHostModuleBuilder(MeterModule)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(m.refuel), nil, nil).Export(FuncRefuel)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(m.overflow), nil, nil).Export(FuncOverflow)
	if _, err := b.Instantiate(ctx); err != nil {
		tb.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, m)
	return m
}

// start makes an instance, and runs what initializes it.
func (m machine) start(tb testing.TB, wasm []byte) api.Module {
	tb.Helper()
	guest, err := m.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		tb.Fatal(err)
	}
	return guest
}

func readFile(tb testing.TB, path ...string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func mustRewrite(tb testing.TB, wasm []byte, o Options) *Result {
	tb.Helper()
	r, err := Rewrite(wasm, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// compiles tells why the compiler does not take a module. It panics on some that
// are not valid.
func compiles(tb testing.TB, wasm []byte) (err error) {
	tb.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, compiler().WithCoreFeatures(api.CoreFeaturesV2))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		err = errors.Join(err, r.Close(ctx))
	}()
	_, err = r.CompileModule(ctx, wasm)
	return err
}
