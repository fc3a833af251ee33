//go:build unix

package serve

import (
	"syscall"
	"time"
)

// ownFiles is how many descriptors are reserved for the store, the log and other files.
const ownFiles = 32

// mostConnections returns how many connections may be open at a time, so that descriptors
// remain for files that the server itself opens.
func mostConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 0
	}
	return max(4, int(limit.Cur)-ownFiles)
}

// processTime returns a function that measures the CPU time of the process.
func processTime() func() time.Duration {
	return func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
}
