package engine

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Errors of [Session.Reduce], beside [*abi.Error] (a mistake of the guest, the answer to
// its call) and [*host.Error] (a mistake of a client).
var (
	// ErrStale: the attempt is not open any more (it or its run has ended, the run is
	// blocked, or a later attempt has begun), or the tick repeats one that has had its
	// effect.
	ErrStale = errors.New("stale: the attempt is no longer open")
	// ErrConflict: the value that a CommitState replaces has changed since the guest read
	// it.
	ErrConflict = errors.New("conflict: the value has changed since it was read")
	// ErrUnknownRun: the session has no active run with that id.
	ErrUnknownRun = errors.New("the session has no active run of that id")
	// ErrUnresolved: a RunWorkflow without Start must begin a child, or a CallResource
	// without Mode must be made. The caller must fill in the field and repeat the tick.
	ErrUnresolved = errors.New("the child's workflow, or the resource, is not resolved")
)

// Exhausted is in the chain of a refusal when the invocation has used up one of its
// limits (suspensions, record_bytes). No later call of the attempt could succeed, so the
// attempt ends. A limit_exceeded answer without Exhausted concerns one call only, and the
// guest may handle it.
type Exhausted struct{ Err *abi.Error }

// Error implements error.
func (e *Exhausted) Error() string { return e.Err.Error() }

// Unwrap returns the guest's error.
func (e *Exhausted) Unwrap() error { return e.Err }

// exhausted refuses all further calls of an invocation.
func exhausted(format string, args ...any) error {
	no := false
	err := refusal(host.RunLimitExceeded, format, args...)
	err.Retryable = &no
	return &Exhausted{err}
}

// errCorrupt is in the chain of every error of [Session.Fold].
var errCorrupt = errors.New("corrupt journal")

func corrupt(e *Entry, format string, args ...any) error {
	return fmt.Errorf("%w: entry %d: %s", errCorrupt, e.Seq, fmt.Sprintf(format, args...))
}

// refusal is an error to the guest that made the call.
func refusal(code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
