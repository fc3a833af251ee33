//go:build !extism

package raw

import (
	"runtime"
	"unsafe"
)

//go:wasmimport weft:v1 input
func hostInput(dst unsafe.Pointer, off, n uint32)

//go:wasmimport weft:v1 output
func hostOutput(src unsafe.Pointer, n uint32)

//go:wasmimport weft:v1 log
func hostLog(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 now
func hostNow(src unsafe.Pointer, n uint32) uint64

//go:wasmexport weft_describe
func describe() {
	if Warm != nil {
		Warm()
	}
	Output([]byte{0x82, 0, 0xf6})
}

//go:wasmexport weft_step
func step(n int32) int32 {
	input := make([]byte, n)
	if n > 0 {
		hostInput(unsafe.Pointer(unsafe.SliceData(input)), 0, uint32(n))
	}
	return Step(input)
}

// Output hands over the output, or the manifest, as it is.
func Output(b []byte) {
	hostOutput(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
	runtime.KeepAlive(b)
}

// Show lets the host see some bytes, by the import log.
func Show(b []byte) {
	hostLog(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
	runtime.KeepAlive(b)
}

// Mark lets the host take the time, by the import now.
func Mark() {
	null := byte(0xf6)
	hostNow(unsafe.Pointer(&null), 1)
}
