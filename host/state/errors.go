package state

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
)

// ErrCorrupt is wrapped by the errors of [DecodeChanges] and [Fold]: the
// record was not written by [EncodeChanges], or does not belong to the tree.
var ErrCorrupt = errors.New("corrupt change record")

// Error is a refused operation.
type Error struct {
	// Code is one of the error codes of package abi: invalid_message,
	// not_found, conflict, failed_precondition, limit_exceeded or
	// schema_violation. [abi.StatusOf] gives its number.
	Code string
	// Path is where in the state (or in the schema) it failed; "" is the
	// whole. Long paths are cut.
	Path string
	// Message is for people.
	Message string

	cause error
}

// Error returns "code: path: message", without the path when it is the whole.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Code + ": " + e.Message
	}
	return e.Code + ": " + e.Path + ": " + e.Message
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// SchemaError is a value that does not satisfy its schema. It unwraps to an
// [*Error] with the code schema_violation.
type SchemaError struct {
	Path   string // of the value; "" is the whole state; long paths are cut
	Reason string
}

// Error returns "schema_violation: path: reason".
func (e *SchemaError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the same failure as an [*Error].
func (e *SchemaError) Unwrap() error {
	return &Error{Code: abi.StatusSchemaViolation.Code(), Path: e.Path, Message: e.Reason}
}

func fail(s abi.Status, path, format string, args ...any) *Error {
	return &Error{Code: s.Code(), Path: clip(path), Message: fmt.Sprintf(format, args...)}
}

// maxShown bounds what an error repeats of a path, a key or an operation: they
// come from guests and end up in logs and answers.
const maxShown = 256

func clip(s string) string { return abi.Clip(s, maxShown) }
