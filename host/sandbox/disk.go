package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tetratelabs/wazero"
)

// sealName is the file of a folder of compiled code that lists the digests of
// the others. The compiler's runtime believes most of what it reads there (it
// checks a sum of the machine code only, and takes counts from the file), so
// nothing is read that was not sealed.
const sealName = "seal"

// compileCached compiles by way of the module's folder on disk: what is sealed
// there is loaded, anything else is deleted and made anew.
func (m *module) compileCached(bin *binaryModule) error {
	// The limit of memory is part of the name, as code may depend on it.
	name := fmt.Sprintf("%s-%d", rewrittenDigest(m.runs.wasm), m.sandbox.limits.MemoryBytes/wasmPageBytes)
	folder := filepath.Join(m.sandbox.cacheDir, name)
	sealed, err := checkSeal(folder)
	if err != nil {
		m.sandbox.log.Warn("compiled code on disk is damaged and made anew", "digest", m.digest, "error", err)
	}
	if sealed == nil {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove compiled code: %w", err)
		}
	}
	if m.cache, err = wazero.NewCompilationCacheWithDir(folder); err != nil {
		m.cache = nil
		return fmt.Errorf("open the folder of compiled code: %w", err)
	}
	if err := m.build(bin); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	if err := writeSeal(folder, sealed); err != nil {
		m.sandbox.log.Warn("compiled code on disk is not sealed", "digest", m.digest, "error", err)
	}
	return nil
}

// checkSeal gives the seal of a folder if it is true: nil without an error when
// there is none, nil with one when it does not match.
func checkSeal(folder string) (seal []byte, err error) {
	seal, err = os.ReadFile(filepath.Join(folder, sealName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the seal: %w", err)
	}
	actual, err := sealOf(folder)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(seal, actual) {
		return nil, errors.New("the files are not those that were sealed")
	}
	return seal, nil
}

// writeSeal seals a folder, unless it holds just what was sealed before.
func writeSeal(folder string, before []byte) error {
	names, err := sealable(folder)
	if err != nil {
		return err
	}
	if before != nil && bytes.Count(before, []byte{'\n'}) == len(names) {
		return nil // loaded, nothing was added
	}
	seal, err := sealOf(folder)
	if err != nil {
		return err
	}
	temporary := filepath.Join(folder, sealName+".tmp")
	if err := os.WriteFile(temporary, seal, 0o600); err != nil {
		return fmt.Errorf("write the seal: %w", err)
	}
	if err := os.Rename(temporary, filepath.Join(folder, sealName)); err != nil {
		return fmt.Errorf("write the seal: %w", err)
	}
	return nil
}

// sealOf lists the files of a folder, one line each: SHA-256 in hex and path.
func sealOf(folder string) ([]byte, error) {
	names, err := sealable(folder)
	if err != nil {
		return nil, err
	}
	var seal []byte
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("read compiled code: %w", err)
		}
		sum := sha256.Sum256(content)
		seal = append(seal, hex.EncodeToString(sum[:])+"  "+name+"\n"...)
	}
	return seal, nil
}

// sealable lists the files that a seal covers, sorted: all but the seal itself.
func sealable(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err == nil && name != sealName && name != sealName+".tmp" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list compiled code: %w", err)
	}
	slices.Sort(names)
	return names, nil
}
