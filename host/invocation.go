package host

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/missing"
)

// Invocation is one run of a guest for an attempt, from a pristine instance.
type Invocation struct {
	Tenant    string // on whose behalf; a build of the module waits for the tenant's turn
	Digest    string // of the original module
	ImageHash string // stored with the version; "": not checked
	Input     []byte // encoded step input; not modified
	Clock     int64  // virtual clock at the start, Unix nanoseconds
	Seed      [32]byte
	Limits    Limits // complete: no zero fields
	// Prices is the version of the prices of host work for the guest: see
	// engine.AttemptOpen.
	Prices uint64
	// Buffer is memory for the output, which the result's Output may use. nil: the output
	// gets its own memory.
	Buffer []byte
	Calls  Calls
	Token  Token
}

// InvocationResult is the result of a guest's run that was not unwound.
type InvocationResult struct {
	// Output is the guest's output, and Code the result of weft_step. Both are unset if
	// Err is set.
	Output []byte
	Code   uint32
	// Err says how the guest failed: trap, fuel_exhausted, deadline_exceeded,
	// limit_exceeded, invalid_output.
	Err *abi.Error
	// Fuel is the fuel that the guest burnt, in units: the same for the same invocation.
	Fuel uint64
	// Work is additional host work on the invocation's core, in units: loading the
	// module. It counts for fairness, and is not charged as fuel.
	Work uint64
}

// Calls answers the host calls of one invocation, on the guest's goroutine.
type Calls interface {
	// Call answers the request of an import of abi.HostCalls. clock is the guest's
	// virtual clock, newClock (>= clock) its new value. req is a copy that Call may keep;
	// the guest gets a copy of resp. An error unwinds the guest at once: Invoke then
	// returns that error.
	Call(im abi.Import, req []byte, clock int64) (resp []byte, status abi.Status, newClock int64, err error)
	// Print receives text that the guest wrote to file 1 or 2. text is valid only during
	// the call.
	Print(fd uint32, text []byte)
}

// Replayer is an optional interface of Calls: its calls may be answered from the record
// of an earlier run of the same attempt. The time until the last such call does not count
// toward the invocation's wall time, so a limit cannot end a replay.
type Replayer interface {
	// Replaying reports whether the next call is answered from the record. It
	// is called on the guest's goroutine.
	Replaying() bool
}

// Adviser is an optional interface of Calls: it writes to the step's log, in the host's
// words, that the guest has tried to use something that plugins do not have. It is called
// on the guest's goroutine, once per invocation for each such thing.
type Adviser interface {
	Advise(m missing.Thing)
}

// Metered is an optional interface of Calls: its calls cost fuel beyond the flat price,
// depending on their work. Its methods are called on the guest's goroutine.
type Metered interface {
	// Afford is called before each call. left is the number of units that the guest can
	// pay. The call calls look during its work, with the units since the previous look.
	// look may wait; its error ends the call and is returned by Call.
	Afford(left uint64, look func(units uint64) error)
	// Charged returns the cost of the last call beyond the flat price, even if it failed.
	Charged() uint64
}

// Worker is an optional interface of a Token: it is notified of the host's work during a
// call.
type Worker interface {
	// Work reports units of a call's work so far. Checkpoint will receive them again, as
	// fuel. It may wait while another tenant is due.
	Work(units uint64) error
	// Worked ends a call in which Work was called. charged is the call's cost in fuel.
	Worked(charged uint64)
}

// Token is an invocation's right to run on a core.
type Token interface {
	// Checkpoint is called on the guest's goroutine before each host call and whenever
	// about 50,000 units have been burnt, with the units burnt since the previous call:
	// the same numbers in each run of the same invocation. It may wait while another
	// tenant is due. An error unwinds the guest.
	Checkpoint(units uint64) error
}

// Description is what a sandbox determines about a module.
type Description struct {
	Manifest  []byte // result of weft_describe; not modified
	ImageHash string // of the pristine image
	Rewritten string // digest of the code that runs in place of the module
}

// Sandbox runs guests. All methods may be called from any goroutine.
type Sandbox interface {
	// Inspect checks a module against the limits for its uploader. It returns the
	// module's problems (all of one stage), and its weft:v1 and WASI imports.
	Inspect(ctx context.Context, wasm []byte, limits Limits) (imports []string, problems []Problem)
	// Describe builds a module, unless it is already built, and describes it. Errors are
	// *Error with CodeInvalidPlugin and Problems for the module's own faults.
	Describe(ctx context.Context, digest string, wasm []byte, limits Limits) (Description, error)
	// Ready reports whether the code for Invoke is in memory. It uses only the
	// invocation's Digest, ImageHash and Limits, and neither waits nor loads anything.
	// The code may be dropped before Invoke is called, which then loads it again.
	Ready(inv *Invocation) bool
	// Prepare loads the code for Invoke, and builds it if necessary, when it is the turn
	// of the invocation's Tenant. work is the cost of this call in units. The error is
	// the error that Invoke would return, or ctx's.
	Prepare(ctx context.Context, inv *Invocation) (work uint64, err error)
	// Invoke runs weft_step once. The error is the error of a Calls or Token method,
	// ctx's (the guest was stopped), or a fault of the host. The guest's own failures are
	// in the result.
	Invoke(ctx context.Context, inv Invocation) (InvocationResult, error)
}
