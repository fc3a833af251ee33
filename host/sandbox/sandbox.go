// Package sandbox runs guests. It checks and compiles uploaded modules, makes the
// pristine image of each, and runs one invocation at a time in an instance that no other
// invocation has used. Guests run within limits, with a deterministic WASI and the
// imports of the ABI.
//
// Every invocation begins in the module's image: memory and globals as initializing the
// module leaves them. The reference implementation initializes a fresh instance for each
// invocation. Where an invocation can change nothing but memory and globals, the host
// copies the image instead: into a fresh instance, or over an instance that a previous
// invocation has used. The results are equal, byte for byte. The sandbox rewrites modules
// when they are uploaded (package rewrite). A rewritten module counts the fuel that its
// code burns and calls the host whenever a slice of fuel is spent. Runaway code stops in
// that call, at the same place in every run.
//
// The package must not depend on the meaning of host calls, on runs and sessions, or on
// where modules are stored. A host.Calls answers the calls, a host.Token grants the core,
// and a [Source] supplies the bytes.
package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/sandbox/buildqueue"
	"github.com/weftrun/weft/host/sandbox/codefiles"
	"github.com/weftrun/weft/host/sandbox/memory"
	"github.com/weftrun/weft/host/sandbox/wasi"
)

// Source supplies the bytes of stored modules. Its method may be called from any
// goroutine. The caller must not modify the bytes.
type Source interface {
	// Wasm reads the original bytes of a module by their SHA-256 in hex.
	Wasm(ctx context.Context, digest string) ([]byte, error)
}

// Config configures a Sandbox.
type Config struct {
	// CacheDir is the folder that keeps compiled code over restarts. New creates the
	// folder if necessary and denies other users access, because its entries are native
	// code. The folder belongs to one process. "": compiled code is kept in memory only.
	CacheDir string
	// CacheBytes bounds the files in CacheDir. Beyond the bound, the sandbox removes the
	// compiled code of the least recently used modules, and compiles such a module again
	// when it is needed. 0: no bound.
	CacheBytes int64
	// Source supplies the modules that Invoke names. nil: only modules recently given to
	// Inspect or Describe are available.
	Source Source
	// Limits are the largest limits of any tenant or plugin; each upload and each
	// invocation brings its own. Zero fields mean their defaults.
	Limits host.Limits
	// Compiler is the command that starts a program which calls [CompileMain], to build
	// modules in a separate process: the program's path, then its arguments from argument
	// 0 on. Compiler requires a CacheDir. nil: modules are built in this process, which
	// is meant for tests.
	Compiler []string
	// Log receives messages for operators. nil: nothing is logged.
	Log *slog.Logger
	// CodeBytes bounds the compiled modules kept in memory, in addition to the modules in
	// use. It counts wasm bytes and images; default 256 MiB.
	CodeBytes int
	// Reference makes every instance by running the guest's own initialization, and uses
	// it once. This is slow. Tests compare the other ways with it.
	Reference bool
	// SourceLines adds the source file and line to the messages of traps, for modules
	// with line tables (DWARF). Such modules take longer to compile, and each trap takes
	// as long as rewriting the module. It is meant for development.
	SourceLines bool
	// Spares is the number of pristine instances of each module that the sandbox keeps or
	// makes ahead in the background. Default (0): one per core. Negative: none; every
	// invocation waits for a fresh instance.
	Spares int
	// PoolBytes bounds the memory of all spares together; default 1 GiB. The sandbox
	// frees the spares of the least recently used modules first.
	PoolBytes int64
}

const (
	defaultCodeBytes = 256 << 20
	defaultPoolBytes = 1 << 30
	// keepEachCore bounds the bytes of memories kept for reuse, per core. It equals what
	// the pool keeps of one memory. Guests that grow need these memories immediately, and
	// nothing else uses them.
	keepEachCore = 8 << 20
)

// Sandbox implements [host.Sandbox]. All methods may be called from any
// goroutine.
type Sandbox struct {
	source   Source
	limits   host.Limits
	stored   host.Limits // limits for modules accepted before, perhaps under other limits
	log      *slog.Logger
	cacheDir string
	// unenclosed makes the log name only once the privileges that the compiler's process
	// could not drop.
	unenclosed sync.Once
	spares     int

	reference   bool
	sourceLines bool
	compiler    []string
	workers     int // threads that compile one module; 0 means 1
	building    *buildqueue.Queue
	examining   *buildqueue.Queue // inspections in the server's own process
	// compilerWall, if not 0, bounds the compiler's process by the clock, for tests.
	compilerWall time.Duration
	// only is the first tenant that used the sandbox. After a second tenant, shared is
	// set permanently.
	only   atomic.Pointer[string]
	shared atomic.Bool

	cacheBytes int64
	// keeping is held for reading while a goroutine works in the folder of compiled code.
	keeping  sync.RWMutex
	modules  modules
	codes    codes
	coder    coder // makes code of modules that are built in this process
	memories *memory.Pool
	pool     pool
	given    int // instances and modules freed since memory was last returned, see age
	fill     chan filling

	// base ends when the sandbox closes. Loading modules and making images run in it.
	base   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // counts every use of a module

	mu     sync.Mutex // guards closed, and orders it before work.Wait
	closed bool
}

