package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// module is a compiled module. All methods may be called from any goroutine
// that holds a lease.
//
// Each module has a runtime of its own: so it is closed as a whole, and its
// compiled code on disk is a folder of its own that can be checked and removed.
type module struct {
	sandbox  *Sandbox
	digest   string   // of the original
	seed     [32]byte // the same, as bytes: seeds the image's random stream
	size     int      // bytes of the original and of the snapshot
	runs     rewritten
	exports  map[uint32]string // names of the exported functions, by index
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil: only in memory
	compiled wazero.CompiledModule

	flight flight[*image]
	made   atomic.Pointer[image] // of flight, when it has landed

	spares  chan *guest // pristine, not yet used by anybody
	filling atomic.Bool // it is in the filler's queue
}

// anonymous is the configuration of all instances: no name, no start function.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// newModule checks and compiles a module.
//
// # Errors
//
// CodeInvalidPlugin with problems.
func (s *Sandbox) newModule(digest string, wasm []byte) (*module, error) {
	bin, problems := inspect(wasm, s.limits)
	if len(problems) > 0 {
		return nil, invalid(problems...)
	}
	m := &module{sandbox: s, digest: digest, size: len(wasm), spares: make(chan *guest, s.spares)}
	m.seed = sha256.Sum256(wasm)
	m.exports = map[uint32]string{}
	for _, ex := range bin.exports {
		if ex.kind == kindFunc {
			m.exports[ex.index] = ex.name
		}
	}
	began := time.Now()
	m.runs = s.rewrite(wasm, bin)
	if err := m.compile(bin); err != nil {
		return nil, err
	}
	m.runs.wasm = nil // the compiled module is enough
	s.log.Debug("compiled a module", "digest", digest, "bytes", len(wasm), "took", time.Since(began))
	return m, nil
}

// compile makes the runtime with all that the module imports, and compiles,
// by way of the disk if the sandbox has a folder there.
func (m *module) compile(bin *binaryModule) error {
	s := m.sandbox
	if s.cacheDir != "" {
		err := m.compileCached(bin)
		if err == nil {
			return nil
		}
		s.log.Debug("compiling by way of the disk failed", "digest", m.digest, "error", err)
	}
	if err := m.build(bin); err != nil {
		return err
	}
	if s.cacheDir != "" {
		s.log.Warn("compiled code cannot be kept on disk", "digest", m.digest, "folder", s.cacheDir)
	}
	return nil
}

// build makes the runtime and compiles. After an error nothing is left open.
func (m *module) build(bin *binaryModule) (err error) {
	config := wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithCloseOnContextDone(true).
		WithDebugInfoEnabled(false). // DWARF has paths of the machine that built it; names do not need it
		WithMemoryLimitPages(uint32(min(m.sandbox.limits.MemoryBytes/wasmPageBytes, wasmMaxPages)))
	if m.cache != nil {
		config = config.WithCompilationCache(m.cache)
	}
	ctx := context.Background() // neither can be interrupted
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if r := recover(); r != nil {
			m.sandbox.log.Error("the compiler panicked", "digest", m.digest, "panic", r)
			err = invalid(host.Problem{Code: problemInvalid, Message: "the compiler cannot cope with the module"})
		}
		if err != nil {
			m.closeRuntime()
		}
	}()
	if err := serveImports(ctx, m.runtime, bin); err != nil {
		return host.Errorf(host.CodeInternal, "imports of module %s: %w", m.digest, err)
	}
	if m.compiled, err = m.runtime.CompileModule(ctx, m.runs.wasm); err != nil {
		return invalid(host.Problem{Code: problemInvalid, Message: "the module is not valid: " + oneLine(err.Error())})
	}
	return nil
}

// close gives everything back. No instance but the spares may be left.
func (m *module) close() {
	for {
		select {
		case g := <-m.spares:
			m.sandbox.spareBytes.Add(-int64(cap(g.linear.buf)))
			g.drop()
			continue
		default:
		}
		break
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

// caller calls an export without parameters and results.
func caller(f api.Function) func(*call) error {
	return func(ctx *call) error { return f.CallWithStack(ctx, nil) }
}

// instantiate makes the instance, and runs its start function if it has one.
func (g *guest) instantiate(ctx *call) (err error) {
	ctx.values = experimental.WithMemoryAllocator(context.Background(), &g.linear)
	g.instance, err = g.module.runtime.InstantiateModule(ctx, g.module.compiled, anonymous)
	if err == nil {
		g.mem = g.instance.Memory()
		g.step = g.instance.ExportedFunction(abi.ExportStep)
	}
	return err
}

// enterFor makes one of the calls that bring an instance to the image.
func (g *guest) enterFor(p phase, do func(*call) error) error {
	g.phase = p
	err := g.enter(g.module.sandbox.base, g.module.sandbox.describeTime, do)
	fail, hostErr := g.verdict(g.module.sandbox.base, err)
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

// isHostFault tells a fault of the host or of the compiler's runtime from what
// instantiation has against a module, such as a data segment out of range.
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
