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

// ShareCode has the hosts of this process share what one of them has compiled, in a
// folder, until the returned function is called: most of the time of many tests goes
// into compiling the same guests. It is for a TestMain, before any test. Under "make
// test" the folder begins with what earlier runs of the same host have compiled, and the
// returned function keeps what is new: see keptCode.
//
// The race detector makes the compiler ten times as slow. Beside it, guests are compiled
// as servers do it, by a process of its own, which has no race detector in it.
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
	if kept != "" { // else, and if the folders lie on different disks, all is compiled again
		_ = linkFolders(filepath.Join(kept, "own"), Code)
		_ = linkFolders(filepath.Join(kept, "of-servers"), serversCode())
	}
	if !raced {
		return end, nil
	}
	program := filepath.Join(Code, "compiler")
	// The engine loads only code of its own version, which a test's program does not
	// know: it goes by this name. All else is as make builds it, and built already.
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

// A server compiles into its own data directory, and takes only what it finds sealed
// there. Tests that start one after the other would have each compile the same guests
// anew; so what a server has compiled is kept when its process has ended, and linked
// into the directories of those that come later. The first of them compiles as any.

// serversCode is where the code is kept. It is not the folder of this process's own
// hosts: the compilers differ if only this process is built with the race detector.
func serversCode() string { return filepath.Join(Code, "of-servers") }

// LendCode gives a data directory that is new the code that there is.
func LendCode(data string) error {
	if Code == "" || data == "" || !filepath.IsAbs(data) {
		return nil
	}
	to := filepath.Join(data, "cache")
	if _, err := os.Stat(to); err == nil {
		return nil // it has served already
	}
	err := linkFolders(serversCode(), to)
	if err != nil && !errors.Is(err, syscall.EXDEV) { // on another disk all is compiled again
		return fmt.Errorf("lend compiled code: %w", err)
	}
	return nil
}

// KeepCode keeps what a server that has ended has compiled. It may have left nothing.
func KeepCode(data string) {
	if Code == "" || data == "" || !filepath.IsAbs(data) {
		return
	}
	_ = linkFolders(filepath.Join(data, "cache"), serversCode()) // else it is compiled again
}

// keptCode is the folder, outside the checkout, of what hosts with this compiler have
// compiled: it goes by all sources that decide what a module is compiled to. "": nothing
// is kept, as the tests were not started by make, or the cache is off (see .ci/built).
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
	entries, _ := os.ReadDir(cache) // what cannot be listed stays
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > keptFor {
			_ = os.RemoveAll(filepath.Join(cache, e.Name()))
		}
	}
	return kept
}

// keptFor is how long code is kept that no test has asked for.
const keptFor = 7 * 24 * time.Hour

// compilerSources is a digest of the sources that decide what a module is compiled to:
// of the sandbox, of the packages below it, and of all dependencies.
func compilerSources() (string, error) {
	h := sha256.New()
	for _, part := range []string{"go.mod", "go.sum", "abi", "host/sandbox", "host/extism", "host"} {
		err := filepath.WalkDir(filepath.Join(Root(), part), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && part == "host" && path != filepath.Join(Root(), part):
				return fs.SkipDir // the rooms above the sandbox
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

// linkFolders gives one folder the folders of another that it has not. They are whole:
// a build gets its name when it is sealed. Their files are never written again.
func linkFolders(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil // nothing is there yet
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
