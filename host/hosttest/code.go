package hosttest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ShareCode has the hosts of this process share what one of them has compiled, in a
// folder, until the returned function is called: most of the time of many tests goes
// into compiling the same guests. It is for a TestMain, before any test.
//
// The race detector makes the compiler ten times as slow. Beside it, guests are compiled
// as servers do it, by a process of its own, which has no race detector in it.
func ShareCode() (end func(), err error) {
	if Code, err = os.MkdirTemp("", "weft-code-"); err != nil {
		return nil, err
	}
	end = func() { _ = os.RemoveAll(Code) }
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

// lendCode gives a data directory that is new the code that there is.
func lendCode(tb testing.TB, data string) {
	tb.Helper()
	if Code == "" || data == "" || !filepath.IsAbs(data) {
		return
	}
	to := filepath.Join(data, "cache")
	if _, err := os.Stat(to); err == nil {
		return // it has served already
	}
	if err := linkFolders(serversCode(), to); err != nil {
		tb.Fatalf("lend compiled code: %v", err)
	}
}

// keepCode keeps what a server that has ended has compiled. It may have left nothing.
func keepCode(data string) {
	if Code == "" || data == "" || !filepath.IsAbs(data) {
		return
	}
	_ = linkFolders(filepath.Join(data, "cache"), serversCode()) // else it is compiled again
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
		if _, err := os.Stat(target); err == nil || strings.HasPrefix(e.Name(), "unfinished-") {
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
