package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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
	digest   string            // of the original
	seed     [32]byte          // the same, as bytes: seeds the image's random stream
	size     int               // of the original, in bytes
	exports  map[uint32]string // names of the exported functions, by index
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil: only in memory
	compiled wazero.CompiledModule

	flight flight[*image]
	made   atomic.Pointer[image] // of flight, when it has landed

	spares  chan *guest // pristine, not yet used by anybody
	filling atomic.Bool // it is in the filler's queue
}

// image is what a pristine instance is like.
type image struct {
	manifest []byte
	hash     string // SHA-256 in hex
	bytes    int    // of memory
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
	if err := m.compile(bin, clampTables(wasm, bin, s.limits.TableEntries)); err != nil {
		return nil, err
	}
	s.log.Debug("compiled a module", "digest", digest, "bytes", len(wasm), "took", time.Since(began))
	return m, nil
}

// compile makes the runtime with all that the module imports, and compiles,
// by way of the disk if the sandbox has a folder there.
func (m *module) compile(bin *binaryModule, runs []byte) error {
	s := m.sandbox
	if s.cacheDir != "" {
		err := m.compileCached(bin, runs)
		if err == nil {
			return nil
		}
		s.log.Debug("compiling by way of the disk failed", "digest", m.digest, "error", err)
	}
	if err := m.build(bin, runs); err != nil {
		return err
	}
	if s.cacheDir != "" {
		s.log.Warn("compiled code cannot be kept on disk", "digest", m.digest, "folder", s.cacheDir)
	}
	return nil
}

// build makes the runtime and compiles. After an error nothing is left open.
func (m *module) build(bin *binaryModule, runs []byte) (err error) {
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
	if m.compiled, err = m.runtime.CompileModule(ctx, runs); err != nil {
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

// image gives the module's image; the first who asks has it made.
//
// # Errors
//
// CodeInvalidPlugin with a problem when the guest fails; ctx's error.
func (l *lease) image(ctx context.Context) (*image, error) {
	m := l.module
	if im := m.made.Load(); im != nil {
		return im, nil
	}
	start := func(f func()) error {
		own, err := l.again() // it may outlast the one who asked
		if err != nil {
			return err
		}
		go func() {
			defer own.release()
			f()
		}()
		return nil
	}
	return m.flight.get(ctx, start, m.makeImage)
}

func (m *module) makeImage() (*image, error) {
	g, err := m.pristine()
	if err != nil {
		return nil, err
	}
	im := &image{manifest: g.output, hash: g.imageHash(), bytes: int(g.mem.Size())}
	m.made.Store(im)
	if !m.keep(g) {
		g.drop()
	}
	return im, nil
}

// imageHash is SHA-256, in hex, over the memory's size in bytes, as eight bytes
// with the lowest first, and the memory.
func (g *guest) imageHash() string {
	size := g.mem.Size()
	view, _ := g.mem.Read(0, size)
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(size)))
	h.Write(view)
	return hex.EncodeToString(h.Sum(nil))
}

// pristine makes a fresh instance and brings it to the image: start function,
// _initialize, weft_describe, at clock 0 and with a random stream seeded by
// the digest. The caller owns it.
func (m *module) pristine() (g *guest, err error) {
	g = &guest{module: m, limits: m.sandbox.limits}
	g.linear = linear{arena: &m.sandbox.arena, limit: uint64(g.limits.MemoryBytes)}
	g.random.Seed(m.seed)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("instantiate module %s: %v", m.digest, r)
		}
		if err != nil {
			g.drop()
		}
	}()
	if err := g.enterFor(phaseInitialize, g.instantiate); err != nil {
		return g, err
	}
	g.step = g.instance.ExportedFunction(abi.ExportStep)
	if f := g.instance.ExportedFunction(abi.ExportInitialize); f != nil {
		if err := g.enterFor(phaseInitialize, caller(f)); err != nil {
			return g, err
		}
	}
	if err := g.enterFor(phaseDescribe, caller(g.instance.ExportedFunction(abi.ExportDescribe))); err != nil {
		return g, err
	}
	if g.outputs == 0 {
		return g, g.describeProblem(&abi.Error{Code: codeOutput, Message: "returned without calling output"})
	}
	return g, nil
}

// caller calls an export without parameters and results.
func caller(f api.Function) func(*call) error {
	return func(ctx *call) error { return f.CallWithStack(ctx, nil) }
}

// instantiate makes the instance, and runs its start function.
func (g *guest) instantiate(ctx *call) (err error) {
	ctx.values = experimental.WithMemoryAllocator(context.Background(), &g.linear)
	g.instance, err = g.module.runtime.InstantiateModule(ctx, g.module.compiled, anonymous)
	if err == nil {
		g.mem = g.instance.Memory()
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
