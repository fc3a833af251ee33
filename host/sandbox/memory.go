package sandbox

import (
	"math/bits"
	"sync"

	"github.com/tetratelabs/wazero/experimental"
)

const (
	// maxKeptBuffer is the largest buffer that goes back to the arena, and
	// maxKeptBytes what the arena keeps in all. What is larger, and what there
	// is no room for, is left to the garbage collector.
	maxKeptBuffer = 8 << 20
	maxKeptBytes  = 64 << 20
)

// arena lends the buffers of linear memories. A fresh instance needs a zeroed
// buffer of some megabytes for the time of one invocation; taking each from the
// heap would have the garbage collector run every few invocations.
//
// All methods may be called from any goroutine.
type arena struct {
	mu   sync.Mutex   // guards what follows; nothing is called under it
	free [64][][]byte // by the logarithm of the capacity; dirty, to be cleared by take
	kept int          // bytes in free
}

// take lends a zeroed buffer with at least the given capacity, and length 0.
func (a *arena) take(size uint64) []byte {
	class := bits.Len64(max(size, wasmPageBytes) - 1)
	if size > maxKeptBuffer {
		return make([]byte, 0, size)
	}
	a.mu.Lock()
	list := a.free[class]
	if n := len(list); n > 0 {
		buf := list[n-1]
		list[n-1] = nil
		a.free[class], a.kept = list[:n-1], a.kept-cap(buf)
		a.mu.Unlock()
		clear(buf) // its length says how much of it was in use
		return buf[:0]
	}
	a.mu.Unlock()
	return make([]byte, 0, 1<<class)
}

// give takes a buffer back; its length must cover all that was written to it.
func (a *arena) give(buf []byte) {
	size := cap(buf)
	if size == 0 || size > maxKeptBuffer || size&(size-1) != 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept+size > maxKeptBytes {
		return
	}
	class := bits.Len(uint(size) - 1)
	a.free[class], a.kept = append(a.free[class], buf), a.kept+size
}

// linear is the memory of one instance: it grows up to a limit that belongs to
// the invocation, not to the compiled module. One goroutine uses it.
//
// It gives its buffer back by release, not by Free: the compiler's runtime may
// call Free while the guest still runs.
type linear struct {
	arena    *arena
	buf      []byte
	limit    uint64 // bytes that Reallocate gives at most; the first call is free
	expected uint64 // capacity to begin with
	refused  bool   // growth was refused
}

var _ experimental.LinearMemory = (*linear)(nil)

// Allocate implements [experimental.MemoryAllocator]: it is its own memory.
func (l *linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate implements [experimental.LinearMemory].
func (l *linear) Reallocate(size uint64) []byte {
	first := l.buf == nil
	if size > l.limit && !first {
		l.refused = true
		return nil
	}
	if size > uint64(cap(l.buf)) || first {
		grown := l.arena.take(max(size, l.expected, min(2*uint64(cap(l.buf)), l.limit)))
		grown = append(grown, l.buf...)
		l.arena.give(l.buf)
		l.buf = grown
	}
	l.buf = l.buf[:size]
	return l.buf
}

// Free implements [experimental.LinearMemory]; see release.
func (l *linear) Free() {}

// release gives the buffer back. The instance must not run any more.
func (l *linear) release() {
	if l.buf != nil {
		l.arena.give(l.buf)
		l.buf = nil
	}
}
