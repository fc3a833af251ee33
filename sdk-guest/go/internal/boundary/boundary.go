// Package boundary is the only place where a guest touches its host: the
// imports of the module weft:v1 in a Wasm build, and in a native build a host
// in the same process that tests put there.
//
// The package must not know what any message says.
package boundary

// The entry points that the host calls, set when the workflow is defined.
var (
	// Describe hands over the manifest by Output.
	Describe = func() { panic(noWorkflow) }
	// Step runs one invocation on an input of n bytes. It gives 0, or 1 when
	// the output is an error.
	Step = func(n int) int { panic(noWorkflow) }
)

const noWorkflow = "weft: no workflow is defined: call weft.Define in init"

// OK is the status of a host call that succeeded.
const OK = 0

// Host stands in for the host in a native build.
type Host interface {
	// Call answers the import of that name. The request is valid during the
	// call only; the response is the guest's to keep.
	Call(name string, request []byte) (status uint32, response []byte)
	// Input gives the invocation's input, the guest's to keep.
	Input() []byte
	// Output takes the result or the manifest, valid during the call only.
	Output(output []byte)
}

// Native is the host of this process: nil outside tests, and never looked at
// in a Wasm build.
var Native Host
