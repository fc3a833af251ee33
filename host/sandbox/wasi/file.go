package wasi

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

const (
	maxStdio = 2 // files 0, 1 and 2 are open, and no others

	maxVectors = 1024    // in one fd_write
	maxWritten = 1 << 20 // bytes of one fd_write; the guest writes the rest in further calls
	vectorLen  = 8

	fdstatLen      = 24
	filestatLen    = 64
	filetypeOffset = 16 // in a filestat

	filetypeCharacterDevice = 2

	rightRead  = 1 << 1
	rightWrite = 1 << 6
)

// onStdio serves functions that succeed on the open files without any effect.
func onStdio(_ Host, _ api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > maxStdio {
		return errnoBadf
	}
	return errnoSuccess
}

// seekStdio serves functions that character devices do not support.
func seekStdio(_ Host, _ api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > maxStdio {
		return errnoBadf
	}
	return errnoSpipe
}

func fdstatGet(_ Host, mem api.Memory, args []uint64) uint32 {
	fd := uint32(args[0])
	if fd > maxStdio {
		return errnoBadf
	}
	stat, ok := mem.Read(uint32(args[1]), fdstatLen)
	if !ok {
		return errnoFault
	}
	clear(stat)
	stat[0] = filetypeCharacterDevice
	rights := uint64(rightWrite)
	if fd == 0 {
		rights = rightRead
	}
	binary.LittleEndian.PutUint64(stat[8:], rights)
	return errnoSuccess
}

func filestatGet(_ Host, mem api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > maxStdio {
		return errnoBadf
	}
	stat, ok := mem.Read(uint32(args[1]), filestatLen)
	if !ok {
		return errnoFault
	}
	clear(stat)
	stat[filetypeOffset] = filetypeCharacterDevice
	return errnoSuccess
}

// fdRead reads the end of the file from file 0.
func fdRead(_ Host, mem api.Memory, args []uint64) uint32 {
	if uint32(args[0]) != 0 {
		return errnoBadf
	}
	if !mem.WriteUint32Le(uint32(args[3]), 0) {
		return errnoFault
	}
	return errnoSuccess
}

func fdWrite(h Host, mem api.Memory, args []uint64) uint32 {
	fd, list, n, written := uint32(args[0]), uint32(args[1]), uint32(args[2]), uint32(args[3])
	if fd == 0 || fd > maxStdio {
		return errnoBadf
	}
	if n > maxVectors {
		return errnoInval
	}
	vectors, ok := mem.Read(list, n*vectorLen)
	if !ok {
		return errnoFault
	}
	h.Work(int(n))
	_, ok = mem.Read(written, 4)
	for rest := vectors; ok && len(rest) > 0; rest = rest[vectorLen:] {
		_, ok = vector(mem, rest)
	}
	if !ok {
		return errnoFault // fails before anything is written
	}
	total := uint32(0)
	for ; len(vectors) > 0 && total < maxWritten; vectors = vectors[vectorLen:] {
		text, _ := vector(mem, vectors)
		text = text[:min(len(text), int(maxWritten-total))]
		total += uint32(len(text))
		inPieces(text, func(piece []byte) { h.Print(fd, piece) })
	}
	mem.WriteUint32Le(written, total)
	return errnoSuccess
}

// vector returns the bytes that the first of the vectors refers to.
func vector(mem api.Memory, vectors []byte) ([]byte, bool) {
	return mem.Read(binary.LittleEndian.Uint32(vectors), binary.LittleEndian.Uint32(vectors[4:]))
}
