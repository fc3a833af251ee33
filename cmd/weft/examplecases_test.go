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

// TestExampleCases plays the cases.json of each example that has one, against the built
// plugin.
func TestExampleCases(t *testing.T) {
	suite.NotShort(t, "compiles plugins")
	weft := hosttest.Binary(t)
	files, err := filepath.Glob(filepath.Join(hosttest.Root(), "plugins", "*", "cases.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	built := os.Getenv("WEFT_PLUGINS")
	if built == "" {
		built = filepath.Join(hosttest.Root(), "build", "plugins")
	}
	root := t.TempDir() // in which the paths of the files lead to the built plugins
	if err := os.Mkdir(filepath.Join(root, "build"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(built, filepath.Join(root, "build", "plugins")); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			hosttest.Plugin(t, name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, "plugins", name)
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(dir, "cases.json")
			if err := os.WriteFile(copied, text, 0o666); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(weft, "test", copied, "--plugin", filepath.Join(built, name+".wasm"), "--timeout", suite.Hang.String()).CombinedOutput()
			if err != nil || !strings.Contains(string(out), " passed\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
