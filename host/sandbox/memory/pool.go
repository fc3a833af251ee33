package memory

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// PageBytes is the unit in which memories grow, WebAssembly's page.
	PageBytes = 64 << 10
	// MaxBytes is the largest memory: what 32-bit addresses reach.
	MaxBytes = 4 << 30

	// defaultKeepBytes and defaultKeepEach are the defaults of Config.
	defaultKeepBytes = 64 << 20
	defaultKeepEach  = 8 << 20
	// classes is the number of powers of two from PageBytes to MaxBytes.
	classes = 17
)

// ErrHostMemory is the error when the host cannot reserve the address space of a
// memory. It may pass: other memories may be given back.
var ErrHostMemory = errors.New("the host cannot reserve memory")

// Config is how a pool works. The zero value is good.
type Config struct {
	// KeepBytes bounds the bytes of memories that nobody uses and that are kept
	// for the next who asks. 0 means 64 MiB; negative means to keep none.
	KeepBytes int
	// KeepEach bounds the bytes kept of one memory; what it has beyond goes back
	// to the host. 0 means 8 MiB.
	KeepEach int
	// Compare has resets compare all pages, even where the host's kernel can tell
	// which were written.
	Compare bool
	// Heap has the memories taken from Go's heap even where address space can be
	// reserved. A memory may then move when it grows, and growing copies it.
	Heap bool
}

// Counts are what a pool has counted. Those that are not "now" never fall.
type Counts struct {
	Mapped   int64 // bytes of address space that are reserved now
	Kept     int64 // bytes, maybe touched, of memories that are kept for reuse now
	Lent     int64 // memories that are lent now
	Compared int64 // pages of 4 KiB that resets have compared
	Copied   int64 // pages of 4 KiB that resets have found changed and restored
	Scans    int64 // times that the kernel told which pages were written
	Protects int64 // times that the kernel was told to forget what was written
	Missed   int64 // pages that the kernel did not tell; the first ends tracking
}

// Pool lends memories. All methods may be called from any goroutine.
type Pool struct {
	config Config
	heap   bool     // memories are not mapped
	track  *tracker // nil when pages are not tracked

	mapped, kept, lent, compared, copied, scans, protects, missed atomic.Int64

	mu     sync.Mutex // guards what follows; nothing slow is done under it
	free   [classes][classes][]*region
	closed bool
}

// region is what backs a memory. Its owner is a Linear or the pool's free lists.
type region struct {
	base []byte // all of it
	// dirty is how many bytes at the beginning may not be zero.
	dirty   int
	mapped  bool  // else base is of Go's heap
	written *scan // nil until the region is registered with the tracker
	// guarded says that pages may be write-protected by the tracker.
	guarded bool
}

// New makes a pool, whose owner closes it.
func New(c Config) *Pool {
	if c.KeepBytes == 0 {
		c.KeepBytes = defaultKeepBytes
	}
	if c.KeepEach <= 0 {
		c.KeepEach = defaultKeepEach
	}
	p := &Pool{config: c, heap: c.Heap || !canReserve}
	if !p.heap && !c.Compare {
		p.track, _ = newTracker() // without it, resets compare
	}
	return p
}

// Tracks reports whether the kernel tells which pages were written.
func (p *Pool) Tracks() bool { return p.track != nil && p.missed.Load() == 0 }

// Counts gives the counters.
func (p *Pool) Counts() Counts {
	return Counts{
		Mapped: p.mapped.Load(), Kept: p.kept.Load(), Lent: p.lent.Load(),
		Compared: p.compared.Load(), Copied: p.copied.Load(),
		Scans: p.scans.Load(), Protects: p.protects.Load(), Missed: p.missed.Load(),
	}
}

// Take lends a memory that can grow to reserve bytes, which are rounded up to
// PageBytes and are at most MaxBytes. Where address space can be reserved it is
// reserved now, so that growth neither copies, nor moves, nor fails. The number
// of bytes likely in use, or 0 for unknown, helps to choose among memories kept.
//
// The caller gives it back by [Linear.Release].
//
// # Errors
//
// ErrHostMemory when the host cannot reserve so much now. Others mean misuse: a
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

// class is the logarithm of a size, rounded up, in pages.
func class(size uint64) int {
	return bits.Len64((max(size, PageBytes) - 1) / PageBytes)
}

// pop finds a region kept, or nil, of a class of size, and with at most a class of
// bytes touched. One in which much more was touched than is needed is left for
// others: it would hold the host's memory for nothing. The caller holds mu.
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
	if err != nil { // the reservations kept may be what is missing
		p.unmapAll(p.drain())
		base, err = reserve(size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes of address space: %w", ErrHostMemory, size, err)
	}
	p.mapped.Add(int64(size))
	return &region{base: base, mapped: true}, nil
}

// heapRegion gives a region of Go's heap that holds at least size bytes.
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

// keptBytes is what a region counts for when it is kept.
func (r *region) keptBytes() int { return max(r.dirty, PageBytes) }

// give takes back a region; nobody may look at its memory any more.
func (p *Pool) give(r *region) {
	if (!r.trim(p.config.KeepEach) || !p.push(r)) && r.mapped {
		p.unmap(r)
	}
}

// trim gives the host what was touched beyond the first keep bytes, or false.
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

// drain empties the free lists and gives what was there.
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

// unmap gives a region's address space back. Where the host refuses, which it
// may if that would split a mapping and there are too many, at least its memory
// goes back, and Counts.Mapped goes on saying so.
func (p *Pool) unmap(r *region) {
	size := len(r.base)
	if err := unreserve(r.base); err != nil {
		_ = discard(r.base)
		return
	}
	p.mapped.Add(-int64(size))
}

// Close gives back what is kept. Memories that are lent stay usable, and what
// they have goes back to the host with them. It may be called more than once.
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

// leave counts one memory as given back. The last after Close ends the tracker.
func (p *Pool) leave() {
	p.mu.Lock()
	last := p.lent.Add(-1) == 0 && p.closed
	p.mu.Unlock()
	if last {
		p.track.close()
	}
}
