package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weftrun/weft/host/limit"
)

// Code is a machine-readable error code.
type Code string

// The codes of the API's errors; [Code.HTTPStatus] has their statuses.
const (
	CodeInvalidMessage       Code = "invalid_message"
	CodeInvalidArgument      Code = "invalid_argument"
	CodeUnauthenticated      Code = "unauthenticated"
	CodePermissionDenied     Code = "permission_denied"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeConflict             Code = "conflict"
	CodeFailedPrecondition   Code = "failed_precondition"
	CodeGone                 Code = "gone"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeTooLarge             Code = "too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeInvalidPlugin        Code = "invalid_plugin"
	CodeSchemaViolation      Code = "schema_violation"
	CodeIdempotencyMismatch  Code = "idempotency_mismatch"
	CodeLimitExceeded        Code = "limit_exceeded"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
	CodeOverloaded           Code = "overloaded"
)

// Codes of failed runs, in addition to the codes of steps.
const (
	RunTrap             = "trap"
	RunPanic            = "panic" // the SDKs also use it, if they catch panics
	RunFuelExhausted    = "fuel_exhausted"
	RunDeadlineExceeded = "deadline_exceeded"
	RunLimitExceeded    = "limit_exceeded"
	RunInvalidOutput    = "invalid_output"
	RunTimeout          = "timeout"
	RunCancelled        = "cancelled"
	RunStalled          = "stalled" // nothing was left to do, and no step had returned a result
)

// Codes of blocked runs.
const (
	BlockedReplayMismatch = "replay_mismatch"
	BlockedHostCrash      = "host_crash"
	BlockedHostError      = "host_error" // the host could not run the step
	BlockedUnreadable     = "unreadable" // a part of the stored record cannot be read
)

var httpStatus = map[Code]int{
	CodeInvalidMessage:       http.StatusBadRequest,
	CodeInvalidArgument:      http.StatusBadRequest,
	CodeUnauthenticated:      http.StatusUnauthorized,
	CodePermissionDenied:     http.StatusForbidden,
	CodeNotFound:             http.StatusNotFound,
	CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	CodeConflict:             http.StatusConflict,
	CodeFailedPrecondition:   http.StatusConflict,
	CodeGone:                 http.StatusGone,
	CodePreconditionFailed:   http.StatusPreconditionFailed,
	CodeTooLarge:             http.StatusRequestEntityTooLarge,
	CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	CodeInvalidPlugin:        http.StatusUnprocessableEntity,
	CodeSchemaViolation:      http.StatusUnprocessableEntity,
	CodeIdempotencyMismatch:  http.StatusUnprocessableEntity,
	CodeLimitExceeded:        http.StatusTooManyRequests,
	CodeInternal:             http.StatusInternalServerError,
	CodeUnavailable:          http.StatusServiceUnavailable,
	CodeOverloaded:           http.StatusServiceUnavailable,
}

// HTTPStatus returns the HTTP status for the code; 500 for a code that is not in the
// table.
func (c Code) HTTPStatus() int {
	if s, ok := httpStatus[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Codes lists the codes of the API's errors with the given HTTP status, sorted; for 0 all
// codes.
func Codes(status int) []Code {
	var list []Code
	for code, under := range httpStatus {
		if status == 0 || under == status {
			list = append(list, code)
		}
	}
	if status == http.StatusRequestEntityTooLarge {
		list = append(list, CodeLimitExceeded) // see Error.HTTPStatus
	}
	slices.Sort(list)
	return list
}

// Error is an error of the host: a code for programs, a message for people and the cause
// for the log. People see only the message.
type Error struct {
	Code    Code
	Message string
	Cause   error
	// Problems lists every fault of an invalid plugin.
	Problems []Problem
	// RetryAfter is how long to wait before trying again; 0: unknown.
	RetryAfter time.Duration
	// Breach names the quota that was reached; nil: none.
	Breach *limit.Breach
	// Nearest are the positions at which a fork can begin instead; nil: it is not a refused
	// fork.
	Nearest *Nearest
}

// Nearest are the entries of a run, closest to a position, after which a fork can begin; 0:
// there is none nearby.
type Nearest struct{ Before, After uint64 }

// HTTPStatus returns the HTTP status for the error: the status of its code, but 413 for a
// quota of stored bytes.
func (e *Error) HTTPStatus() int {
	if e.Breach != nil && e.Breach.Size {
		return http.StatusRequestEntityTooLarge
	}
	return e.Code.HTTPStatus()
}

// Error implements error; it returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an [*Error] with a message; the operand of a %w verb is its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Unavailable returns the error for a request that the store cannot serve at the moment.
// It returns the error of a context that has ended unchanged.
func Unavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Code: CodeUnavailable, Message: "the store does not work at the moment", Cause: err}
}

// CodeOf returns the code of an error: the code of the first [*Error] in its chain,
// otherwise CodeInternal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// MessageOf returns the message for people of an error: the message of the first [*Error]
// in its chain. For other errors it is a text that reveals nothing internal.
func MessageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "internal error"
}
