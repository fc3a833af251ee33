//go:build !linux

package serve

import "runtime"

// yield lets the goroutines go first that wait for a thread.
func yield() { runtime.Gosched() }
