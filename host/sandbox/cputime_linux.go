package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the time of a core that the calling thread has had. It says something
// to a goroutine that is locked to its thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
