package serve

import "runtime"

// spareThread gives the Go scheduler one thread more than there are cores, and says
// how many these are. Guests that compute hold as many threads as there are cores,
// and are interrupted at the ends of their turns only; on the one that is left the
// server waits for its connections in the system, which wakes it when something
// comes. Without it, who asks would be heard when a guest's thread happens to look:
// every 10 ms.
func spareThread() (cores int) {
	cores = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cores + 1)
	return cores
}
