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

// populateFrom is the size of the smallest run whose memory is asked of the host
// at once; with less, faults are as cheap.
const populateFrom = 4 * pageBytes

var zeroPage [pageBytes]byte

// Snapshot is what a memory held. It is not changed once it is made, and may be
// used by any goroutine.
type Snapshot struct {
	size int    // bytes of the memory
	runs []run  // by offset; between them the memory is zero
	data []byte // of all runs
}

// run is a part of a memory between pages that are zero. Its offset and length
// are multiples of pageBytes.
type run struct {
	offset int
	data   []byte
}

func (r run) end() int { return r.offset + len(r.data) }

// Take copies what is in a memory; nil when the pages that are not zero have
// more than max bytes.
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

// Size is the size of the memory in bytes.
func (s *Snapshot) Size() int { return s.size }

// Kept is the bytes that the snapshot itself takes.
func (s *Snapshot) Kept() int { return len(s.data) }

// Hash is SHA-256, in hex, over the memory's size in bytes, as eight bytes with
// the lowest first, and the memory. It is computed anew by each call, about a
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

// Hash is what [Snapshot.Hash] gives for a snapshot of the memory.
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

// Fill makes a memory like the snapshot. It is called on a memory just taken,
// before the instance is made, which then finds it so: that spares the clearing
// of what a memory kept held before. An instance with data segments of its own
// writes them over it. Or it is called on the memory of an instance, which must
// be as large as the snapshot and zero.
//
// It gives false, and does nothing, when the memory is neither, or less than the
// snapshot's size was reserved.
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
	if s.size/pageBytes > vainPages { // else a few resets will show whether it pays
		s.protect(l, l.region.base[:s.size])
	}
	return true
}

// overwrite makes the first s.size bytes of a region like the snapshot.
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

// Reset brings a memory back to the snapshot, whatever was written to it. It
// gives false, and does nothing, when its size is not the snapshot's any more (see
// [Snapshot.Shrink]). It does not allocate, but for the one that begins to track
// the pages, which costs more than those after it.
func (s *Snapshot) Reset(l *Linear) bool {
	if l.mem == nil || len(l.mem) != s.size {
		return false
	}
	s.restore(l)
	return true
}

// Shrink is Reset for a memory that has grown, in the instance that has it: it has
// the snapshot's size again. WebAssembly's memories do not shrink, but wazero takes
// for a memory's size that of what its allocator gives when it grows. So grow, which
// is the Grow of the instance's [api.Memory], is asked for one page more, and is
// given less. No code of the instance may run meanwhile.
//
// It gives false when the memory has not grown, and when it cannot grow, as it is as
// large as its module allows: then it has done nothing. And it gives false when the
// memory is better given back: then the instance is of no use any more.
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

// Renew takes the memory from an instance that has ended, maybe after it has
// grown, for a new instance: it is then as after [Snapshot.Fill] on a memory just
// taken, at the cost of a Reset. What holds for views into a memory after
// [Linear.Release] holds after Renew.
//
// It gives false, and does nothing, when the memory is smaller than the
// snapshot, or was not in use, or is better given back.
func (s *Snapshot) Renew(l *Linear) bool {
	if l.mem == nil || len(l.mem) < s.size || !l.region.trim(max(s.size, l.pool.config.KeepEach)) {
		return false
	}
	s.restore(l)
	l.mem, l.ready, l.refused = nil, s.size, false
	return true
}

// restoreAll compares every page, and gives the number of those restored.
func (s *Snapshot) restoreAll(mem []byte) (copied int) {
	at := 0
	for _, r := range s.runs {
		copied += clearPages(mem[at:r.offset])
		copied += copyPages(mem[r.offset:r.end()], r.data)
		at = r.end()
	}
	return copied + clearPages(mem[at:])
}

// copyPages makes to equal to from, of the same length, and writes only pages
// that differ. It gives their number.
func copyPages(to, from []byte) (copied int) {
	for ; len(to) > 0; to, from = to[pageBytes:], from[pageBytes:] {
		if !bytes.Equal(to[:pageBytes], from[:pageBytes]) {
			copy(to[:pageBytes], from[:pageBytes])
			copied++
		}
	}
	return copied
}

// clearPages makes all zero, and writes only pages that are not. It gives their
// number.
func clearPages(to []byte) (cleared int) {
	for ; len(to) > 0; to = to[pageBytes:] {
		if !bytes.Equal(to[:pageBytes], zeroPage[:]) {
			clear(to[:pageBytes])
			cleared++
		}
	}
	return cleared
}
