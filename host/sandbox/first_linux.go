package sandbox

import "os"

// goFirst has the kernel end this process before the server, when memory is short. That
// a process may always say of itself; without it the kernel chooses by size.
func goFirst() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }
