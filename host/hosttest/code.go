package hosttest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ShareCode makes the hosts of this process share compiled code in a folder until the
// returned function is called, because many tests spend most of their time compiling the
// same guests. Call it in TestMain, before any test. Under "make test" the folder starts
// with the code compiled by earlier runs of the same host, and the returned function
// keeps the new code: see keptCode.
//
// The race detector makes the compiler ten times slower. With it, guests are compiled as
// servers do, by a separate process without the race detector.
func ShareCode() (end func(), err error) {
	if Code, err = os.MkdirTemp("", "weft-code-"); err != nil {
		return nil, err
	}
	kept := keptCode()
	end = func() {
		if kept != "" {
			_ = linkFolders(Code, filepath.Join(kept, "own"))
			_ = linkFolders(serversCode(), filepath.Join(kept, "of-servers"))
		}
		_ = os.RemoveAll(Code)
	}
	if kept != "" { // on an error, or on different disks, everything is compiled again
		_ = linkFolders(filepath.Join(kept, "own"), Code)
		_ = linkFolders(filepath.Join(kept, "of-servers"), serversCode())
	}
	if !raced {
		return end, nil
	}
	program := filepath.Join(Code, "compiler")
	// The engine loads only code of its own version, which a test's binary does not know,
	// so the linker sets the version. All other flags are those of make, so most packages
	// are built already.
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-X=github.com/tetratelabs/wazero/internal/version.version=dev", "-o", program, "./cmd/weft")
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		end()
		return nil, fmt.Errorf("build a compiler: %w\n%s", err, out)
	}
	Compiler = []string{program, "weft", "compile-module"}
	return end, nil
}

// A server compiles into its own data directory and accepts only sealed code in it. Tests
// that start several servers would compile the same guests each time. The code of a
// server that has ended is therefore kept, and linked into the directories of later
// servers. The first server compiles as usual.

// serversCode is the folder of kept code. It differs from the folder of this process's
// own hosts, because the compilers differ if only this process is built with the race
// detector.
func serversCode() string { return filepath.Join(Code, "of-servers") }

// CodeOfServers returns the folder of kept code, for programs that tests start without a
// data directory: they use and fill the folder itself (the variable WEFT_CACHE).
func CodeOfServers() string { return serversCode() }

// LendCode links the kept code into a new data directory.
func LendCode(data string) error {
	if Code == "" || data == "" || !filepath.IsAbs(data) {
		return nil
	}
	to := filepath.Join(data, "cache")
	if _, err := os.Stat(to); err == nil {
		return nil // it was used before
	}
	err := linkFolders(serversCode(), to)
	if err != nil && !errors.Is(err, syscall.EXDEV) { // on a different disk everything is compiled again
		return fmt.Errorf("lend compiled code: %w", err)
	}
	return nil
}

// KeepCode keeps the code that an ended server has compiled, if any.
func KeepCode(data string) {
	if Code == "" || data == "" || !filepath.IsAbs(data) {
		return
	}
	_ = linkFolders(filepath.Join(data, "cache"), serversCode()) // on an error it is compiled again
}

// keptCode returns the folder, outside the checkout, of code compiled by earlier hosts
// with this compiler. Its name depends on all sources that affect compilation. "":
// nothing is kept, because make did not start the tests or the cache is off (see
// .ci/built).
func keptCode() string {
	if os.Getenv("WEFT_COMPLETE") == "" || os.Getenv("WEFT_BUILT") == "none" {
		return ""
	}
	cache := os.Getenv("WEFT_BUILT")
	if user, err := os.UserCacheDir(); cache == "" && err == nil {
		cache = filepath.Join(user, "weft-built")
	}
	key, err := compilerSources()
	if cache == "" || err != nil {
		return ""
	}
	cache = filepath.Join(cache, "code")
	kept := filepath.Join(cache, key)
	for _, kind := range []string{"own", "of-servers"} {
		if err := os.MkdirAll(filepath.Join(kept, kind), 0o700); err != nil {
			return ""
		}
	}
	now := time.Now()
	_ = os.Chtimes(kept, now, now)
	entries, _ := os.ReadDir(cache) // what cannot be listed is kept
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > keptFor {
			_ = os.RemoveAll(filepath.Join(cache, e.Name()))
		}
	}
	return kept
}

// keptFor is how long unused code is kept.
const keptFor = 7 * 24 * time.Hour

// compilerSources returns a digest of the sources that affect compilation: the sandbox,
// the packages below it, and all dependencies.
func compilerSources() (string, error) {
	h := sha256.New()
	for _, part := range []string{"go.mod", "go.sum", "abi", "host/sandbox", "host/extism", "host"} {
		err := filepath.WalkDir(filepath.Join(Root(), part), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && part == "host" && path != filepath.Join(Root(), part):
				return fs.SkipDir // packages that import the sandbox
			case d.IsDir(), strings.HasSuffix(path, "_test.go"), part != "go.sum" && part != "go.mod" && !strings.HasSuffix(path, ".go"):
				return nil
			}
			content, err := os.ReadFile(path)
			_, _ = fmt.Fprintf(h, "%s %d\n%s", filepath.Base(path), len(content), content)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// linkFolders links the folders that only from has into to. They are complete, because a
// build gets its name when it is sealed, and their files never change.
func linkFolders(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil // does not exist yet
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		target := filepath.Join(to, e.Name())
		if _, err := os.Stat(target); err == nil || !e.IsDir() || e.Name() == "of-servers" || strings.HasPrefix(e.Name(), "unfinished-") {
			continue
		}
		temporary, err := os.MkdirTemp(to, "unfinished-")
		if err != nil {
			return err
		}
		err = linkFiles(filepath.Join(from, e.Name()), temporary)
		if err == nil {
			err = os.Rename(temporary, target)
		}
		if err != nil {
			_ = os.RemoveAll(temporary)
			return err
		}
	}
	return nil
}

// linkFiles gives a folder hard links to the files of another.
func linkFiles(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return os.Link(path, target)
	})
}
