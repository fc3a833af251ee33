// Package boundary is the only connection between a guest and its host. In a Wasm build
// it consists of the imports of the module weft:v1; in a native build, of a host in the
// same process that tests provide.
//
// The package must not depend on the contents of messages.
package boundary

// The entry points that the host calls, set when the workflow is defined.
var (
	// Describe passes the manifest to the host by Output.
	Describe = func() { panic(noWorkflow) }
	// Step runs one invocation on an input of n bytes. It returns 0, or 1 if the output
	// is an error.
	Step = func(n int) int { panic(noWorkflow) }
)

const noWorkflow = "weft: no workflow is defined: call weft.Define in init"

// OK is the status of a host call that succeeded.
const OK = 0

// Host replaces the host in a native build.
type Host interface {
	// Call answers the import with the given name. The request is valid during the call
	// only. The guest owns the response.
	Call(name string, request []byte) (status uint32, response []byte)
	// Input returns the invocation's input, which the guest owns.
	Input() []byte
	// Output receives the result or the manifest, which is valid during the call only.
	Output(output []byte)
}

// Native is the host of this process. It is nil outside tests, and unused in a Wasm
// build.
var Native Host
