// BenchmarkResident adds this file to cmd/weft when it builds the server that it
// measures. A client that connects to the socket receives a message when unused memory
// has been returned to the system.
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
		return // a process started by the server: the socket belongs to the server
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			runtime.GC() // the second collection frees what finalizers and pools hold
			debug.FreeOSMemory()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			_, _ = fmt.Fprintln(c, m.HeapAlloc)
			_ = c.Close()
		}
	}()
}
