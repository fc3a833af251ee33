package sandbox

import (
	"strings"
	"testing"
)

// A build is done by a process that has enclosed itself.
func TestABuildIsEnclosed(t *testing.T) {
	status := statusOfBuild(t)
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			t.Errorf("the compiler's process has no %q: %s", want, status)
		}
	}
}