var _ host.Sandbox = (*Sandbox)(nil)

// errClosed is the error of every method of a closed sandbox.
var errClosed = host.Errorf(host.CodeUnavailable, "the sandbox is closed")

// New makes a sandbox. The caller must call Close. New does not keep ctx.
func New(_ context.Context, c Config) (*Sandbox, error) {
	if c.CacheDir != "" {
		if err := os.MkdirAll(c.CacheDir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of compiled code: %w", err)
		}
		if err := os.Chmod(c.CacheDir, 0o700); err != nil { // the folder may have existed before
			return nil, fmt.Errorf("close the folder of compiled code to others: %w", err)
		}
		if err := codefiles.RemoveUnfinished(c.CacheDir); err != nil {
			return nil, err
		}
	}
	if c.Compiler != nil && (c.CacheDir == "" || len(c.Compiler) < 2) {
		return nil, errors.New("a compiler in a process of its own needs a folder for compiled code, a path and a name")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Sandbox{
		source:   c.Source,
		limits:   complete(c.Limits, limit.Default()),
		stored:   limit.Most(),
		log:      c.Log,
		cacheDir: c.CacheDir, cacheBytes: c.CacheBytes,
		spares: max(0, cmp.Or(c.Spares, runtime.GOMAXPROCS(0))),
		fill:   make(chan filling, 64),

		reference: c.Reference, sourceLines: c.SourceLines,
		compiler: c.Compiler,
		building: buildqueue.New(runtime.NumCPU()), examining: buildqueue.New(2),
		memories: memory.New(memory.Config{KeepBytes: keepEachCore * runtime.GOMAXPROCS(0)}),
	}
	s.coder = s.codeInMemory
	if s.cacheDir != "" {
		s.coder = s.codeOnDisk
	}
	s.modules.budget = cmp.Or(c.CodeBytes, defaultCodeBytes)
	s.pool.budget = cmp.Or(c.PoolBytes, defaultPoolBytes)
	s.base, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.filler)
	s.trimCache()
	return s, nil
}

// complete replaces zero limits on modules and guests by the defaults.
func complete(l, defaults host.Limits) host.Limits {
	l.ModuleBytes = cmp.Or(l.ModuleBytes, defaults.ModuleBytes)
	l.MemoryBytes = cmp.Or(l.MemoryBytes, defaults.MemoryBytes) / wasmPageBytes * wasmPageBytes
	l.TableEntries = cmp.Or(l.TableEntries, defaults.TableEntries)
	l.HostCalls = cmp.Or(l.HostCalls, defaults.HostCalls)
	l.CallBytes = cmp.Or(l.CallBytes, defaults.CallBytes)
	l.OutputBytes = cmp.Or(l.OutputBytes, defaults.OutputBytes)
	l.LogBytes = cmp.Or(l.LogBytes, defaults.LogBytes)
	l.LogLines = cmp.Or(l.LogLines, defaults.LogLines)
	l.CallDepth = cmp.Or(l.CallDepth, defaults.CallDepth)
	l.DescribeFuel = cmp.Or(l.DescribeFuel, defaults.DescribeFuel)
	l.DescribeTime = cmp.Or(l.DescribeTime, defaults.DescribeTime)
	l.CompileTime = cmp.Or(l.CompileTime, defaults.CompileTime)
	l.CompileBytes = cmp.Or(l.CompileBytes, defaults.CompileBytes)
	return l
}

// enter registers the caller as a user of modules. If enter returns nil, the caller must
// call s.work.Done.
func (s *Sandbox) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.work.Add(1)
	return nil
}

