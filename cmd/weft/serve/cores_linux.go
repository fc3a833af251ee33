package serve

import (
	"runtime"
	"syscall"
)

// yield first runs the threads that wait for this thread's core, and then the goroutines.
// Otherwise the system would let them wait for a time slice of its own, which is twenty
// turns of a guest. yield takes less than a microsecond if nothing waits.
func yield() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // it does not fail
	runtime.Gosched()
}
