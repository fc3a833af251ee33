package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
	"github.com/weftrun/weft/host/turns"
)

// The sandbox builds a module once for each digest: it inspects, validates, rewrites and
// compiles the module, and runs it up to weft_describe for its image. All these steps
// process hostile bytes, in a compiler that cannot be interrupted. A separate process
// therefore does the work and leaves its results in a folder, from which the server loads
// them.

// build builds a module within limits when it is the tenant's turn, and keeps the results
// on disk if there is a folder. turn may be nil.
//
// # Errors
//
// CodeInvalidPlugin with problems.
func (s *Sandbox) build(tenant string, key moduleKey, wasm []byte, limits *host.Limits, turn *turns.Turn) (*module, error) {
	if !s.building.Take(tenant, len(wasm), turn, s.base.Done()) {
		return nil, errClosed
	}
	defer s.building.Leave(tenant)
	began := time.Now()
	defer func() {
		s.log.Debug("built a module", "digest", key.digest, "bytes", len(wasm), "took", time.Since(began))
	}()
	if s.cacheDir == "" {
		return s.buildHere(key, wasm, limits)
	}
	defer s.trimCache()
	s.keeping.RLock() // keeps the folder from being trimmed until the module is open
	defer s.keeping.RUnlock()
	folder, err := s.buildFolder(tenant, key, wasm, limits)
	if err != nil {
		if code := host.CodeOf(err); code == host.CodeInvalidPlugin || code == host.CodeUnavailable || s.base.Err() != nil {
			return nil, err
		}
		if s.compiler != nil {
			return nil, s.unkept(key, err)
		}
		s.log.Warn("compiled code cannot be kept on disk", "digest", key.digest, "folder", s.cacheDir, "error", err)
		return s.buildHere(key, wasm, limits)
	}
	m, err := s.open(key, folder)
	if err != nil {
		return nil, host.Errorf(host.CodeInternal, "module %s was built, but does not load: %w", key.digest, err)
	}
	return m, nil
}

// unkept converts the error of a build whose results could not be written to disk: not a
// fault of the module, and perhaps temporary. The disk's message names places of the
// host, so only the log gets it. Other errors are returned unchanged.
func (s *Sandbox) unkept(key moduleKey, err error) error {
	if !ofDisk(err) {
		return err
	}
	s.log.Warn("compiled code cannot be kept on disk", "digest", key.digest, "folder", s.cacheDir, "error", err)
	return &host.Error{Code: host.CodeUnavailable, Message: "the server cannot keep the module's compiled code at the moment", Cause: err}
}

// errDisk stands for a disk error of the process that builds.
var errDisk = errors.New("the disk")

// ofDisk reports whether an error came from the file system.
func ofDisk(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.Is(err, errDisk) || errors.As(err, &path) || errors.As(err, &link)
}

// buildFolder builds a module into its sealed folder, and its code into another one.
func (s *Sandbox) buildFolder(tenant string, key moduleKey, wasm []byte, limits *host.Limits) (folder string, err error) {
	folder = s.folder(key)
	err = s.keep(folder, func(folder string) error {
		if s.compiler != nil {
			return s.buildElsewhere(tenant, key, wasm, limits, folder)
		}
		return s.buildInto(key, wasm, limits, folder)
	})
	return folder, err
}

// buildInto builds a module, and leaves its image in a folder.
func (s *Sandbox) buildInto(key moduleKey, wasm []byte, limits *host.Limits, folder string) error {
	m, err := s.make(key, wasm, limits, s.coder)
	if err != nil {
		return err
	}
	defer m.close()
	return m.save(folder)
}

// buildHere builds a module for immediate use, and keeps nothing.
func (s *Sandbox) buildHere(key moduleKey, wasm []byte, limits *host.Limits) (*module, error) {
	return s.make(key, wasm, limits, s.codeInMemory)
}

// coder makes the code of a skeleton.
type coder func(key codeKey, skeleton []byte) (*code, error)

func (s *Sandbox) codeInMemory(key codeKey, skeleton []byte) (*code, error) {
	return s.compileNew(key, skeleton, "")
}

