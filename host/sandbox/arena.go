package sandbox

import (
	"encoding/binary"
	"math/bits"
)

// arena is the memory that an Extism plugin and its host hand bytes over in,
// outside of the plugin's own: blocks at offsets, which the plugin reads and
// writes by imports. It lives for one call. The guest's goroutine uses it.
//
// Where it can be seen it is as the kernel of Extism's hosts: an offset of 0 is
// no block, what is out of range reads as 0 and is not written, a block that was
// freed has no length. Room is given by size, so that all of it costs the same
// however many blocks there are.
type arena struct {
	b      []byte              // from base on; below len(b) all is a block's
	blocks map[uint64]block    // by offset
	free   map[uint64][]uint64 // offsets by size
	input  span
	output span
	err    uint64 // offset of the error's text; 0: none
}

// block is a part of the arena that was given out, and maybe given back.
type block struct {
	used  uint64 // bytes that were asked for
	size  uint64
	freed bool
}

type span struct{ at, length uint64 }

const (
	arenaBase    = 80       // of the first block: no offset is small
	arenaKept    = 64 << 10 // bytes that stay for the next call
	arenaPage    = 64 << 10
	leastBlock   = 16
	blocksKept   = 1024
	blockCharge  = 256 // bytes that the host has for a block, counted as if they were the guest's
	blockClasses = 3   // bits: eight sizes from one power of two to the next
)

// clear forgets all blocks; what they held is zero.
func (a *arena) clear() {
	if cap(a.b) > arenaKept {
		a.b = nil
	}
	clear(a.b)
	a.b = a.b[:0]
	if len(a.blocks) > blocksKept {
		a.blocks, a.free = nil, nil
	}
	clear(a.blocks)
	clear(a.free)
	a.input, a.output, a.err = span{}, span{}, 0
}

// sizeOf rounds a size up: so freed blocks fit again, and at most an eighth is lost.
func sizeOf(n uint64) uint64 {
	n = max(n, leastBlock)
	shift := max(bits.Len64(n-1)-blockClasses-1, 3)
	step := uint64(1) << shift
	return (n + step - 1) &^ (step - 1)
}

// takes is how much larger the arena gets by a block of n bytes, the host's own
// notes included.
func (a *arena) takes(n uint64) uint64 {
	if n == 0 || len(a.free[sizeOf(n)]) > 0 {
		return 0
	}
	return sizeOf(n) + blockCharge
}

// bytes is what the arena takes.
func (a *arena) bytes() uint64 { return uint64(len(a.b)) + blockCharge*uint64(len(a.blocks)) }

// alloc gives the offset of a block of n bytes, which is 0 for none. The caller
// has seen to it that there may be so much.
func (a *arena) alloc(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	if a.blocks == nil {
		a.blocks, a.free = map[uint64]block{}, map[uint64][]uint64{}
	}
	size := sizeOf(n)
	if freed := a.free[size]; len(freed) > 0 {
		at := freed[len(freed)-1]
		a.free[size] = freed[:len(freed)-1]
		a.blocks[at] = block{used: n, size: size}
		return at
	}
	at := arenaBase + uint64(len(a.b))
	a.grow(int(size))
	a.blocks[at] = block{used: n, size: size}
	return at
}

// grow appends zeros. All growing together copies at most three times what there is
// in the end, which is what alloc charges for.
func (a *arena) grow(n int) {
	need := len(a.b) + n
	if need > cap(a.b) {
		larger := make([]byte, len(a.b), max(need, cap(a.b)/2*3, 4<<10))
		copyPieces(larger, a.b)
		a.b = larger
	}
	a.b = a.b[:need] // never written beyond the length, so it is zero
}

// drop frees a block.
func (a *arena) drop(at uint64) {
	b, ok := a.blocks[at]
	if !ok || b.freed {
		return
	}
	b.freed = true
	a.blocks[at] = b
	a.free[b.size] = append(a.free[b.size], at)
	if at == a.input.at {
		a.input.length = 0
	}
}

// length is that of the block at an offset, 0 if there is none.
func (a *arena) length(at uint64) uint64 {
	if b, ok := a.blocks[at]; ok && !b.freed {
		return b.used
	}
	return 0
}

// end is one beyond the last offset that is in range: whole pages.
func (a *arena) end() uint64 {
	return (arenaBase + uint64(len(a.b)) + arenaPage - 1) &^ (arenaPage - 1)
}

// has reports whether n bytes at an offset are in range.
func (a *arena) has(at, n uint64) bool {
	end := a.end()
	return at >= arenaBase && at <= end && n <= end-at
}

// view is what is there of n bytes at an offset: it may be shorter.
func (a *arena) view(at, n uint64) []byte {
	if at < arenaBase || at-arenaBase >= uint64(len(a.b)) {
		return nil
	}
	rest := a.b[at-arenaBase:]
	return rest[:min(n, uint64(len(rest)))]
}

// load reads 8 bytes.
func (a *arena) load(at uint64) uint64 {
	b := a.view(at, 8)
	if len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	var whole [8]byte
	copy(whole[:], b)
	return binary.LittleEndian.Uint64(whole[:])
}

// store writes 8 bytes, as far as they are a block's.
func (a *arena) store(at, value uint64) {
	b := a.view(at, 8)
	if len(b) == 8 {
		binary.LittleEndian.PutUint64(b, value)
		return
	}
	var whole [8]byte
	binary.LittleEndian.PutUint64(whole[:], value)
	copy(b, whole[:])
}
