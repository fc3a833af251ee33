//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// 'go install github.com/weftrun/weft/cmd/weft@VERSION' uses the module as its zip has
// it: the committed files, without nested modules. Its go.mod must neither replace nor
// exclude modules. The installed program makes projects in every language.
func TestInstall(t *testing.T) {
	suite.NotShort(t, "builds the program")
	mod, err := os.ReadFile(filepath.Join(hosttest.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		if strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "exclude") {
			t.Errorf("go install refuses a module whose go.mod says %q", line)
		}
	}
	dir := t.TempDir()
	copyModule(t, filepath.Join(dir, "module"))
	run := func(in string, command ...string) {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = filepath.Join(dir, in)
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=readonly -buildvcs=false", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	weft := filepath.Join(dir, "weft")
	run("module", "go", "build", "-trimpath", "-o", weft, "./cmd/weft")
	for _, language := range []string{"go", "tinygo", "rust"} {
		run(".", weft, "new", "in-"+language, "--lang", language)
	}
	run("in-go", weft, "build")
}

// copyModule copies the committed and added files of the module, without nested modules.
func copyModule(t *testing.T, to string) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = hosttest.Root()
	out, err := cmd.Output()
	if err != nil {
		suite.Missing(t, "needs a checkout: git ls-files: %v", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var inner []string
	for _, file := range files {
		if folder, name := filepath.Split(file); name == "go.mod" && folder != "" {
			inner = append(inner, folder)
		}
	}
	for _, file := range files {
		mine := strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "testdata/")
		for _, folder := range inner {
			mine = mine || strings.HasPrefix(file, folder)
		}
		if mine {
			continue // not part of the module, or not part of the program
		}
		text, err := os.ReadFile(filepath.Join(hosttest.Root(), file))
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(to, file)
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
