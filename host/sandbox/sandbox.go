// Package sandbox runs guests: it checks uploaded modules, compiles them, makes
// their pristine image and runs one invocation at a time in an instance that
// nobody has used before, within limits, with a deterministic WASI and the
// imports of the ABI.
//
// Every invocation begins in the module's image: memory and globals as
// initializing the module leaves them. The reference way is to initialize a
// fresh instance for each invocation. Where memory and globals are all that can
// differ, the host copies the image instead, into a fresh instance or over what
// the last invocation has left; the results are the same, byte for byte.
// Modules are rewritten when they are uploaded, so that their own code counts
// the fuel it burns, and asks the host whenever a slice of it is spent: there
// runaway code stops, at the same place each time (package rewrite).
//
// The package must not know what the host calls mean, what a run or a session
// is, or where modules are stored: it is given a host.Calls to answer the
// calls, a host.Token to ask for its core, and a [Source] for the bytes.
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
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/sandbox/memory"
	"github.com/weftrun/weft/host/sandbox/wasi"
)

// Source gives the bytes of stored modules. Its method may be called from any
// goroutine; the bytes are not modified.
type Source interface {
	// Wasm reads the original bytes of a module by their SHA-256 in hex.
	Wasm(ctx context.Context, digest string) ([]byte, error)
}

// Config is what a Sandbox is made of.
type Config struct {
	// CacheDir is the folder that keeps compiled code over restarts; it is made
	// if need be, and closed to other users, as its entries are native code.
	// It belongs to one process. "": compiled code is kept in memory only.
	CacheDir string
	// CacheBytes bounds the files in CacheDir: of the modules whose compiled code has
	// not been used for the longest time the code is removed, and made again when it is
	// needed. 0: they are not bounded.
	CacheBytes int64
	// Source has the modules that Invoke names; nil: there are only those that
	// were given to Inspect or Describe a short while ago.
	Source Source
	// Limits are the largest that any tenant or plugin has: uploads and
	// invocations bring their own. Zero fields mean their defaults.
	Limits host.Limits
	// Compiler starts a program that calls [CompileMain], to build modules in a
	// process of its own: the program's path, and its arguments from the zeroth
	// on, which is the name that it goes by. It needs a CacheDir. nil: modules are
	// built in this process, as is good for tests.
	Compiler []string
	// Log takes what operators should know. nil: nothing is logged.
	Log *slog.Logger
	// CodeBytes bounds the modules that stay compiled in memory, by the sum of
	// their wasm bytes and images, beside those in use; default 256 MiB.
	CodeBytes int
	// Reference has every instance made by the guest's own code, and used once.
	// It is slow, and for tests that hold the other ways against it.
	Reference bool
	// SourceLines has traps name file and line of the sources, where modules bring line
	// tables (DWARF). Such modules take longer to compile, and each trap of theirs takes
	// as long as rewriting the module does: it is for development.
	SourceLines bool
	// Spares is how many pristine instances of each module are kept or made
	// ahead, in the background; default (0) one per core, negative none: every
	// invocation waits for a fresh one.
	Spares int
	// PoolBytes bounds the memory of all spares together; default 1 GiB. The
	// modules used the longest ago give back first.
	PoolBytes int64
}

const (
	defaultCodeBytes = 256 << 20
	defaultPoolBytes = 1 << 30
	// keepEachCore bounds the bytes of memories kept for reuse, for each core:
	// as much as the pool keeps of one memory. Guests that grow want them at
	// once again, and nobody else has anything from them.
	keepEachCore = 8 << 20
)

// Sandbox implements [host.Sandbox]. All methods may be called from any
// goroutine.
type Sandbox struct {
	source   Source
	limits   host.Limits
	stored   host.Limits // for building modules that were taken once, within other limits maybe
	log      *slog.Logger
	cacheDir string
	// unenclosed is done when the log says what the compiler's process could not give up.
	unenclosed sync.Once
	spares     int

	reference   bool
	sourceLines bool
	compiler    []string
	workers     int // threads that compile one module; 0: one
	building    *buildQueue
	// compilerWall, if not 0, bounds the compiler's process by the clock, for tests.
	compilerWall time.Duration
	// only is the tenant that uses the sandbox, as long as no other one does; then it
	// is shared, for good.
	only   atomic.Pointer[string]
	shared atomic.Bool

	cacheBytes int64
	// keeping is held, for reading, by whoever works in the folder of compiled code.
	keeping  sync.RWMutex
	modules  modules
	memories *memory.Pool
	pool     pool
	given    int // by age, since the operating system got it
	fill     chan filling

	// base ends when the sandbox closes; loading and making images run in it.
	base   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // of all that uses modules

	mu     sync.Mutex // guards closed, against work.Wait
	closed bool
}

var _ host.Sandbox = (*Sandbox)(nil)

// errClosed is what a closed sandbox answers.
var errClosed = host.Errorf(host.CodeUnavailable, "the sandbox is closed")

// New makes a sandbox, to be closed by Close. ctx is not kept.
func New(_ context.Context, c Config) (*Sandbox, error) {
	if c.CacheDir != "" {
		if err := os.MkdirAll(c.CacheDir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of compiled code: %w", err)
		}
		if err := os.Chmod(c.CacheDir, 0o700); err != nil { // it may have been there
			return nil, fmt.Errorf("close the folder of compiled code to others: %w", err)
		}
		if err := removeUnfinished(c.CacheDir); err != nil {
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
		building: newBuildQueue(runtime.NumCPU()),
		memories: memory.New(memory.Config{KeepBytes: keepEachCore * runtime.GOMAXPROCS(0)}),
	}
	s.modules.budget = cmp.Or(c.CodeBytes, defaultCodeBytes)
	s.pool.budget = cmp.Or(c.PoolBytes, defaultPoolBytes)
	s.base, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.filler)
	s.trimCache()
	return s, nil
}

// complete fills in the limits that concern modules and guests where they are
// zero.
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

// enter counts the caller as one who uses modules; if it answers nil, the
// caller is to call s.work.Done.
func (s *Sandbox) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.work.Add(1)
	return nil
}

// Close waits for what is running and gives everything back. Callers that want
// it to be quick cancel their invocations first. It may be called twice.
//
// # Errors
//
// ctx's, if that ends first; then nothing that is in use has been given back.
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

// Inspect implements [host.Sandbox]. With no problems of structure it builds
// the module too, and keeps the result.
func (s *Sandbox) Inspect(ctx context.Context, wasm []byte, limits host.Limits) (imports []string, problems []host.Problem) {
	limits = complete(limits, s.limits)
	m, problems := inspect(wasm, limits)
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
		wasm = []byte{} // given, if empty: the source is not asked
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

// asStored is the error of a module that was good when it was uploaded: its
// problems are the host's now.
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

// problemsOf gives the problems of an error of lease or image; an error that
// is not the module's own becomes a problem that says so.
func problemsOf(err error) []host.Problem {
	var e *host.Error
	if errors.As(err, &e) && len(e.Problems) > 0 {
		return e.Problems
	}
	return []host.Problem{{Code: string(host.CodeOf(err)), Message: "the module could not be checked: " + host.MessageOf(err)}}
}

// digestOf is SHA-256 in hex.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

var _ wasi.Host = (*guest)(nil)
