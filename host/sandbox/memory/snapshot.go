package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// pageBytes is the unit in which memories are compared with snapshots.
const pageBytes = 4096

// populateFrom is the size of the smallest run whose memory is requested from the host at
// once. For smaller runs, faults cost no more.
const populateFrom = 4 * pageBytes

var zeroPage [pageBytes]byte

// Snapshot is the contents of a memory. A Snapshot never changes, and any goroutine may
// use it.
type Snapshot struct {
	size int    // bytes of the memory
	runs []run  // by offset; the memory between them is zero
	data []byte // of all runs
}

// run is a part of a memory between zero pages. Its offset and length are multiples of
// pageBytes.
type run struct {
	offset int
	data   []byte
}

func (r run) end() int { return r.offset + len(r.data) }

// Take copies the contents of a memory. It returns nil if the pages that are not zero
// exceed max bytes.
func Take(l *Linear, max int) *Snapshot {
	s := &Snapshot{size: len(l.mem)}
	total := 0
	for at := 0; at < len(l.mem); at += pageBytes {
		page := l.mem[at : at+pageBytes]
		if bytes.Equal(page, zeroPage[:]) {
			continue
		}
		if total += len(page); total > max {
			return nil
		}
		if n := len(s.runs); n > 0 && s.runs[n-1].end() == at {
			s.runs[n-1].data = l.mem[s.runs[n-1].offset : at+pageBytes]
			continue
		}
		s.runs = append(s.runs, run{at, page})
	}
	s.data = make([]byte, 0, total)
	for i, r := range s.runs {
		s.data = append(s.data, r.data...)
		s.runs[i].data = s.data[len(s.data)-len(r.data):]
	}
	return s
}

// Size returns the size of the memory in bytes.
func (s *Snapshot) Size() int { return s.size }

// Kept returns the number of bytes that the snapshot itself holds.
func (s *Snapshot) Kept() int { return len(s.data) }

// Hash returns the SHA-256, in hex, of the memory's size in bytes (eight bytes,
// little-endian) followed by the memory. Each call computes it anew, at about a
// millisecond for 2 MiB.
func (s *Snapshot) Hash() string {
	h := hashOfSize(s.size)
	at := 0
	for _, r := range s.runs {
		hashZeros(h, r.offset-at)
		h.Write(r.data)
		at = r.end()
	}
	hashZeros(h, s.size-at)
	return hex.EncodeToString(h.Sum(nil))
}

// Hash returns what [Snapshot.Hash] returns for a snapshot of the memory.
func (l *Linear) Hash() string {
	h := hashOfSize(len(l.mem))
	h.Write(l.mem)
	return hex.EncodeToString(h.Sum(nil))
}

func hashOfSize(size int) hash.Hash {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(size)))
	return h
}

func hashZeros(h hash.Hash, n int) {
	for ; n > 0; n -= pageBytes {
		h.Write(zeroPage[:])
	}
}

// Fill copies the snapshot to a memory. The caller calls Fill on a memory just taken,
// before the instance is made. The instance then finds the memory filled, which spares
// clearing what a kept memory held before. An instance with data segments of its own
// writes them over the snapshot. Alternatively, the caller calls Fill on an instance's
// memory that is as large as the snapshot and zero.
//
// Fill returns false, and does nothing, if the memory is in neither state, or if less
// than the snapshot's size was reserved.
func (s *Snapshot) Fill(l *Linear) bool {
	if l.released || uint64(s.size) > l.reserved || l.mem != nil && len(l.mem) != s.size {
		return false
	}
	if l.mem != nil {
		for _, r := range s.runs {
			copy(l.mem[r.offset:], r.data)
		}
	} else {
		l.hold(s.size)
		l.clean = nil
		l.unguard()
		s.overwrite(l.region)
		l.ready = s.size
	}
	if s.size/pageBytes > vainPages { // for a small memory, a few resets show whether protecting it pays
		s.protect(l, l.region.base[:s.size])
	}
	return true
}

