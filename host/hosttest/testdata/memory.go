// BenchmarkResident lays this file over cmd/weft when it builds the server that
// it measures: who connects to the socket is told when the memory that is not
// used any more has gone back to the system.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
)

func init() {
	path := os.Getenv("WEFT_MEMORY_SOCKET")
	if path == "" {
		return
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return // a process that the server started: the socket is the server's
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			runtime.GC() // what finalizers and pools hold goes with the second one
			debug.FreeOSMemory()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			_, _ = fmt.Fprintln(c, m.HeapAlloc)
			_ = c.Close()
		}
	}()
}
