package confine

import "os"

// GoFirst asks the kernel to end this process before the server when memory is short.
// Every process may ask this about itself. Otherwise the kernel chooses by size.
func GoFirst() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }
