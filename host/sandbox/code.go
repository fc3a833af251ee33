package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/codefiles"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// Modules share compiled code. The rewriter extracts the initial contents of the memory
// and its initial size, and leaves out custom sections. What is left of a module, its
// skeleton, is the same for all plugins that differ only in their data: all scripts of
// one interpreter, for example. Compiled code is kept once for each skeleton, on disk and
// in memory. The image of a module is its own.
//
// Tenants do not trust each other, and a module could subvert the process that builds it.
// Therefore shared code comes from a process that gets nothing except the skeleton, and
// verifies that the skeleton is metered. The server computes the digest by which the code
// is found. A hostile skeleton can only spoil code of its own digest.

// codeKey identifies compiled code.
type codeKey struct {
	digest string // rewrittenDigest of the skeleton
	lines  bool   // compiled with lineMarks
}

// code is compiled code with everything that it imports. Its fields do not change.
//
// Each has a runtime of its own. It can therefore be closed as a whole, and on disk it is
// a separate folder that can be checked and removed.
type code struct {
	size     int // bytes of the skeleton
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil: in memory only
	compiled wazero.CompiledModule

	idle int // modules without users that run it; guarded by modules.mu
}

// codes holds the code of all modules in memory. Methods may be called from any
// goroutine.
type codes struct {
	mu    sync.Mutex // guards byKey, and users of each; held only briefly
	byKey map[codeKey]*sharedCode
}

// sharedCode is the place of one code.
type sharedCode struct {
	making sync.Mutex // held while the code is loaded or built, on disk too
	code   *code      // guarded by making
	users  int        // modules, and goroutines that load or build
}

// use returns the place of a code, and adds a user.
func (c *codes) use(key codeKey) *sharedCode {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byKey[key]
	if at == nil {
		if c.byKey == nil {
			c.byKey = map[codeKey]*sharedCode{}
		}
		at = &sharedCode{}
		c.byKey[key] = at
	}
	at.users++
	return at
}

// leave removes a user. It returns the code if nobody uses it any more: the caller closes
// the code.
func (c *codes) leave(key codeKey) *code {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byKey[key]
	if at.users--; at.users > 0 {
		return nil
	}
	delete(c.byKey, key)
	return at.code
}

// count returns how many codes are in memory.
func (c *codes) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey)
}

// takeCode gives the module its code: code that another module uses, or what load makes.
// The module must give the code back with giveCode.
func (m *module) takeCode(load func() (*code, error)) (err error) {
	s, key := m.sandbox, m.plan.code()
	at := s.codes.use(key)
	at.making.Lock()
	if at.code == nil {
		if at.code, err = load(); err == nil {
			m.loaded += at.code.size
		}
	}
	m.code = at.code
	at.making.Unlock()
	if err != nil {
		s.closeCode(s.codes.leave(key))
	}
	return err
}

// giveCode gives the module's code back.
func (m *module) giveCode() {
	m.sandbox.closeCode(m.sandbox.codes.leave(m.plan.code()))
	m.code = nil
}

// closeCode closes code that nobody uses any more. c may be nil.
func (s *Sandbox) closeCode(c *code) {
	if c == nil {
		return
	}
	if err := c.close(); err != nil {
		s.log.Error("closing compiled code failed", "error", err)
	}
}

func (c *code) close() (err error) {
	ctx := context.Background()
	if c.runtime != nil {
		err = c.runtime.Close(ctx)
	}
	if c.cache != nil {
		err = errors.Join(err, c.cache.Close(ctx))
	}
	return err
}

// compileNew verifies that a skeleton is metered, and compiles it. Only verified code is
// kept, so code that is loaded need not be verified again.
//
// # Errors
//
// CodeInvalidPlugin with a problem, also if the skeleton is not metered. Those of compile.
func (s *Sandbox) compileNew(key codeKey, skeleton []byte, folder string) (*code, error) {
	if err := rewrite.Verify(skeleton); err != nil {
		s.log.Error("a rewritten module is not metered", "code", key.digest, "error", err)
		return nil, invalid(host.Problem{Code: problemInvalid, Message: "the module cannot be metered: " + oneLine(err.Error())})
	}
	return s.compile(key, skeleton, folder)
}

