//go:build !unix

package confine

import (
	"os"
	"os/exec"
	"time"
)

// Limit does nothing on systems where processes cannot limit themselves. The deadline
// holds on those systems too.
func Limit(uint64, time.Duration, bool) error { return nil }

// Apart does nothing on these systems.
func Apart(*exec.Cmd) {}

// Killed returns false: these systems do not say how a process was ended.
func Killed(*os.ProcessState) bool { return false }

// Runs reports whether a process with this number may run on the machine.
func Runs(pid int) bool { return pid > 0 }
