package memory

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// PageBytes is the unit in which memories grow: WebAssembly's page.
	PageBytes = 64 << 10
	// MaxBytes is the largest memory: the range of 32-bit addresses.
	MaxBytes = 4 << 30

	// defaultKeepBytes and defaultKeepEach are the defaults of Config.
	defaultKeepBytes = 64 << 20
	defaultKeepEach  = 8 << 20
	// classes is the number of powers of two from PageBytes to MaxBytes.
	classes = 17
)

// ErrHostMemory is returned if the host cannot reserve the address space of a memory. The
// error may be temporary: other memories may be released.
var ErrHostMemory = errors.New("the host cannot reserve memory")

// Config configures a Pool. The zero value is usable.
type Config struct {
	// KeepBytes bounds the bytes of unused memories kept for later calls of Take. 0 means
	// 64 MiB; negative means to keep none.
	KeepBytes int
	// KeepEach bounds the bytes kept of one memory; the rest returns to the host. 0 means
	// 8 MiB.
	KeepEach int
	// Compare makes resets compare all pages, even if the kernel can report which pages
	// were written.
	Compare bool
	// Heap takes memories from Go's heap even if address space can be reserved. A memory
	// may then move when it grows, and growing copies it.
	Heap bool
}

// Counts are a pool's counters. Counters that do not say "now" never decrease.
type Counts struct {
	Mapped   int64 // bytes of address space reserved now
	Kept     int64 // bytes, perhaps touched, of memories kept for reuse now
	Lent     int64 // memories lent now
	Compared int64 // pages of 4 KiB that resets compared
	Copied   int64 // pages of 4 KiB that resets found changed and restored
	Scans    int64 // times that the kernel reported which pages were written
	Protects int64 // times that pages were write-protected anew
	Missed   int64 // written pages that the kernel did not report; the first one ends tracking
}

// Pool lends memories. All methods may be called from any goroutine.
type Pool struct {
	config Config
	heap   bool     // memories are not mapped
	track  *tracker // nil when pages are not tracked

	mapped, kept, lent, compared, copied, scans, protects, missed atomic.Int64

	mu     sync.Mutex // guards the fields below; held only briefly
	free   [classes][classes][]*region
	closed bool
}

// region is the storage behind a memory. A Linear or the pool's free lists own it.
type region struct {
	base []byte // all of it
	// dirty is how many bytes at the beginning may not be zero.
	dirty   int
	mapped  bool  // false: base is from Go's heap
	written *scan // nil until the region is registered with the tracker
	// guarded reports whether the tracker may have write-protected pages.
	guarded bool
}

// New makes a pool. The caller owns the pool and must close it.
func New(c Config) *Pool {
	if c.KeepBytes == 0 {
		c.KeepBytes = defaultKeepBytes
	}
	if c.KeepEach <= 0 {
		c.KeepEach = defaultKeepEach
	}
	p := &Pool{config: c, heap: c.Heap || !canReserve}
	if !p.heap && !c.Compare {
		p.track, _ = newTracker() // without a tracker, resets compare
	}
	return p
}

// Tracks reports whether the kernel tells the pool which pages were written.
func (p *Pool) Tracks() bool { return p.track != nil && p.missed.Load() == 0 }

// Counts returns the counters.
func (p *Pool) Counts() Counts {
	return Counts{
		Mapped: p.mapped.Load(), Kept: p.kept.Load(), Lent: p.lent.Load(),
		Compared: p.compared.Load(), Copied: p.copied.Load(),
		Scans: p.scans.Load(), Protects: p.protects.Load(), Missed: p.missed.Load(),
	}
}

// Take lends a memory that can grow to reserve bytes, rounded up to PageBytes and at most
// MaxBytes. If address space can be reserved, Take reserves it, so that growth neither
// copies, nor moves, nor fails. likely is the number of bytes that will probably be used,
// or 0 if unknown; it helps to choose among the kept memories.
//
// The caller returns the memory by [Linear.Release].
//
// # Errors
//
// ErrHostMemory if the host cannot reserve that much now. Other errors mean misuse: a
// closed pool, or more than MaxBytes.
func (p *Pool) Take(reserve, likely uint64) (*Linear, error) {
	if reserve > MaxBytes {
		return nil, fmt.Errorf("a memory of %d bytes: more than the largest, %d", reserve, uint64(MaxBytes))
	}
	l := &Linear{pool: p, reserved: max(reserve+PageBytes-1, PageBytes) &^ (PageBytes - 1)}
	l.limit = l.reserved
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the pool of memories is closed")
	}
	p.lent.Add(1)
	if !p.heap {
		most := classes - 1
		if likely > 0 {
			most = min(class(likely)+1, most)
		}
		l.region = p.pop(class(l.reserved), most)
	}
	p.mu.Unlock()
	if p.heap || l.region != nil {
		return l, nil
	}
	region, err := p.mapRegion(l.reserved)
	if err != nil {
		p.leave()
		return nil, err
	}
	l.region = region
	return l, nil
}

