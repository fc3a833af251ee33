package engine

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Errors of [Session.Reduce] beside [*abi.Error] (the guest's mistake, to be
// answered to its call) and [*host.Error] (a client's).
var (
	// ErrStale: the attempt is no longer open (it ended, its run ended or is
	// blocked, another attempt follows), or the run is blocked already.
	ErrStale = errors.New("stale: the attempt is no longer open")
	// ErrConflict: what a CommitState replaces has changed since it was read.
	ErrConflict = errors.New("conflict: the value has changed since it was read")
	// ErrUnknownRun: the session has no active run of that id.
	ErrUnknownRun = errors.New("the session has no active run of that id")
	// ErrUnresolved: a RunWorkflow begins a child, or a CallResource is to be made,
	// and says too little of it. The caller is to find out the rest and ask again.
	ErrUnresolved = errors.New("the child's workflow, or the resource, is not resolved")
)

// Exhausted is in the chain of the refusal of a call that an attempt may not make as
// its invocation has used up a limit (suspensions, record_bytes): whatever it would do
// next, it could not go on. Answers that say limit_exceeded have none: they are of one
// call, and the guest's to handle.
type Exhausted struct{ Err *abi.Error }

// Error implements error.
func (e *Exhausted) Error() string { return e.Err.Error() }

// Unwrap gives the guest's error.
func (e *Exhausted) Unwrap() error { return e.Err }

// exhausted refuses the calls of an invocation for good.
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
