package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/cpu"

	"github.com/weftrun/weft/host/sandbox/codefiles"
	"github.com/weftrun/weft/host/sandbox/memory"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// The files in the folder of a built module.
const (
	planFile  = "plan.json"
	imageFile = "image"
)

// What is in the folder of compiled code, beside the seal.
const (
	skeletonFile = "runs.wasm"
	codeFolder   = "code"
)

// buildVersion is everything that compiled code depends on in addition to the module.
var buildVersion = fmt.Sprintf("weft-build-3 %s wazero %s %s %s %+v", rewrite.Version, compilerVersion(), runtime.Version(), runtime.GOARCH, cpu.X86)

// compilerVersion returns the version of wazero in this program.
func compilerVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/tetratelabs/wazero" {
				return dep.Version
			}
		}
	}
	return "unknown"
}

// folder returns the path at which a built module is kept.
func (s *Sandbox) folder(key moduleKey) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%v\x00%v", buildVersion, key.digest, key.tables, s.reference, s.sourceLines)
	return filepath.Join(s.cacheDir, hex.EncodeToString(h.Sum(nil)))
}

// save writes what the server needs beside the compiled code into a folder.
func (m *module) save(folder string) error {
	p, err := json.Marshal(m.plan)
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	files := map[string][]byte{planFile: p}
	if m.snapshot != nil {
		files[imageFile] = m.snapshot.Encode()
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// loadBuilt returns a module that was built before, or nil. It removes damaged files.
func (s *Sandbox) loadBuilt(key moduleKey) *module {
	if s.cacheDir == "" {
		return nil
	}
	folder := s.folder(key)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s.keeping.RLock()
	defer s.keeping.RUnlock()
	m, err := s.open(key, folder)
	switch {
	case err == nil:
		s.touch(folder)
		s.touch(s.codeFolder(m.plan.code()))
		return m
	case errors.Is(err, errNoCode): // trimCache has removed the code
		s.log.Debug("the compiled code of an image is made anew", "digest", key.digest)
	default:
		s.log.Warn("compiled code on disk is damaged and made anew", "digest", key.digest, "error", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		s.log.Warn("damaged compiled code cannot be removed", "folder", folder, "error", err)
	}
	return nil
}

// open loads what was built into a sealed folder, and its code.
//
// # Errors
//
// errNoCode if the code is not on disk. Other errors say what is damaged.
func (s *Sandbox) open(key moduleKey, folder string) (*module, error) {
	if err := codefiles.Check(folder); err != nil {
		return nil, err
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			s.log.Debug("a file of compiled code is missing", "file", name, "error", err)
		}
		return b
	}
	p := &plan{}
	if err := json.Unmarshal(read(planFile), p); err != nil {
		return nil, fmt.Errorf("the plan: %w", err)
	}
	if p.Digest != key.digest {
		return nil, errors.New("the plan is that of another module")
	}
	m := s.newModule(p)
	if p.Restorable {
		var err error
		if m.snapshot, err = memory.Decode(read(imageFile), memory.MaxBytes); err != nil {
			return nil, fmt.Errorf("the image: %w", err)
		}
		if m.snapshot.Hash() != p.ImageHash || len(p.GlobalValues) != len(p.Globals) {
			return nil, errors.New("the image is not the one that was described")
		}
		m.size = m.snapshot.Kept()
		m.loaded = m.size
	}
	if err := m.takeCode(func() (*code, error) { return s.loadCode(p.code()) }); err != nil {
		return nil, err
	}
	return m, nil
}