// make does the building.
func (s *Sandbox) make(key moduleKey, wasm []byte, limits *host.Limits, makeCode coder) (*module, error) {
	checked := *limits
	checked.TableEntries = key.tables
	i := inspection{limits: checked}
	bin := i.whole(wasm)
	if len(i.problems) > 0 {
		return nil, invalid(i.problems...)
	}
	if err := s.validate(wasm); err != nil {
		return nil, err
	}
	options := rewrite.Options{TableEntries: key.tables, MemoryPages: wasmMaxPages, Extract: !s.reference}
	m, err := s.assemble(wasm, bin, options, makeCode)
	if err != nil {
		return nil, err
	}
	m.plan.Extism = i.extism
	g, fuel, err := m.initialized(limits, limits.MemoryBytes)
	if err != nil {
		m.close()
		return nil, err
	}
	if m.takeImage(g, fuel); m.segments != nil {
		// The image is too large for a snapshot, so the data segments must stay in the
		// module.
		g.drop()
		m.close()
		return s.makeWhole(m.plan, wasm, bin, options, makeCode)
	}
	if !s.pool.put(&m.shelf, g) {
		g.drop()
	}
	return m, nil
}

// makeWhole makes a module again, with its data in its code. Its instances run the
// guest's own initialization.
func (s *Sandbox) makeWhole(p *plan, wasm []byte, bin *wasmbin.Module, options rewrite.Options, makeCode coder) (*module, error) {
	options.Extract = false
	m, err := s.assemble(wasm, bin, options, makeCode)
	if err != nil {
		return nil, err
	}
	// All that the key of the code is made of belongs to the code that m has taken.
	p.Rewritten, p.Stats, p.Globals, p.MemoryPages = m.plan.Rewritten, m.plan.Stats, m.plan.Globals, m.plan.MemoryPages
	m.plan = p
	return m, nil
}

// assemble rewrites and compiles.
func (s *Sandbox) assemble(wasm []byte, bin *wasmbin.Module, options rewrite.Options, makeCode coder) (*module, error) {
	r, err := rewrite.Rewrite(wasm, options)
	if err != nil {
		return nil, invalid(host.Problem{Code: problemInvalid, Message: "the module cannot be rewritten: " + oneLine(err.Error())})
	}
	p := newPlan(wasm, bin, r)
	p.Lines = s.sourceLines && hasLines(bin)
	if !options.Extract {
		p.Restorable = false
	}
	m := s.newModule(p)
	m.segments = r.Segments
	if err := m.takeCode(func() (*code, error) { return makeCode(p.code(), r.Wasm) }); err != nil {
		return nil, err
	}
	return m, nil
}

// validate checks the original by WebAssembly's rules, so that the rewriter sees only
// valid modules. Custom sections have no rules. They are left out, because the decoder
// would allocate for as many names as a section claims to have.
//
// wazero has no call that only validates. It asks for function listeners after validation
// and before compilation, and validate stops it there.
func (s *Sandbox) validate(wasm []byte) (err error) {
	defer func() {
		if p := recover(); p != nil && p != any(validated{}) {
			panic(p)
		}
	}()
	ctx := experimental.WithFunctionListenerFactory(context.Background(), validated{})
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	defer func() { _ = r.Close(ctx) }()
	if _, err := r.CompileModule(ctx, withoutCustom(wasm)); err != nil {
		return invalid(host.Problem{Code: problemInvalid, Message: "the module is not valid: " + oneLine(err.Error())})
	}
	return nil
}

// validated is a factory of listeners that stops the compiler: the module is valid.
type validated struct{}

// NewFunctionListener implements experimental.FunctionListenerFactory.
func (validated) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	panic(validated{})
}

// withoutCustom copies a parseable module without its custom sections.
func withoutCustom(wasm []byte) []byte {
	const header, custom = 8, 0
	kept, rest := append([]byte{}, wasm[:header]...), wasm[header:]
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest[1:])
		section := rest[:1+n+int(size)]
		if section[0] != custom {
			kept = append(kept, section...)
		}
		rest = rest[len(section):]
	}
	return kept
}
