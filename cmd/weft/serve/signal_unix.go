//go:build unix

package serve

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond the limit on the size of files (ulimit -f) fail
// like a write to a full disk. By default it would end the process.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
