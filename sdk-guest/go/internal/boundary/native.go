//go:build !wasm

package boundary

// EventName returns the name of the event type of a value, for tests. Package weft sets
// it.
var EventName func(event any) (string, error)

// Aside puts the process's workflow aside, so that a test can define another workflow,
// until the returned function is called. Package weft sets it.
var Aside func() (back func())

func call(name string, request []byte) (uint32, []byte) {
	if Native == nil {
		panic("weft: no host: in a native build steps run only in tests; see package wefttest")
	}
	return Native.Call(name, request)
}

// StateGet asks for a value of the state.
func StateGet(request []byte) (uint32, []byte) { return call("state_get", request) }

// StateEdit makes a batch of edits.
func StateEdit(request []byte) (uint32, []byte) { return call("state_edit", request) }

// StateBegin opens an edit.
func StateBegin(request []byte) (uint32, []byte) { return call("state_begin", request) }

// StateCommit ends the open edit with a new value.
func StateCommit(request []byte) (uint32, []byte) { return call("state_commit", request) }

// StateAbort ends the open edit and changes nothing.
func StateAbort(request []byte) (uint32, []byte) { return call("state_abort", request) }

// SendEvent emits an event.
func SendEvent(request []byte) (uint32, []byte) { return call("send_event", request) }

// CollectEvents buffers an event until a set is complete.
func CollectEvents(request []byte) (uint32, []byte) { return call("collect_events", request) }

// WriteEventToStream publishes an event to the run's stream.
func WriteEventToStream(request []byte) (uint32, []byte) {
	return call("write_event_to_stream", request)
}

// WaitForEvent suspends the invocation until an event comes.
func WaitForEvent(request []byte) (uint32, []byte) { return call("wait_for_event", request) }

// RunWorkflow runs a child workflow and suspends the invocation until it ends.
func RunWorkflow(request []byte) (uint32, []byte) { return call("run_workflow", request) }

// CallResource calls a granted resource and suspends the invocation until it
// answers.
func CallResource(request []byte) (uint32, []byte) { return call("call_resource", request) }

// Sleep suspends the invocation for a time.
func Sleep(request []byte) (uint32, []byte) { return call("sleep", request) }

// Now asks for the time.
func Now(request []byte) (uint32, []byte) { return call("now", request) }

// Random asks for random bytes.
func Random(request []byte) (uint32, []byte) { return call("random", request) }

// Log writes a log record.
func Log(request []byte) (uint32, []byte) { return call("log", request) }

// Input fetches the invocation's input.
func Input(int) []byte { return Native.Input() }

// Output passes the invocation's result, or the manifest, to the host.
func Output(output []byte) { Native.Output(output) }