// overwrite makes the first s.size bytes of a region equal to the snapshot.
func (s *Snapshot) overwrite(r *region) {
	dirty, at := min(r.dirty, s.size), 0
	for _, run := range s.runs {
		if dirty > at {
			clear(r.base[at:min(run.offset, dirty)])
		}
		if fresh := max(run.offset, dirty); r.mapped && run.end()-fresh >= populateFrom {
			populate(r.base[fresh:run.end()])
		}
		copy(r.base[run.offset:], run.data)
		at = run.end()
	}
	if dirty > at {
		clear(r.base[at:dirty])
	}
	r.dirty = max(r.dirty, s.size)
}

// Reset restores a memory to the snapshot, whatever was written to it. It returns false,
// and does nothing, if the memory's size differs from the snapshot's (see
// [Snapshot.Shrink]). Reset does not allocate, except when it begins to track the pages,
// which costs more than later resets.
func (s *Snapshot) Reset(l *Linear) bool {
	if l.mem == nil || len(l.mem) != s.size {
		return false
	}
	s.restore(l)
	return true
}

// Shrink is Reset for a memory that has grown, while its instance stays: the memory then
// has the snapshot's size again. WebAssembly's memories do not shrink, but wazero sets a
// memory's size to the size that its allocator returns for a growth. Shrink therefore
// calls grow, which is the Grow method of the instance's [api.Memory], for one more page,
// and the allocator returns less. No code of the instance may run meanwhile.
//
// Shrink returns false and does nothing if the memory has not grown, or if it cannot grow
// because it is as large as its module allows. It also returns false if releasing the
// memory is cheaper; then the instance must not be used any more.
//
// [api.Memory]: https://pkg.go.dev/github.com/tetratelabs/wazero/api#Memory
func (s *Snapshot) Shrink(l *Linear, grow func(pages uint32) (before uint32, ok bool)) bool {
	if len(l.mem) <= s.size {
		return false
	}
	l.shrinking = s
	_, ok := grow(1)
	l.shrinking = nil
	if !ok || len(l.mem) != s.size || !l.region.trim(max(s.size, l.pool.config.KeepEach)) {
		return false
	}
	s.restore(l)
	l.ready = s.size
	return true
}

// Renew takes the memory from an instance that has ended, even if the memory has grown,
// for a new instance. The memory is then as after [Snapshot.Fill] on a memory just taken,
// at the cost of a Reset. Views into the memory must not be used after Renew, as after
// [Linear.Release].
//
// Renew returns false, and does nothing, if the memory is smaller than the snapshot, was
// not in use, or is cheaper to release.
func (s *Snapshot) Renew(l *Linear) bool {
	if l.mem == nil || len(l.mem) < s.size || !l.region.trim(max(s.size, l.pool.config.KeepEach)) {
		return false
	}
	s.restore(l)
	l.mem, l.ready, l.refused = nil, s.size, false
	return true
}

// restoreAll compares every page, and returns how many it restored.
func (s *Snapshot) restoreAll(mem []byte) (copied int) {
	at := 0
	for _, r := range s.runs {
		copied += clearPages(mem[at:r.offset])
		copied += copyPages(mem[r.offset:r.end()], r.data)
		at = r.end()
	}
	return copied + clearPages(mem[at:])
}

// copyPages makes to equal to from, which has the same length, and writes only pages that
// differ. It returns the number of those pages.
func copyPages(to, from []byte) (copied int) {
	for ; len(to) > 0; to, from = to[pageBytes:], from[pageBytes:] {
		if !bytes.Equal(to[:pageBytes], from[:pageBytes]) {
			copy(to[:pageBytes], from[:pageBytes])
			copied++
		}
	}
	return copied
}

// clearPages zeroes to, and writes only pages that are not zero. It returns the number of
// those pages.
func clearPages(to []byte) (cleared int) {
	for ; len(to) > 0; to = to[pageBytes:] {
		if !bytes.Equal(to[:pageBytes], zeroPage[:]) {
			clear(to[:pageBytes])
			cleared++
		}
	}
	return cleared
}
