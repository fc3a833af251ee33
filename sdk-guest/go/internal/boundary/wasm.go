//go:build wasm

package boundary

import (
	"runtime"
	"unsafe"
)

//go:wasmexport weft_describe
func weftDescribe() { Describe() }

//go:wasmexport weft_step
func weftStep(n int32) int32 { return int32(Step(int(n))) }

//go:wasmimport weft:v1 input
func hostInput(dst unsafe.Pointer, off, n uint32)

//go:wasmimport weft:v1 response
func hostResponse(dst unsafe.Pointer, off, n uint32)

//go:wasmimport weft:v1 output
func hostOutput(src unsafe.Pointer, n uint32)

//go:wasmimport weft:v1 state_get
func hostStateGet(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_edit
func hostStateEdit(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_begin
func hostStateBegin(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_commit
func hostStateCommit(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 state_abort
func hostStateAbort(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 send_event
func hostSendEvent(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 collect_events
func hostCollectEvents(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 write_event_to_stream
func hostWriteEventToStream(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 wait_for_event
func hostWaitForEvent(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 run_workflow
func hostRunWorkflow(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 call_resource
func hostCallResource(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 sleep
func hostSleep(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 now
func hostNow(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 random
func hostRandom(src unsafe.Pointer, n uint32) uint64

//go:wasmimport weft:v1 log
func hostLog(src unsafe.Pointer, n uint32) uint64

// Each host call has a function of its own, so that a plugin imports only the calls that
// it uses.

// StateGet asks for a value of the state.
func StateGet(request []byte) (uint32, []byte) {
	return fetch(hostStateGet(data(request), size(request)), request)
}

// StateEdit makes a batch of edits.
func StateEdit(request []byte) (uint32, []byte) {
	return fetch(hostStateEdit(data(request), size(request)), request)
}

// StateBegin opens an edit.
func StateBegin(request []byte) (uint32, []byte) {
	return fetch(hostStateBegin(data(request), size(request)), request)
}

// StateCommit ends the open edit with a new value.
func StateCommit(request []byte) (uint32, []byte) {
	return fetch(hostStateCommit(data(request), size(request)), request)
}

// StateAbort ends the open edit and changes nothing.
func StateAbort(request []byte) (uint32, []byte) {
	return fetch(hostStateAbort(data(request), size(request)), request)
}

// SendEvent emits an event.
func SendEvent(request []byte) (uint32, []byte) {
	return fetch(hostSendEvent(data(request), size(request)), request)
}

// CollectEvents buffers an event until a set is complete.
func CollectEvents(request []byte) (uint32, []byte) {
	return fetch(hostCollectEvents(data(request), size(request)), request)
}

// WriteEventToStream publishes an event to the run's stream.
func WriteEventToStream(request []byte) (uint32, []byte) {
	return fetch(hostWriteEventToStream(data(request), size(request)), request)
}

// WaitForEvent suspends the invocation until an event comes.
func WaitForEvent(request []byte) (uint32, []byte) {
	return fetch(hostWaitForEvent(data(request), size(request)), request)
}

// RunWorkflow runs a child workflow and suspends the invocation until it ends.
func RunWorkflow(request []byte) (uint32, []byte) {
	return fetch(hostRunWorkflow(data(request), size(request)), request)
}

// CallResource calls a granted resource and suspends the invocation until it
// answers.
func CallResource(request []byte) (uint32, []byte) {
	return fetch(hostCallResource(data(request), size(request)), request)
}

// Sleep suspends the invocation for a time.
func Sleep(request []byte) (uint32, []byte) {
	return fetch(hostSleep(data(request), size(request)), request)
}

// Now asks for the time.
func Now(request []byte) (uint32, []byte) {
	return fetch(hostNow(data(request), size(request)), request)
}

// Random asks for random bytes.
func Random(request []byte) (uint32, []byte) {
	return fetch(hostRandom(data(request), size(request)), request)
}

// Log writes a log record.
func Log(request []byte) (uint32, []byte) {
	return fetch(hostLog(data(request), size(request)), request)
}

func data(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func size(b []byte) uint32 { return uint32(len(b)) }

// fetch unpacks a host call's result and copies the response to newly allocated memory.
// The parameter request keeps the request alive during the call.
func fetch(packed uint64, request []byte) (status uint32, response []byte) {
	runtime.KeepAlive(request)
	if n := uint32(packed); n > 0 {
		response = make([]byte, n)
		hostResponse(data(response), 0, n)
		runtime.KeepAlive(response)
	}
	return uint32(packed >> 32), response
}

// Input fetches the invocation's input, which has n bytes.
func Input(n int) []byte {
	input := make([]byte, n)
	if n > 0 {
		hostInput(data(input), 0, uint32(n))
		runtime.KeepAlive(input)
	}
	return input
}

// Output passes the invocation's result, or the manifest, to the host.
func Output(output []byte) {
	hostOutput(data(output), size(output))
	runtime.KeepAlive(output)
}
