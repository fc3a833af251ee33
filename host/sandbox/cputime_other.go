//go:build !linux

package sandbox

import "time"

// ThreadTime returns the CPU time of the calling thread. On this system it is unknown, so
// work is charged by counts alone.
func ThreadTime() time.Duration { return 0 }
