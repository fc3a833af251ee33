//go:build unix

package confine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limit permanently limits the address space and the CPU time of this process and
// disables core files. If polite, it also lowers the process's priority, because a build
// cannot be interrupted.
func Limit(addressSpace uint64, cpu time.Duration, polite bool) error {
	seconds := uint64(cpu/time.Second) + 1
	for _, l := range []struct {
		name     string
		resource int
		max      uint64
	}{
		{"the address space", unix.RLIMIT_AS, addressSpace},
		{"the CPU time", unix.RLIMIT_CPU, seconds},
		{"the size of core files", unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("read the limit of %s: %w", l.name, err)
		}
		lower(&now.Cur, &now.Max, l.max)
		if err := unix.Setrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	if !polite {
		return nil
	}
	// The group consists of this process (see Apart) with all its threads.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	return nil
}

// lower lowers both limits to most. Systems differ in their type.
func lower[T int64 | uint64](cur, hard *T, most uint64) {
	*hard = min(*hard, T(min(most, math.MaxInt64)))
	*cur = *hard
}

// niceness of a compiler: it gets about a tenth of a core that others want.
const niceness = 10

// Apart keeps the terminal's signals away from a process, because the server ends the
// process.
func Apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Killed reports whether a process was ended by a signal that cannot be caught.
func Killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Runs reports whether a process with this number runs on the machine.
func Runs(pid int) bool {
	if pid < 1 { // means groups of processes
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
