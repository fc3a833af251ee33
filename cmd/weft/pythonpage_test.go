//go:build !race

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// TestPythonPage plays docs/guides/python.md in an empty home. The client that the page
// installs is already installed, in the version that .ci/python pins.
func TestPythonPage(t *testing.T) {
	suite.NotShort(t, "compiles a plugin")
	python := hosttest.Python(t, "client")
	for _, p := range docPages(t) {
		if p.path != "docs/guides/python.md" {
			continue
		}
		machine := cleanMachine(t, p)
		if err := os.Symlink(filepath.Dir(filepath.Dir(python)), filepath.Join(machine.home, ".venv")); err != nil {
			t.Fatal(err)
		}
		machine.env = append(machine.env, "NO_PROXY=*", "PYTHONDONTWRITEBYTECODE=1")
		machine.play()
		if n := machine.counts["Start, watch, answer"]; n != 1 {
			t.Errorf("the part with the program has %d commands", n)
		}
		return
	}
	t.Error("docs/guides/python.md is not there")
}
