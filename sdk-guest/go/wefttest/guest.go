package wefttest

import (
	"errors"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
)

// Calls answers the host calls of a guest.
type Calls interface {
	// Call answers the import with the given name. The request is valid during the call
	// only. The guest owns the response. If the guest must be unwound, for example at a
	// wait, Call does not return: it ends the goroutine.
	Call(name string, request []byte) (status uint32, response []byte)
}

// Guest runs the steps of a workflow. A session uses the workflow of this process, unless
// [NewSessionOn] receives a different guest, such as a WebAssembly module.
type Guest interface {
	// Describe returns the manifest.
	Describe() ([]byte, error)
	// Step runs one invocation. The status is the result of weft_step. Step is called on
	// a separate goroutine, while no other guest runs.
	Step(calls Calls, input []byte) (output []byte, status int, err error)
}

// inProcess is the workflow that this process defines.
type inProcess struct{}

// exchange is the host of one describe or invocation in this process.
type exchange struct {
	calls   Calls
	input   []byte
	outputs [][]byte
}

func (x *exchange) Input() []byte { return x.input }

func (x *exchange) Output(output []byte) {
	x.outputs = append(x.outputs, append([]byte(nil), output...))
}

// Call makes a host call. Other attempts may have had their turn before it returns.
func (x *exchange) Call(name string, request []byte) (uint32, []byte) {
	status, response := x.calls.Call(name, request)
	boundary.Native = x
	return status, response
}

// noCalls refuses all host calls, as the host does while a module is described.
type noCalls struct{}

func (noCalls) Call(name string, _ []byte) (uint32, []byte) {
	return refusal("failed_precondition", name+" may not be called while the module is described")
}

func (x *exchange) do(what func()) ([]byte, error) {
	boundary.Native = x
	defer func() { boundary.Native = nil }()
	what()
	if len(x.outputs) != 1 {
		return nil, errors.New("a guest must call output once")
	}
	return x.outputs[0], nil
}

func (inProcess) Describe() ([]byte, error) {
	return (&exchange{calls: noCalls{}}).do(boundary.Describe)
}

func (inProcess) Step(calls Calls, input []byte) (output []byte, status int, err error) {
	output, err = (&exchange{calls: calls, input: input}).do(func() { status = boundary.Step(len(input)) })
	return output, status, err
}
