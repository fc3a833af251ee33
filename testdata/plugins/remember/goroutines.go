//go:build !tinygo

package main

import (
	crand "crypto/rand"
	"encoding/binary"
	"runtime"
	"sync"
	"time"
)

var (
	marks = make(chan uint64)
	kept  sync.Pool
)

// received takes a mark from a goroutine of an earlier invocation.
func received() uint64 {
	for range 10 {
		runtime.Gosched()
	}
	select {
	case m := <-marks:
		return m
	default:
		return 0
	}
}

// send leaves goroutines behind: one that has a mark for whom it may concern,
// one that spreads it, and one that sleeps.
func send(m uint64) {
	go func() { marks <- m }()
	go func() {
		for {
			global = m
			runtime.Gosched()
		}
	}()
	go func() {
		time.Sleep(time.Millisecond)
		global = m
	}()
	runtime.Gosched()
}

func pool(m uint64) { kept.Put(&m) }

func pooled() uint64 {
	if m, ok := kept.Get().(*uint64); ok {
		return *m
	}
	return 0
}

// world is what an invocation sees of chance, the clock and the goroutines.
func world() []byte {
	b := make([]byte, 8)
	_, _ = crand.Read(b) // it never fails
	b = binary.LittleEndian.AppendUint64(b, uint64(time.Now().UnixNano()))
	return binary.LittleEndian.AppendUint32(b, uint32(runtime.NumGoroutine()))
}
