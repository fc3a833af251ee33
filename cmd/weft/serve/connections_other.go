//go:build !unix

package serve

import "time"

// mostConnections is how many connections may be open at a time; 0: any number.
func mostConnections() int { return 0 }

// processTime returns what says how long the process has been on cores; nil: nothing does.
func processTime() func() time.Duration { return nil }
