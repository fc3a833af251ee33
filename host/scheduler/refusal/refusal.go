// Package refusal says how the refusal of a session's tick reads to those who asked for it:
// to a client, and to a guest.
//
// It must not depend on sessions, or what was asked.
package refusal

import (
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// ErrGone is returned for a tick on a session that has been purged.
var ErrGone = &host.Error{Code: host.CodeNotFound, Message: "Handler not found"}

// ErrCompleted is returned for a request that needs a run which has not ended.
var ErrCompleted = &host.Error{Code: host.CodeConflict, Message: "Workflow already completed"}

// ToClient returns the error that a client gets for err, with which a tick was refused.
func ToClient(err error) error {
	var he *host.Error
	var ae *abi.Error
	switch {
	case errors.As(err, &he):
		return he
	case errors.As(err, &ae):
		return &host.Error{Code: host.Code(ae.Code), Message: ae.Message, Cause: err}
	case errors.Is(err, engine.ErrStale), errors.Is(err, engine.ErrUnknownRun):
		return ErrCompleted
	default:
		return &host.Error{Code: host.CodeInternal, Message: "internal error", Cause: err}
	}
}

// ToGuest returns the error that a step gets for err.
func ToGuest(err error) *abi.Error {
	var guest *abi.Error
	if errors.As(err, &guest) {
		return guest
	}
	return &abi.Error{Code: string(host.CodeOf(err)), Message: host.MessageOf(err)}
}

// Lasting returns the error that a step gets for err if err stays as it is, and else err:
// the host tries again later.
func Lasting(err error) error {
	if code := host.CodeOf(err); code == host.CodeUnavailable || code == host.CodeInternal {
		return err
	}
	return ToGuest(err)
}

// TooLate reports whether a tick was refused because its subject has ended.
func TooLate(err error) bool {
	return errors.Is(err, engine.ErrStale) || errors.Is(err, engine.ErrUnknownRun) || errors.Is(err, ErrGone)
}