// class returns the base-2 logarithm of a size in pages, rounded up.
func class(size uint64) int {
	return bits.Len64((max(size, PageBytes) - 1) / PageBytes)
}

// pop removes and returns a kept region of a class of size with at most a class of bytes
// touched, or nil. It does not choose a region with many more bytes touched than needed,
// which would hold the host's memory for nothing. The caller holds mu.
func (p *Pool) pop(size, most int) *region {
	lists := &p.free[size]
	for c := most; c >= 0; c-- {
		if n := len(lists[c]); n > 0 {
			r := lists[c][n-1]
			lists[c][n-1] = nil
			lists[c] = lists[c][:n-1]
			p.kept.Add(-int64(r.keptBytes()))
			return r
		}
	}
	return nil
}

func (p *Pool) mapRegion(size uint64) (*region, error) {
	size = PageBytes << class(size)
	base, err := reserve(size)
	if err != nil { // the kept reservations may be in the way
		p.unmapAll(p.drain())
		base, err = reserve(size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes of address space: %w", ErrHostMemory, size, err)
	}
	p.mapped.Add(int64(size))
	return &region{base: base, mapped: true}, nil
}

// heapRegion returns a region of Go's heap that holds at least size bytes.
func (p *Pool) heapRegion(size uint64) *region {
	c := class(size)
	p.mu.Lock()
	r := p.pop(c, classes-1)
	p.mu.Unlock()
	if r == nil {
		r = &region{base: make([]byte, PageBytes<<c)}
	}
	return r
}

// keptBytes returns what a kept region counts for.
func (r *region) keptBytes() int { return max(r.dirty, PageBytes) }

// give takes back a region. Nothing may access its memory any more.
func (p *Pool) give(r *region) {
	if (!r.trim(p.config.KeepEach) || !p.push(r)) && r.mapped {
		p.unmap(r)
	}
}

// trim returns to the host what was touched beyond the first keep bytes. It returns false
// on failure.
func (r *region) trim(keep int) bool {
	if r.dirty > keep {
		if !r.mapped || discard(r.base[keep:r.dirty]) != nil {
			return false
		}
		r.dirty = keep
	}
	return true
}

// push keeps a region if there is room.
func (p *Pool) push(r *region) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.kept.Load()+int64(r.keptBytes()) > int64(p.config.KeepBytes) {
		return false
	}
	p.kept.Add(int64(r.keptBytes()))
	list := &p.free[class(uint64(len(r.base)))][class(uint64(r.dirty))]
	*list = append(*list, r)
	return true
}

// drain empties the free lists and returns their regions.
func (p *Pool) drain() (all []*region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.free {
		for j := range p.free[i] {
			for _, r := range p.free[i][j] {
				p.kept.Add(-int64(r.keptBytes()))
				all = append(all, r)
			}
			p.free[i][j] = nil
		}
	}
	return all
}

func (p *Pool) unmapAll(all []*region) {
	for _, r := range all {
		if r.mapped {
			p.unmap(r)
		}
	}
}

// unmap returns a region's address space. The host may refuse, if that would split a
// mapping and there are too many mappings. Then at least the memory is returned, and
// Counts.Mapped continues to count the address space.
func (p *Pool) unmap(r *region) {
	size := len(r.base)
	if err := unreserve(r.base); err != nil {
		_ = discard(r.base)
		return
	}
	p.mapped.Add(-int64(size))
}

// Close returns what is kept to the host. Lent memories stay usable, and return to the
// host when they are released. Close may be called more than once.
func (p *Pool) Close() {
	p.mu.Lock()
	first, idle := !p.closed, p.lent.Load() == 0
	p.closed = true
	p.mu.Unlock()
	p.unmapAll(p.drain())
	if first && idle {
		p.track.close()
	}
}

// leave counts one memory as returned. The last one after Close ends the tracker.
func (p *Pool) leave() {
	p.mu.Lock()
	last := p.lent.Add(-1) == 0 && p.closed
	p.mu.Unlock()
	if last {
		p.track.close()
	}
}
