package spectest

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// maxBetweenRefuels is what a host relies on: so many units lie between two
// chances to stop a guest.
const maxBetweenRefuels = 50_000

// errOverflow ends a guest whose frames do not fit, in the engine's own words.
var errOverflow = errors.New(stackOverflow)

// meter is the host's side of the fuel of all modules of one runtime.
type meter struct {
	accounts map[api.Module]*account
	worst    int64 // most units between two refuels of one module
	refuels  int
	overflow int   // times that the frames did not fit
	problem  error // the first one
}

// account is one instance's fuel.
type account struct {
	slice int64 // what its global was last set to
	spent int64 // before that
}

// newMeter instantiates the module that rewritten modules import.
func newMeter(ctx context.Context, r wazero.Runtime) (*meter, error) {
	m := &meter{accounts: map[api.Module]*account{}}
	_, err := r.NewHostModuleBuilder(rewrite.MeterModule).
		NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(m.refuel), nil, nil).
		Export(rewrite.FuncRefuel).
		NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(m.outOfFrames), nil, nil).
		Export(rewrite.FuncOverflow).
		Instantiate(ctx)
	return m, err
}

// refuel is called with the fuel below zero, and gives the next slice.
func (m *meter) refuel(_ context.Context, mod api.Module, _ []uint64) {
	fuel, ok := mod.ExportedGlobal(rewrite.ExportFuel).(api.MutableGlobal)
	if !ok {
		panic(fmt.Errorf("refuel called by a module without %s", rewrite.ExportFuel))
	}
	a := m.account(mod)
	left := int64(fuel.Get())
	if left >= 0 {
		m.fail(fmt.Errorf("refuel called with %d units left", left))
	}
	units := a.slice - left
	m.worst = max(m.worst, units)
	if units > maxBetweenRefuels {
		m.fail(fmt.Errorf("%d units between two refuels", units))
	}
	m.refuels++
	a.spent += units
	a.slice = rewrite.Slice
	fuel.Set(uint64(a.slice))
}

func (m *meter) outOfFrames(_ context.Context, mod api.Module, _ []uint64) {
	m.overflow++
	if depth := mod.ExportedGlobal(rewrite.ExportDepth); depth == nil || int32(depth.Get()) >= 0 {
		m.fail(errors.New("overflow called although the frames fit"))
	}
	panic(errOverflow)
}

func (m *meter) fail(err error) {
	if m.problem == nil {
		m.problem = err
	}
}

func (m *meter) account(mod api.Module) *account {
	a := m.accounts[mod]
	if a == nil {
		a = &account{} // a new module's fuel is zero
		m.accounts[mod] = a
	}
	return a
}

// fuel is what the instance has used since it was made, in units.
func (m *meter) fuel(mod api.Module) int64 {
	global := mod.ExportedGlobal(rewrite.ExportFuel)
	if global == nil {
		return 0
	}
	a := m.account(mod)
	return a.spent + a.slice - int64(global.Get())
}
