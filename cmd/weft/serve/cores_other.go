//go:build !linux

package serve

import "runtime"

// yield first runs the goroutines that wait for a thread.
func yield() { runtime.Gosched() }
