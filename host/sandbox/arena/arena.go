// Package arena has the memory through which an Extism plugin and its host exchange bytes,
// outside of the plugin's own memory.
//
// It must not depend on guests, or what its bytes mean.
package arena

import (
	"encoding/binary"
	"math/bits"

	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// Arena consists of blocks at offsets, which the plugin reads and
// writes by imports. An arena lives for one call, and only the guest's goroutine uses it.
//
// What plugins can observe equals the kernel of Extism's hosts: offset 0 means no block,
// Bytes out of range read as 0 and are not written, and a freed block has length 0. Free
// blocks are kept by size, so the cost of an operation does not depend on the number of
// blocks.
type Arena struct {
	b      []byte              // starts at offset base; every byte below len(b) belongs to a block
	blocks map[uint64]block    // by offset
	free   map[uint64][]uint64 // offsets of free blocks by size

	Input  Span
	Output Span
	Err    uint64 // offset of the error text; 0: none
}

// block is a part of the arena that was allocated and possibly freed.
type block struct {
	used  uint64 // bytes requested
	size  uint64
	freed bool
}

// Span is a part of the arena.
type Span struct{ At, Length uint64 }

// BlockCharge is what the host's record of a block is charged with, in bytes.
const BlockCharge = 256

const (
	base         = 80       // offset of the first block: small offsets are never valid
	kept         = 64 << 10 // bytes kept for the next call
	page         = 64 << 10
	leastBlock   = 16
	blocksKept   = 1024
	blockClasses = 3 // bits: eight sizes between two powers of two
)

// Clear removes all blocks and zeroes their bytes.
func (a *Arena) Clear() {
	if cap(a.b) > kept {
		a.b = nil
	}
	clear(a.b)
	a.b = a.b[:0]
	if len(a.blocks) > blocksKept {
		a.blocks, a.free = nil, nil
	}
	clear(a.blocks)
	clear(a.free)
	a.Input, a.Output, a.Err = Span{}, Span{}, 0
}

// sizeOf rounds a size up, so that freed blocks can be reused. At most an eighth is lost.
func sizeOf(n uint64) uint64 {
	n = max(n, leastBlock)
	shift := max(bits.Len64(n-1)-blockClasses-1, 3)
	step := uint64(1) << shift
	return (n + step - 1) &^ (step - 1)
}

// Takes returns how much the arena grows for a block of n bytes, including the host's
// record.
func (a *Arena) Takes(n uint64) uint64 {
	if n == 0 || len(a.free[sizeOf(n)]) > 0 {
		return 0
	}
	return sizeOf(n) + BlockCharge
}

// Size returns the bytes of all blocks, and the number of blocks.
func (a *Arena) Size() (content, blocks int) { return len(a.b), len(a.blocks) }

// Bytes returns the size of the arena, including the host's records.
func (a *Arena) Bytes() uint64 { return uint64(len(a.b)) + BlockCharge*uint64(len(a.blocks)) }

// Alloc returns the offset of a new block of n bytes, or 0 if n is 0. The caller has
// checked that the arena may grow that much.
func (a *Arena) Alloc(n uint64) uint64 {
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
	at := base + uint64(len(a.b))
	a.grow(int(size))
	a.blocks[at] = block{used: n, size: size}
	return at
}

// grow appends zeros. Over the arena's life, growing copies at most three times its final
// size, and alloc charges for that.
func (a *Arena) grow(n int) {
	need := len(a.b) + n
	if need > cap(a.b) {
		larger := make([]byte, len(a.b), max(need, cap(a.b)/2*3, 4<<10))
		rewrite.Copy(larger, a.b)
		a.b = larger
	}
	a.b = a.b[:need] // never written beyond the length, so the bytes are zero
}

// Drop frees a block.
func (a *Arena) Drop(at uint64) {
	b, ok := a.blocks[at]
	if !ok || b.freed {
		return
	}
	b.freed = true
	a.blocks[at] = b
	a.free[b.size] = append(a.free[b.size], at)
	if at == a.Input.At {
		a.Input.Length = 0
	}
}

// Length returns the length of the block at an offset, or 0 if there is no block.
func (a *Arena) Length(at uint64) uint64 {
	if b, ok := a.blocks[at]; ok && !b.freed {
		return b.used
	}
	return 0
}

// End returns the offset behind the last valid offset: a multiple of the page size.
func (a *Arena) End() uint64 {
	return (base + uint64(len(a.b)) + page - 1) &^ (page - 1)
}

// Has reports whether n bytes at an offset are in range.
func (a *Arena) Has(at, n uint64) bool {
	end := a.End()
	return at >= base && at <= end && n <= end-at
}

// View returns the bytes that exist among n bytes at an offset; the result may be shorter
// than n.
func (a *Arena) View(at, n uint64) []byte {
	if at < base || at-base >= uint64(len(a.b)) {
		return nil
	}
	rest := a.b[at-base:]
	return rest[:min(n, uint64(len(rest)))]
}

// Load reads 8 bytes.
func (a *Arena) Load(at uint64) uint64 {
	b := a.View(at, 8)
	if len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	var whole [8]byte
	copy(whole[:], b)
	return binary.LittleEndian.Uint64(whole[:])
}

// Store writes 8 bytes, except bytes that belong to no block.
func (a *Arena) Store(at, value uint64) {
	b := a.View(at, 8)
	if len(b) == 8 {
		binary.LittleEndian.PutUint64(b, value)
		return
	}
	var whole [8]byte
	binary.LittleEndian.PutUint64(whole[:], value)
	copy(b, whole[:])
}
