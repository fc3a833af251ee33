//go:build unix

package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// confine limits the address space and the CPU time of this process, for good,
// has it leave no core file, and if it is polite has whatever else wants a core go
// first: a build cannot be interrupted otherwise.
func confine(addressSpace uint64, cpu time.Duration, polite bool) error {
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
	// The group is this process alone (see apart), and all its threads.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil {
		return fmt.Errorf("step back behind others: %w", err)
	}
	return nil
}

// lower lowers both limits to most. Systems differ in their type.
func lower[T int64 | uint64](cur, hard *T, most uint64) {
	*hard = min(*hard, T(min(most, math.MaxInt64)))
	*cur = *hard
}

// niceness of a compiler: about a tenth of the time of a core that others want.
const niceness = 10

// apart keeps a process from getting the signals of the terminal that the server
// runs in: the server ends it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killed reports whether a process was ended by a signal that nobody can refuse.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
