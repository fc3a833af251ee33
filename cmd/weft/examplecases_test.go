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

// TestExampleCases plays the cases.json of each example that has one, with its tests.
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
			if strings.HasSuffix(name, "-py") && name != "counter-py" && name != "quiz-py" {
				suite.OnlySoak(t) // each compiles the engine twice; TestLessons runs them all on one server
			}
			dir := filepath.Join(root, "plugins", name)
			if err := os.CopyFS(dir, os.DirFS(filepath.Dir(file))); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(weft, "test", dir, "--timeout", suite.Hang.String()).CombinedOutput()
			if err != nil || !strings.Contains(string(out), " passed\n") {
				t.Errorf("%v\n%s", err, out)
			}
			if tests, _ := filepath.Glob(filepath.Join(dir, "*test*.[tp][sy]")); len(tests) > 0 && !strings.Contains(string(out), " and 4 tests passed\n") {
				t.Errorf("the tests have not run:\n%s", out)
			}
		})
	}
}
