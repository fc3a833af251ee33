package memory

import "github.com/tetratelabs/wazero/experimental"

// Linear is the memory of one instance. It grows up to a limit that can be set at any
// time, because the limit belongs to an invocation and not to the module. Linear is both
// the allocator and the memory that wazero asks for.
//
// Only one goroutine may use a Linear at a time, except for Free.
type Linear struct {
	pool     *Pool
	region   *region // nil after Release, and on the heap before first use
	mem      []byte  // what the instance sees; nil before the first Reallocate
	reserved uint64
	limit    uint64 // most bytes that Reallocate grants; the first call ignores it
	// ready is how many bytes at the beginning are the instance's, zero or filled. It is
	// at least len(mem).
	ready    int
	refused  bool
	released bool
	// shrinking is the snapshot that a growth restores; see Snapshot.Shrink.
	shrinking *Snapshot
	// clean is the snapshot that the protected pages are equal to, or nil if unknown.
	// waste counts the pages compared without finding a change since the pages were last
	// protected.
	clean *Snapshot
	waste int
	scans int // since the pages were first protected
}

var (
	_ experimental.MemoryAllocator = (*Linear)(nil)
	_ experimental.LinearMemory    = (*Linear)(nil)
)

// Allocate implements [experimental.MemoryAllocator]: a Linear is its own memory, of one
// instance. The sizes were given to [Pool.Take].
func (l *Linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate implements [experimental.LinearMemory]. It returns nil, and [Linear.Refused]
// then returns true, if size exceeds the limit (unless this is the first call) or the
// reservation. Reallocate also refuses a size that is not a whole number of pages or is
// less than before, and any call after Release.
func (l *Linear) Reallocate(size uint64) []byte {
	if to := l.shrinking; to != nil {
		l.mem = l.region.base[:to.size:to.size]
		return l.mem
	}
	first := l.mem == nil
	if l.released || size > l.reserved || size%PageBytes != 0 || size < uint64(len(l.mem)) || size > l.limit && !first {
		l.refused = true
		return nil
	}
	l.prepare(int(size))
	l.mem = l.region.base[:size:size]
	return l.mem
}

// prepare makes the bytes up to size the instance's: zero, unless they are filled.
func (l *Linear) prepare(size int) {
	l.hold(size)
	if size > l.ready {
		if dirty := min(size, l.region.dirty); dirty > l.ready {
			l.unguard()
			clear(l.region.base[l.ready:dirty])
		}
		l.ready = size
		l.region.dirty = max(l.region.dirty, size)
	}
}

// hold ensures that the region has room for size bytes. A mapped region always has.
func (l *Linear) hold(size int) {
	if l.region != nil && size <= len(l.region.base) {
		return
	}
	grown := l.pool.heapRegion(uint64(size))
	if old := l.region; old != nil {
		copy(grown.base, old.base[:l.ready])
		grown.dirty = max(grown.dirty, l.ready)
		l.pool.give(old)
	}
	l.region = grown
}

// unguard ends the protection of pages left from an earlier use, when many pages are
// about to be written: each write would cost a fault.
func (l *Linear) unguard() {
	if r := l.region; r.guarded && l.clean == nil {
		_ = l.pool.track.unprotect(r.base[:r.dirty]) // on failure there are faults
		r.guarded = false
	}
}

// Free implements [experimental.LinearMemory] and does nothing, because it may be called
// while the instance still runs. See [Linear.Release].
func (l *Linear) Free() {}

// Release returns the memory to the pool; a second call does nothing. Nothing may access
// the memory afterwards. The instance must have ended, and views of the memory, such as
// Bytes and the results of wazero's Memory.Read, must not be used again. They could show
// another instance's memory, or crash the process.
func (l *Linear) Release() {
	if l.released {
		return
	}
	l.released = true
	if l.region != nil {
		l.pool.give(l.region)
	}
	l.region, l.mem, l.clean, l.ready = nil, nil, nil, 0
	l.pool.leave()
}

// Bytes returns the present memory; its length is the size in bytes. The slice is valid
// until the memory grows or is released. It is nil before the instance is made.
func (l *Linear) Bytes() []byte { return l.mem }

// SetLimit sets the number of bytes to which the memory may grow, and resets Refused. The
// memory keeps its present size even above the limit.
func (l *Linear) SetLimit(bytes uint64) { l.limit, l.refused = bytes, false }

// Limit returns the last limit set; initially, the reservation.
func (l *Linear) Limit() uint64 { return l.limit }

// Refused reports whether growth was refused since SetLimit.
func (l *Linear) Refused() bool { return l.refused }
