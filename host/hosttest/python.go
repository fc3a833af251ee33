package hosttest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// Python returns the path of a Python with the packages of .ci/python/SET.txt. The first
// call installs them, which needs a network.
func Python(tb testing.TB, set string) string {
	tb.Helper()
	suite.NotShort(tb, "needs Python packages")
	cmd := exec.Command(filepath.Join(Root(), ".ci", "python", "install"), set)
	var log strings.Builder
	cmd.Stderr = &log
	dir, err := cmd.Output()
	if err != nil {
		suite.Missing(tb, "needs the Python packages of the set %s: %v\n%s", set, err, &log)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "bin", "python")
}
