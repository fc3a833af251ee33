package hosttest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// NodeModules returns the folder node_modules with the npm packages of .ci/node. The first
// call installs them, which needs a network.
func NodeModules(tb testing.TB) string {
	tb.Helper()
	suite.NotShort(tb, "needs npm packages")
	cmd := exec.Command(filepath.Join(Root(), ".ci", "node", "install"))
	var log strings.Builder
	cmd.Stderr = &log
	dir, err := cmd.Output()
	if err != nil {
		suite.Missing(tb, "needs the npm packages of .ci/node: %v\n%s", err, &log)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "node_modules")
}
