//go:build !linux

package sandbox

import "time"

// ThreadTime is the time of a core that the calling thread has had: unknown here, so
// that work is charged by counts alone.
func ThreadTime() time.Duration { return 0 }
