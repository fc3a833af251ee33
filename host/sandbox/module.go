package sandbox

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/memory"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// module is a compiled module with its image. All methods may be called from any
// goroutine that holds a lease.
type module struct {
	sandbox *Sandbox
	digest  string   // of the original
	seed    [32]byte // the same, as bytes: seeds the image's random stream
	plan    *plan
	size    int   // approximate bytes that it holds while unused, without its code
	loaded  int   // bytes that loading it has read, its code included if that was not in memory
	code    *code // shared with the modules that differ only in data

	segments []rewrite.Segment // initial contents of a new memory, until there is a snapshot
	snapshot *memory.Snapshot  // nil: the guest's own code initializes instances

	shelf shelf // its spares
}

// anonymous is the configuration of all instances: no name, no start function.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// newModule makes a module with the fields that need no work.
func (s *Sandbox) newModule(p *plan) *module {
	m := &module{sandbox: s, digest: p.Digest, plan: p, seed: p.Seed}
	m.shelf.room = s.spares
	return m
}

// close releases everything. Only spares may be left as instances.
func (m *module) close() {
	for _, g := range m.sandbox.pool.forget(&m.shelf) {
		g.drop()
	}
	m.giveCode()
}

// caller returns a function that calls an export without parameters and results.
func caller(f api.Function) func(*call) error {
	return func(ctx *call) error { return f.CallWithStack(ctx, nil) }
}

// instantiate makes the instance, and runs its start function if it has one.
func (g *guest) instantiate(ctx *call) (err error) {
	ctx.values = experimental.WithMemoryAllocator(context.Background(), g.linear)
	g.instance, err = g.module.code.runtime.InstantiateModule(ctx, g.module.code.compiled, anonymous)
	ctx.values = nil
	if err == nil {
		g.mem = g.instance.Memory()
		g.step = g.instance.ExportedFunction(abi.ExportStep)
		g.meter.bind(g.instance)
	}
	return err
}

// making initializes an instance by calls of the guest's own code. The calls share the
// fuel and the time allowed for describing.
type making struct {
	*guest
	burnt uint64
}

// enterFor makes one of the calls.
func (g *making) enterFor(p phase, do func(*call) error) error {
	g.phase = p
	limits := &g.limits
	err := g.enter(g.module.sandbox.base, limits.DescribeFuel-g.burnt, limits.DescribeTime, do)
	g.burnt += min(g.meter.burnt(), limits.DescribeFuel-g.burnt)
	fail, hostErr := g.verdict(err)
	switch {
	case g.module.sandbox.base.Err() != nil:
		return errClosed
	case fail != nil:
		return g.describeProblem(fail)
	case hostErr != nil && g.instance == nil && !isHostFault(err):
		return invalid(host.Problem{Code: problemInvalid, Message: "the module cannot be instantiated: " + oneLine(err.Error())})
	}
	return hostErr
}

// isHostFault reports whether an error is a fault of the host or of the compiler's
// runtime. Other errors are the module's, such as a data segment out of range.
func isHostFault(err error) bool {
	var fault runtime.Error
	var exit *sys.ExitError
	return errors.As(err, &fault) || errors.As(err, &exit)
}

// describeProblem is the error of a guest that fails before weft_step.
func (g *guest) describeProblem(fail *abi.Error) error {
	text := strings.TrimPrefix(fail.Message, g.phase.entry()+" ")
	return invalid(host.Problem{Code: "describe_" + fail.Code, Message: g.phase.entry() + ": " + text})
}
