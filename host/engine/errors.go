package engine

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
)

// Errors of [Session.Reduce] beside [*abi.Error] (the guest's mistake, to be
// answered to its call) and [*host.Error] (a client's).
var (
	// ErrStale: the attempt is no longer open (it ended, its run ended or is
	// blocked, another attempt follows), or the run is blocked already.
	ErrStale = errors.New("stale: the attempt is no longer open")
	// ErrConflict: what a CommitState replaces has changed since it was read.
	ErrConflict = errors.New("conflict: the value has changed since it was read")
	// ErrUnknownRun: the session has no such active run.
	ErrUnknownRun = errors.New("the session has no such active run")
	// ErrUnresolved: a RunWorkflow begins a child, or a CallResource is to be made,
	// and says too little of it. The caller is to find out the rest and ask again.
	ErrUnresolved = errors.New("the child's workflow, or the resource, is not resolved")
)

// errCorrupt is in the chain of every error of [Session.Fold].
var errCorrupt = errors.New("corrupt journal")

func corrupt(e *Entry, format string, args ...any) error {
	return fmt.Errorf("%w: entry %d: %s", errCorrupt, e.Seq, fmt.Sprintf(format, args...))
}

// refusal is an error to the guest that made the call.
func refusal(code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
