//go:build !linux

package serve

import "runtime"

// relent lets the goroutines go first that wait for a thread.
func relent() { runtime.Gosched() }
