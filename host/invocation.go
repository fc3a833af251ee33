package host

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/missing"
)

// Invocation is one attempt's run of a guest, from a pristine instance.
type Invocation struct {
	Tenant    string // on whose behalf: whose turn it has to be if the module is to be built anew
	Digest    string // of the original module
	ImageHash string // that the version was stored with; "": not checked
	Input     []byte // encoded step input; not modified
	Clock     int64  // virtual clock at the start, Unix nanoseconds
	Seed      [32]byte
	Limits    Limits // complete: no zero fields
	// Prices is the version of the prices of the host's work for the guest: see
	// engine.AttemptOpen.
	Prices uint64
	// Buffer is room for the output; the result's Output may be part of it. nil:
	// the output gets memory of its own.
	Buffer []byte
	Calls  Calls
	Token  Token
}

// InvocationResult is what a guest's run came to, when it was not unwound.
type InvocationResult struct {
	// Output is the one output of the guest, and Code what weft_step returned.
	// Both are unset when Err is set.
	Output []byte
	Code   uint32
	// Err says how the guest failed: trap, fuel_exhausted, deadline_exceeded,
	// limit_exceeded, invalid_output.
	Err *abi.Error
	// Fuel is what it burnt, in units: the same for the same invocation.
	Fuel uint64
	// Work is what the host did for it beside, on its core: it loaded the module.
	// In units too, for a fair share, and on no bill.
	Work uint64
}

// Calls answers the host calls of one invocation, on the guest's goroutine.
type Calls interface {
	// Call answers the request of an import of abi.HostCalls. clock is the
	// guest's virtual clock, newClock (>= clock) what it becomes. req is a
	// copy that Call may keep; the guest gets a copy of resp. An error unwinds
	// the guest at once: Invoke then returns that error.
	Call(im abi.Import, req []byte, clock int64) (resp []byte, status abi.Status, newClock int64, err error)
	// Print takes what the guest wrote to file 1 or 2. text is valid during
	// the call only.
	Print(fd uint32, text []byte)
}

// Replayer is what Calls may be as well: calls that are answered from the record
// of an earlier run of the same attempt. The time until the last of them is no
// part of the invocation's wall time: no limit can end a replay.
type Replayer interface {
	// Replaying reports whether the next call is answered from the record. It
	// is called on the guest's goroutine.
	Replaying() bool
}

// Adviser is what Calls may be as well: it notes in the log of the step, as the host's own
// words, that the guest has tried to use what is missing. It is called on the guest's
// goroutine, once an invocation for each.
type Adviser interface {
	Advise(m missing.Thing)
}

// Metered is what Calls may be as well: calls that cost fuel beyond the flat price, by
// what they take. Its methods are called on the guest's goroutine.
type Metered interface {
	// Afford comes before a call: the guest can pay so many units for it. look is to be
	// called as the call's work goes on, with the units since its last call; it may
	// wait, and its error ends the call and is what Call gives.
	Afford(left uint64, look func(units uint64) error)
	// Charged is what the last call cost beyond the flat price, also if it failed.
	Charged() uint64
}

// Worker is what a Token may be as well: it learns of the host's work during a call.
type Worker interface {
	// Work counts units of a call's work so far, which Checkpoint will get again when
	// they have become fuel. It may wait while another tenant is due.
	Work(units uint64) error
	// Worked ends a call in which Work was called, and which cost so much fuel.
	Worked(charged uint64)
}

// Token is an invocation's right to run on a core.
type Token interface {
	// Checkpoint is called on the guest's goroutine before each host call and
	// else whenever about 50,000 units have been burnt, with the units burnt
	// since the last call: the same numbers in each run of the same
	// invocation. It may wait while another tenant is due. An error unwinds
	// the guest.
	Checkpoint(units uint64) error
}

// Description is what a sandbox finds out about a module.
type Description struct {
	Manifest  []byte // that weft_describe gives; not modified
	ImageHash string // of the pristine image
	Rewritten string // digest of what runs in place of the module
}

// Sandbox runs guests. All methods may be called from any goroutine.
type Sandbox interface {
	// Inspect checks a module against the limits of those who upload it: its
	// problems (all of a stage), and the weft:v1 and WASI imports it has.
	Inspect(ctx context.Context, wasm []byte, limits Limits) (imports []string, problems []Problem)
	// Describe builds a module, if that was not done before, and says what it
	// is. Errors are *Error with CodeInvalidPlugin and Problems for the
	// module's own faults.
	Describe(ctx context.Context, digest string, wasm []byte, limits Limits) (Description, error)
	// Ready reports whether the code that Invoke would run is in memory. It looks at
	// the invocation's Digest, ImageHash and Limits only, and neither waits nor loads
	// anything. What is ready may be dropped before Invoke is called, which loads it
	// again then.
	Ready(inv *Invocation) bool
	// Prepare loads the code that Invoke would run, and builds it if need be when it
	// is the turn of the invocation's Tenant. work is what that took, in units, if
	// this call did it. The error is what Invoke would give, or ctx's.
	Prepare(ctx context.Context, inv *Invocation) (work uint64, err error)
	// Invoke runs weft_step once. The error is that of a Calls or Token
	// method, ctx's (the guest was stopped), or a fault of the host; the
	// guest's own failures are in the result.
	Invoke(ctx context.Context, inv Invocation) (InvocationResult, error)
}
