// Remember is a guest that tries to carry something from one invocation to the
// next: each looks for the marks of earlier ones, in every place that it knows
// and then in all of memory, leaves marks in all these places, and ends in the
// way that its input says. It has no SDK, so that nothing tidies up after it.
package main

import (
	"encoding/binary"
	"os"
	"unsafe"

	"github.com/weftrun/weft/testdata/plugins/kernels/raw"
)

// The mark is not in the module: it is made when it is written, and looked for
// without being made.
const (
	markKey   = 0x9e3779b97f4a7c15
	markImage = 0x0123456789abcdef
)

//go:noinline
func mark(key uint64) uint64 { return key ^ markImage }

func isMark(v uint64) bool { return v^markKey == markImage }

// The places, as bits of what was found.
const (
	inGlobal = 1 << iota
	inHeap
	inMap
	inFunction
	inPool
	inGoroutine
	inGrown
	onStack
	anywhere
)

// The ways to end, the input's first byte; an argument of four bytes follows.
const (
	endReturn = iota
	endTrap
	endPanic
	endGrow
	endDeep
	endBottomless
	endLoop
	endError
	endUnwound
	endExit
	endTwice
	endGarbage
	endSilent
	endNil
)

// What outlives a step, if the host lets it.
var (
	steps    uint32
	global   uint64
	heap     []uint64
	table    = map[string]uint64{"image": 1}
	function = func() uint64 { return 1 }
	grown    uintptr // where memory was grown
)

// find says where marks of earlier invocations are.
func find() (found uint32) {
	for place, v := range map[uint32]uint64{
		inGlobal: global, inMap: table["mark"], inFunction: function(), inGoroutine: received(), inPool: pooled(),
	} {
		if isMark(v) {
			found |= place
		}
	}
	if len(heap) > 0 && isMark(heap[len(heap)-1]) {
		found |= inHeap
	}
	if grown != 0 && isMark(*at(grown)) {
		found |= inGrown
	}
	return found
}

// search looks through all of memory, and at the stack below its own frame.
func search() (found, count, first uint32) {
	var local uint64
	stack := uintptr(unsafe.Pointer(&local))
	end := uintptr(memoryPages()) << 16
	if memoryPages() == 1<<16 {
		end = 1<<32 - 8
	}
	for a := uintptr(8); a < end; a += 8 {
		if !isMark(*at(a)) {
			continue
		}
		if count++; count == 1 {
			first = uint32(a)
		}
		found |= anywhere
		if a < stack && stack-a < 32<<10 {
			found |= onStack
		}
	}
	return found, count, first
}

// at makes a pointer of an address.
func at(a uintptr) *uint64 { return *(**uint64)(unsafe.Pointer(&a)) }

// leave leaves marks in all places.
func leave(m uint64) {
	steps++
	global = m
	for range 1000 {
		heap = append(heap, m)
	}
	table["mark"] = m
	function = func() uint64 { return m }
	pool(m)
	send(m)
	deep(m, 8)
}

// deep fills frames of the stack.
//
//go:noinline
func deep(m uint64, frames uint32) uint64 {
	var frame [64]uint64
	for i := range frame {
		frame[i] = m
	}
	if frames > 0 {
		frame[frames%64] += deep(m, frames-1)
	}
	return frame[m%64]
}

// bottomless has no end that it comes to, and no loop: what is done after the
// call keeps it from becoming one.
//
//go:noinline
func bottomless(depth uint64) {
	if depth+1 == 0 {
		return
	}
	steps++
	bottomless(depth + 1)
	steps--
}

// growBy grows memory, and marks the end of it.
func growBy(pages uint32, m uint64) uint32 {
	before := growMemory(pages)
	if before < 0 || pages == 0 {
		return 0
	}
	grown = (uintptr(before)+uintptr(pages))<<16 - 8
	*at(grown) = m
	return uint32(before)
}

var garbage [][]uint64

func step(input []byte) int32 {
	found := find()
	more, count, first := search()
	var report []byte
	for _, v := range []uint32{found | more, count, first, memoryPages(), steps} {
		report = binary.LittleEndian.AppendUint32(report, v)
	}
	report = append(report, world()...)
	raw.Show(report)
	end, arg := input[0], binary.LittleEndian.Uint32(input[1:])
	m := mark(markKey)
	leave(m)
	switch end {
	case endTrap:
		unreachable()
	case endPanic:
		panic("told to")
	case endGrow:
		report = binary.LittleEndian.AppendUint32(report, growBy(arg%64, m))
	case endDeep:
		deep(m, arg%64)
	case endBottomless:
		bottomless(0)
	case endLoop:
		for steps != 0 {
			steps |= 1
		}
	case endError:
		return raw.Answer(1, report)
	case endUnwound:
		raw.Show([]byte("unwind"))
	case endExit:
		os.Exit(int(arg % 4))
	case endTwice:
		raw.Answer(0, report)
	case endGarbage:
		for range arg % 256 {
			garbage = append(garbage, make([]uint64, 1024))
			garbage[len(garbage)-1][0] = m
		}
	case endSilent:
		return 0
	case endNil:
		*at(0xffff_fff0) = m // beyond the memory
	}
	return raw.Answer(0, report)
}

func init() { raw.Step = step }

func main() {}