// compile makes a runtime and compiles a skeleton in it. folder, if not "", is where the
// compiled code is kept, or was kept before. After an error nothing stays open.
//
// # Errors
//
// CodeInvalidPlugin with a problem if the compiler refuses the skeleton. An error of the
// file system, see ofDisk.
func (s *Sandbox) compile(key codeKey, skeleton []byte, folder string) (_ *code, err error) {
	c := &code{size: len(skeleton)}
	config := wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(key.lines). // debug information that we add: the module's own is left out
		WithMemoryLimitPages(wasmMaxPages)
	if folder != "" {
		if c.cache, err = wazero.NewCompilationCacheWithDir(folder); err != nil {
			return nil, fmt.Errorf("open the folder of compiled code: %w", err)
		}
		config = config.WithCompilationCache(c.cache)
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), s.workers) // a compilation cannot be interrupted
	c.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("the compiler panicked", "code", key.digest, "panic", r)
			err = invalid(host.Problem{Code: problemInvalid, Message: "the compiler failed on the module"})
		}
		if err != nil {
			s.closeCode(c)
		}
	}()
	if key.lines {
		skeleton = withMarks(skeleton)
	}
	if c.compiled, err = c.runtime.CompileModule(ctx, skeleton); ofDisk(err) {
		return nil, fmt.Errorf("keep compiled code: %w", err)
	} else if err != nil {
		return nil, invalid(host.Problem{Code: problemInvalid, Message: "the module is not valid: " + oneLine(err.Error())})
	}
	if err := serveImports(ctx, c.runtime, c.compiled.ImportedFunctions()); err != nil {
		return nil, host.Errorf(host.CodeInternal, "imports of code %s: %w", key.digest, err)
	}
	return c, nil
}

// codeFolder returns the path at which compiled code is kept.
func (s *Sandbox) codeFolder(key codeKey) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\x00code\x00%s\x00%v", buildVersion, key.digest, key.lines)
	return filepath.Join(s.cacheDir, hex.EncodeToString(h.Sum(nil)))
}

// errNoCode reports that the disk has no compiled code of a module.
var errNoCode = errors.New("the compiled code is not on disk")

// loadCode returns the kept code of a skeleton. It removes damaged files.
//
// # Errors
//
// errNoCode if no code is kept. Other errors say what is damaged.
func (s *Sandbox) loadCode(key codeKey) (*code, error) {
	folder := s.codeFolder(key)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, errNoCode
	}
	c, err := s.openCode(key, folder)
	if err != nil {
		if removed := os.RemoveAll(folder); removed != nil {
			s.log.Warn("damaged compiled code cannot be removed", "folder", folder, "error", removed)
		}
	}
	return c, err
}

func (s *Sandbox) openCode(key codeKey, folder string) (*code, error) {
	if err := codefiles.Check(folder); err != nil {
		return nil, err
	}
	skeleton, err := os.ReadFile(filepath.Join(folder, skeletonFile))
	if err != nil {
		return nil, fmt.Errorf("read the rewritten module: %w", err)
	}
	if rewrittenDigest(skeleton) != key.digest {
		return nil, errors.New("the code is that of another module")
	}
	return s.compile(key, skeleton, filepath.Join(folder, codeFolder))
}

// codeOnDisk loads the code of a skeleton from the disk. If it is not there, codeOnDisk
// compiles the skeleton first.
//
// # Errors
//
// Those of compile and of the file system.
func (s *Sandbox) codeOnDisk(key codeKey, skeleton []byte) (*code, error) {
	err := s.keepCode(key, skeleton, func(folder string) error {
		c, err := s.compileNew(key, skeleton, filepath.Join(folder, codeFolder))
		if err == nil {
			err = c.close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.loadCode(key)
}

// keepCode makes the folder of compiled code, unless there is one. compile leaves the
// code in the folder that it gets.
func (s *Sandbox) keepCode(key codeKey, skeleton []byte, compile func(folder string) error) error {
	return s.keep(s.codeFolder(key), func(folder string) error {
		if err := compile(folder); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, skeletonFile), skeleton, 0o600); err != nil {
			return fmt.Errorf("write the rewritten module: %w", err)
		}
		return nil
	})
}

// keep makes a sealed folder, unless there is one. fill gets the folder under another
// name, so that nobody sees it unfinished.
func (s *Sandbox) keep(folder string, fill func(folder string) error) error {
	if codefiles.Check(folder) == nil {
		return nil
	}
	temporary, err := os.MkdirTemp(s.cacheDir, codefiles.UnfinishedHere())
	if err != nil {
		return fmt.Errorf("make a folder for compiled code: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }() // the next start removes anything left
	if err := fill(temporary); err != nil {
		return err
	}
	if err := codefiles.Seal(temporary); err != nil {
		return err
	}
	if codefiles.Check(folder) == nil {
		return nil // another sandbox of this process was faster
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove old compiled code: %w", err)
	}
	if err := os.Rename(temporary, folder); err != nil {
		return fmt.Errorf("keep compiled code: %w", err)
	}
	return nil
}

// touch records that a folder is in use; see trimCache.
func (s *Sandbox) touch(folder string) {
	now := time.Now()
	if err := os.Chtimes(folder, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Debug("the time of compiled code cannot be set", "folder", folder, "error", err)
	}
}
