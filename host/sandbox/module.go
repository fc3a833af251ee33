package sandbox

import (
	"context"
	"errors"
	"fmt"
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
//
// Each module has a runtime of its own. A module can therefore be closed as a whole, and
// its compiled code is a separate folder on disk that can be checked and removed.
type module struct {
	sandbox  *Sandbox
	digest   string   // of the original
	seed     [32]byte // the same, as bytes: seeds the image's random stream
	plan     *plan
	size     int // approximate bytes that it holds while unused
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil: compiled code is in memory only
	compiled wazero.CompiledModule

	segments []rewrite.Segment // initial contents of a new memory, until there is a snapshot
	snapshot *memory.Snapshot  // nil: the guest's own code initializes instances

	shelf shelf // its spares
}

// anonymous is the configuration of all instances: no name, no start function.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// compile makes a runtime with everything that the module imports, and compiles the
// rewritten bytes. folder, if not "", is where compiled code is kept. After an error
// nothing stays open.
//
// # Errors
//
// CodeInvalidPlugin with a problem if the compiler refuses the module.
func (m *module) compile(wasm []byte, folder string) (err error) {
	config := wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(m.plan.Lines). // debug information that we add: the module's own is left out
		WithMemoryLimitPages(wasmMaxPages)
	if folder != "" {
		if m.cache, err = wazero.NewCompilationCacheWithDir(folder); err != nil {
			return fmt.Errorf("open the folder of compiled code: %w", err)
		}
		config = config.WithCompilationCache(m.cache)
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), m.sandbox.workers) // a compilation cannot be interrupted
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if r := recover(); r != nil {
			m.sandbox.log.Error("the compiler panicked", "digest", m.digest, "panic", r)
			err = invalid(host.Problem{Code: problemInvalid, Message: "the compiler failed on the module"})
		}
		if err != nil {
			m.closeRuntime()
		}
	}()
	if err := serveImports(ctx, m.runtime, m.plan.Imports); err != nil {
		return host.Errorf(host.CodeInternal, "imports of module %s: %w", m.digest, err)
	}
	if m.compiled, err = m.runtime.CompileModule(ctx, m.plan.withMarks(wasm)); ofDisk(err) {
		return fmt.Errorf("keep compiled code: %w", err)
	} else if err != nil {
		return invalid(host.Problem{Code: problemInvalid, Message: "the module is not valid: " + oneLine(err.Error())})
	}
	return nil
}

// newModule makes a module with the fields that need no work.
func (s *Sandbox) newModule(wasm []byte, p *plan) *module {
	m := &module{sandbox: s, digest: p.Digest, plan: p, seed: p.Seed, size: len(wasm)}
	m.shelf.room = s.spares
	return m
}

// close releases everything. Only spares may be left as instances.
func (m *module) close() {
	for _, g := range m.sandbox.pool.forget(&m.shelf) {
		g.drop()
	}
	m.closeRuntime()
}

func (m *module) closeRuntime() {
	ctx := context.Background()
	err := m.runtime.Close(ctx)
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(ctx))
	}
	if err != nil {
		m.sandbox.log.Error("closing a module failed", "digest", m.digest, "error", err)
	}
	m.runtime, m.cache, m.compiled = nil, nil, nil
}

// caller returns a function that calls an export without parameters and results.
func caller(f api.Function) func(*call) error {
	return func(ctx *call) error { return f.CallWithStack(ctx, nil) }
}

// instantiate makes the instance, and runs its start function if it has one.
func (g *guest) instantiate(ctx *call) (err error) {
	ctx.values = experimental.WithMemoryAllocator(context.Background(), g.linear)
	g.instance, err = g.module.runtime.InstantiateModule(ctx, g.module.compiled, anonymous)
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
