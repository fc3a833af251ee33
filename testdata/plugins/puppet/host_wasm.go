package main

import (
	"runtime"
	"unsafe"
)

//go:wasmimport weft:v1 input
func hostInput(dst unsafe.Pointer, off, n uint32)

//go:wasmimport weft:v1 response
func hostResponse(dst unsafe.Pointer, off, n uint32)

//go:wasmimport weft:v1 output
func hostOutput(src unsafe.Pointer, n uint32)

//go:wasmimport weft:v1 state_get
func hostGet(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_edit
func hostEdit(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_begin
func hostBegin(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_commit
func hostCommit(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_abort
func hostAbort(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 send_event
func hostSend(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 collect_events
func hostCollect(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 wait_for_event
func hostWait(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 write_event_to_stream
func hostWrite(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 sleep
func hostSleep(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 now
func hostNow(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 random
func hostRandom(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 log
func hostLog(src unsafe.Pointer, n uint32) uint64

//go:wasmexport weft_describe
func describe() { output(manifest()) }

//go:wasmexport weft_step
func step(n int32) int32 {
	zero = int(n >> 31)
	input := make([]byte, n)
	hostInput(unsafe.Pointer(unsafe.SliceData(input)), 0, uint32(n))
	out, code := play(input)
	output(out)
	return code
}

func output(b []byte) {
	hostOutput(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
	runtime.KeepAlive(b)
}

// call makes a host call by the name of its import.
func call(name string, request []byte) answer {
	src, n := unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request))
	var got uint64
	switch name {
	case "state_get":
		got = hostGet(src, n)
	case "state_edit":
		got = hostEdit(src, n)
	case "state_begin":
		got = hostBegin(src, n)
	case "state_commit":
		got = hostCommit(src, n)
	case "state_abort":
		got = hostAbort(src, n)
	case "send_event":
		got = hostSend(src, n)
	case "collect_events":
		got = hostCollect(src, n)
	case "wait_for_event":
		got = hostWait(src, n)
	case "write_event_to_stream":
		got = hostWrite(src, n)
	case "sleep":
		got = hostSleep(src, n)
	case "now":
		got = hostNow(src, n)
	case "random":
		got = hostRandom(src, n)
	case "log":
		got = hostLog(src, n)
	default:
		panic("there is no operation " + name)
	}
	runtime.KeepAlive(request)
	a := answer{status: uint32(got >> 32), response: make([]byte, uint32(got))}
	if len(a.response) > 0 {
		hostResponse(unsafe.Pointer(unsafe.SliceData(a.response)), 0, uint32(len(a.response)))
	}
	return a
}
