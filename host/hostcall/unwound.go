package hostcall

import (
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// Unwound says what happens to an attempt whose guest was unwound by an error of
// [Attempt.Call]. At most one field is set. If none is set, the error does not come from
// this package. The scheduler declares the same type.
type Unwound struct {
	Again  bool // run it again at once: a commit lost
	Parked bool // run it again when a write ticket is free
	Stale  bool // the attempt is not wanted any more
	// Suspended: the attempt continues when there is an answer.
	Suspended bool
	Later     bool       // never set here
	Fail      *abi.Error // the attempt failed
	// Block: the run stops until an operator resumes it.
	Block *host.Blocked
}

// Classify returns what an error means that has unwound a guest.
func Classify(err error) Unwound {
	var limit *LimitError
	var mismatch *Mismatch
	switch {
	case errors.Is(err, engine.ErrConflict):
		return Unwound{Again: true}
	case errors.Is(err, ErrParked):
		return Unwound{Parked: true}
	case errors.Is(err, ErrSuspended):
		return Unwound{Suspended: true}
	case errors.Is(err, engine.ErrStale):
		return Unwound{Stale: true}
	case errors.As(err, &limit):
		return Unwound{Fail: limit.Err}
	case errors.As(err, &mismatch):
		return Unwound{Block: &host.Blocked{Code: host.BlockedReplayMismatch, Message: mismatch.Error()}}
	}
	return Unwound{}
}
