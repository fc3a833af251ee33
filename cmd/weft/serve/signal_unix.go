//go:build unix

package serve

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit has a write beyond the limit on the size of files (ulimit -f)
// fail, as one on a full disk does, where it would end the process.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
