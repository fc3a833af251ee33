package serve

import "runtime"

// spareThread gives the Go scheduler one thread more than there are cores, and returns
// the number of cores. Computing guests hold as many threads as there are cores, and are
// interrupted only at the ends of their turns. On the additional thread, the server waits
// for its connections in the system, which wakes it when data arrives. Without this
// thread, the server would notice a request only when a guest's thread checks: every 10
// ms.
func spareThread() (cores int) {
	cores = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cores + 1)
	return cores
}
