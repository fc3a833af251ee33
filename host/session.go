package host

import (
	"context"

	"github.com/weftrun/weft/abi"
)

// StateValue is a value of a session's state.
type StateValue struct {
	Value abi.Raw
	// Tag is a digest of the value: another value has another one, and the same
	// value the same, at any time. It has letters and digits only.
	Tag string
}

// AnyTag stands for the tags of whatever there is.
const AnyTag = "*"

// SessionEdit asks for an edit of a session's state from outside: by one of Edits,
// Patch and State, or none of them if the session is only to exist.
type SessionEdit struct {
	Tenant  string
	Session string
	Edits   []abi.Edit
	Patch   abi.Raw // a merge patch (RFC 7396), a map
	State   abi.Raw // in place of all that is there, a map
	// Path is the dotted path of the value that Edits, Patch and Match are of, and that
	// is answered; "" is the whole. State has none.
	Path string
	// Make makes a session that does not exist.
	Make bool
	// Match are the tags of which the value has to have one; with AnyTag it has to
	// exist, or the session. nil: it need not. New: the session must not exist.
	Match []string
	New   bool
	// Once, unless it is zero, makes an edit that is repeated count once: it is
	// answered by the state as it is then, whatever it asks for.
	Once Once
}

// Sessions shows and edits sessions and their state. All methods may be called
// from any goroutine. What they return is durable. Errors are [*Error]s; a session
// that does not exist is CodeNotFound.
type Sessions interface {
	// Session returns what is known of a session.
	Session(ctx context.Context, tenant, id string) (SessionInfo, error)
	// ListSessions lists sessions, the newest first. more says whether others follow.
	ListSessions(ctx context.Context, q SessionQuery) (list []SessionInfo, more bool, err error)
	// State reads the value at a dotted path; "" is the whole.
	//
	// # Errors
	//
	// CodeNotFound: there is no session, or nothing at the path.
	// CodeInvalidArgument: it is no path.
	State(ctx context.Context, tenant, id, path string) (StateValue, error)
	// EditState edits the state, and gives the value at the edit's path as it is then,
	// null if it is gone. It waits up
	// to a second for a step that has the write to itself (see edit_state).
	//
	// # Errors
	//
	// CodeInvalidArgument: the edits say nothing sensible. CodeFailedPrecondition: they
	// do not fit what is there. CodeConflict: a test failed. CodePreconditionFailed:
	// the value has none of the tags, or New is of a session that exists.
	// CodeSchemaViolation: the state would break the schema of a workflow that has run
	// in the session. CodeLimitExceeded: it would be too large or too deep.
	// CodeIdempotencyMismatch. CodeUnavailable: a step has the write to itself for
	// too long.
	EditState(ctx context.Context, req SessionEdit) (state StateValue, created bool, err error)
	// DeleteSession deletes a session with its state, its journal, and all its
	// handlers with their runs and streams. What comes later under its name is
	// another session.
	//
	// # Errors
	//
	// CodeConflict: runs of it are active.
	DeleteSession(ctx context.Context, tenant, id string) error
	// ReleaseSession forgets that a session is in quarantine, whatever the reason, and
	// loads the session now. A session that is in none is loaded likewise.
	//
	// # Errors
	//
	// CodeNotFound; those of loading: CodeInternal if it is damaged still, which puts it
	// into quarantine again, CodeUnavailable if it cannot be read at the moment.
	ReleaseSession(ctx context.Context, tenant, id string) (SessionInfo, error)
}
