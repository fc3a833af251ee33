//go:build !unix

package serve

import "time"

// mostConnections returns how many connections may be open at a time; 0: any number.
func mostConnections() int { return 0 }

// processTime returns a function that measures the CPU time of the process; nil on this
// system.
func processTime() func() time.Duration { return nil }
