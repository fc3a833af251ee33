//go:build !unix

package sandbox

import (
	"os"
	"os/exec"
	"time"
)

// confine does nothing where processes cannot limit themselves; the deadline
// holds there too.
func confine(uint64, time.Duration, bool) error { return nil }

func apart(*exec.Cmd) {}

func killed(*os.ProcessState) bool { return false }
