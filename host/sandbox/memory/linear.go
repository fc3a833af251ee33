package memory

import "github.com/tetratelabs/wazero/experimental"

// Linear is the memory of one instance. It grows up to a limit that can be set
// at any time, as it belongs to an invocation and not to the module. It is both
// the allocator and the memory that wazero asks for.
//
// One goroutine uses it at a time, but for Free.
type Linear struct {
	pool     *Pool
	region   *region // nil after Release, and on the heap before it is needed
	mem      []byte  // what the instance sees; nil before the first Reallocate
	reserved uint64
	limit    uint64 // bytes that Reallocate gives at most; the first call is free
	// ready is how many bytes at the beginning are the instance's, or zero, or
	// filled; it is at least len(mem).
	ready    int
	refused  bool
	released bool
	// shrinking is what the instance's memory is brought back to by a growth; see
	// Snapshot.Shrink.
	shrinking *Snapshot
	// clean is what the pages that the tracker holds protected are equal to; nil
	// when it is not known. waste counts pages that were compared in vain since
	// the pages were last protected.
	clean *Snapshot
	waste int
	scans int // since the pages were first protected
}

var (
	_ experimental.MemoryAllocator = (*Linear)(nil)
	_ experimental.LinearMemory    = (*Linear)(nil)
)

// Allocate implements [experimental.MemoryAllocator]: a Linear is its own
// memory, of one instance. The sizes were said to [Pool.Take].
func (l *Linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate implements [experimental.LinearMemory]. It gives nil, and [Linear.Refused]
// says so, for a size beyond the limit, unless it is the first, or beyond what was
// reserved. A size that is not a whole number of pages, or less than before, or
// asked for after Release, is refused too.
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

// prepare makes the bytes up to size the instance's: zero, if they are not filled.
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

// hold sees that the region has room for size bytes. What is mapped always has.
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

// unguard ends the protection of pages, of a life before, when many are about to
// be written: each would cost a fault.
func (l *Linear) unguard() {
	if r := l.region; r.guarded && l.clean == nil {
		_ = l.pool.track.unprotect(r.base[:r.dirty]) // else there are faults
		r.guarded = false
	}
}

// Free implements [experimental.LinearMemory] and does nothing: it may be called
// while the instance still runs. See [Linear.Release].
func (l *Linear) Free() {}

// Release gives the memory back; a second call does nothing. From then on
// nothing may look at it: the instance must have ended, and views into it, such
// as Bytes and what wazero's Memory.Read gave, must be forgotten. They would see
// another instance's memory, or end the process.
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

// Bytes is the memory as it is now; its length is the size in bytes. It is valid
// until the memory grows or is released. It is nil before the instance is made.
func (l *Linear) Bytes() []byte { return l.mem }

// SetLimit sets the bytes to which the memory may grow from now on, and forgets
// that growth was refused. What is there already stays.
func (l *Linear) SetLimit(bytes uint64) { l.limit, l.refused = bytes, false }

// Limit is the last limit set; before, what was reserved.
func (l *Linear) Limit() uint64 { return l.limit }

// Refused reports whether growth was refused since SetLimit.
func (l *Linear) Refused() bool { return l.refused }