// Close waits for running invocations and releases all resources. A caller that needs
// Close to be quick cancels its invocations first. Close may be called twice.
//
// # Errors
//
// The error of ctx if ctx ends first. In that case resources in use are not released.
func (s *Sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	idle := make(chan struct{})
	go func() {
		s.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.modules.closeAll()
	s.memories.Close()
	return nil
}

// Inspect implements [host.Sandbox]. If the module has no structural problems, Inspect
// also builds the module and keeps the result.
func (s *Sandbox) Inspect(ctx context.Context, wasm []byte, limits host.Limits) (imports []string, problems []host.Problem) {
	limits = complete(limits, s.limits)
	m, problems := s.examine(behalf.Of(ctx), wasm, limits)
	if m != nil {
		imports = importList(m)
	}
	if len(problems) > 0 {
		return imports, problems
	}
	lease, err := s.lease(ctx, moduleKey{digestOf(wasm), limits.TableEntries}, wasm, &limits)
	if err != nil {
		return imports, problemsOf(err)
	}
	defer lease.release()
	return imports, lease.module.plan.breaches(limits)
}

// Describe implements [host.Sandbox].
func (s *Sandbox) Describe(ctx context.Context, digest string, wasm []byte, limits host.Limits) (host.Description, error) {
	if wasm == nil {
		wasm = []byte{} // not nil, so that the source is not asked
	}
	limits = complete(limits, s.limits)
	lease, err := s.lease(ctx, moduleKey{digest, limits.TableEntries}, wasm, &limits)
	if err != nil {
		return host.Description{}, err
	}
	defer lease.release()
	p := lease.module.plan
	if problems := p.breaches(limits); len(problems) > 0 {
		return host.Description{}, invalid(problems...)
	}
	return host.Description{Manifest: bytes.Clone(p.Manifest), ImageHash: p.ImageHash, Rewritten: p.Rewritten}, nil
}

// Ready implements [host.Sandbox].
func (s *Sandbox) Ready(inv *host.Invocation) bool {
	return s.modules.has(moduleKey{inv.Digest, inv.Limits.TableEntries})
}

// Prepare implements [host.Sandbox].
func (s *Sandbox) Prepare(ctx context.Context, inv *host.Invocation) (work uint64, err error) {
	lease, err := s.leaseFor(ctx, inv.Tenant, moduleKey{inv.Digest, inv.Limits.TableEntries}, nil, &s.stored)
	if err != nil {
		return 0, err
	}
	defer lease.release()
	return lease.work, nil
}

// Invoke implements [host.Sandbox].
func (s *Sandbox) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	if err := ctx.Err(); err != nil {
		return host.InvocationResult{}, err
	}
	if limit := inv.Limits.InputBytes; len(inv.Input) > limit {
		return failed(codeLimit, "the input has %d bytes, at most %d are allowed (limit input_bytes)", len(inv.Input), limit), nil
	}
	s.sharing(inv.Tenant)
	lease, err := s.leaseFor(ctx, inv.Tenant, moduleKey{inv.Digest, inv.Limits.TableEntries}, nil, &s.stored)
	if err != nil {
		return host.InvocationResult{}, err
	}
	defer lease.release()
	p := lease.module.plan
	if inv.ImageHash != "" && inv.ImageHash != p.ImageHash {
		return host.InvocationResult{}, host.Errorf(host.CodeFailedPrecondition,
			"the image of module %s has the hash %s, it was stored with %s: the host makes it differently now", inv.Digest, p.ImageHash, inv.ImageHash)
	}
	if p.ImageBytes > inv.Limits.MemoryBytes {
		return failed(codeLimit, "the module begins with %d bytes of memory, at most %d are allowed (limit memory_bytes)", p.ImageBytes, inv.Limits.MemoryBytes), nil
	}
	g, err := lease.module.acquire(inv.Limits.MemoryBytes)
	if err != nil {
		return host.InvocationResult{}, asStored(inv.Digest, err)
	}
	defer s.recycle(lease, g)
	res, err := g.invoke(ctx, &inv)
	res.Work = lease.work
	return res, err
}

func failed(code, format string, args ...any) host.InvocationResult {
	return host.InvocationResult{Err: &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// asStored converts the error of a stored module. The module was valid when it was
// uploaded, so its problems are now the host's.
func asStored(digest string, err error) error {
	var e *host.Error
	if !errors.As(err, &e) || e.Code != host.CodeInvalidPlugin {
		return err
	}
	text := e.Message
	for _, p := range e.Problems {
		text += "; " + p.Message
	}
	return host.Errorf(host.CodeInternal, "module %s does not load any more: %s", digest, text)
}

// invalid is the error of a module with the given problems.
func invalid(problems ...host.Problem) *host.Error {
	e := host.Errorf(host.CodeInvalidPlugin, "the module cannot be used: %d problem(s)", len(problems))
	e.Problems = problems
	return e
}

// problemsOf returns the problems in an error of lease or image. An error that does not
// concern the module becomes a problem with the error's text.
func problemsOf(err error) []host.Problem {
	var e *host.Error
	if errors.As(err, &e) && len(e.Problems) > 0 {
		return e.Problems
	}
	return []host.Problem{{Code: string(host.CodeOf(err)), Message: "the module could not be checked: " + host.MessageOf(err)}}
}

// digestOf returns the SHA-256 in hex.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

var _ wasi.Host = (*guest)(nil)
