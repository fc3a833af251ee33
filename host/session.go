package host

import (
	"context"

	"github.com/weftrun/weft/abi"
)

// StateValue is a value of a session's state.
type StateValue struct {
	Value abi.Raw
	// Tag is a digest of the value: equal values always have the same tag, and different
	// values different tags. It has only letters and digits.
	Tag string
}

// AnyTag matches every tag.
const AnyTag = "*"

// SessionEdit describes an edit of a session's state from outside. It has one of Edits,
// Patch and State, or none of them if the edit only creates the session.
type SessionEdit struct {
	Tenant  string
	Session string
	Edits   []abi.Edit
	Patch   abi.Raw // a merge patch (RFC 7396), a map
	State   abi.Raw // replaces the whole state, a map
	// Path is the dotted path of the value that Edits, Patch and Match refer to, and that
	// is returned; "" is the whole state. It does not apply to State.
	Path string
	// Make creates the session if it does not exist.
	Make bool
	// The value must have one of the tags in Match; with AnyTag the value, or the
	// session, must exist. nil: no condition. New: the session must not exist.
	Match []string
	New   bool
	// Once, unless it is zero, makes a repeated edit count once: the answer is the
	// current state, whatever the repeated edit asks for.
	Once Once
}

// Sessions shows and edits sessions and their state. All methods may be called from any
// goroutine. Their results are durable. Errors are [*Error]s; a session that does not
// exist is CodeNotFound.
type Sessions interface {
	// Session returns the description of a session.
	Session(ctx context.Context, tenant, id string) (SessionInfo, error)
	// ListSessions lists sessions, newest first. more says whether others follow.
	ListSessions(ctx context.Context, q SessionQuery) (list []SessionInfo, more bool, err error)
	// State reads the value at a dotted path; "" is the whole state.
	//
	// # Errors
	//
	// CodeNotFound: the session does not exist, or has no value at the path.
	// CodeInvalidArgument: the path is not valid.
	State(ctx context.Context, tenant, id, path string) (StateValue, error)
	// EditState edits the state, and returns the new value at the edit's path, null if it
	// is deleted. It waits up to a second for a step that has reserved the write (see
	// edit_state).
	//
	// # Errors
	//
	// CodeInvalidArgument: the edits are not valid. CodeFailedPrecondition: they do not
	// fit the state. CodeConflict: a test failed. CodePreconditionFailed: the value has
	// none of the tags, or New is set and the session exists. CodeSchemaViolation: the
	// state would break the schema of a workflow that has run in the session.
	// CodeLimitExceeded: the state would be too large or too deep.
	// CodeIdempotencyMismatch. CodeUnavailable: a step has reserved the write for too
	// long.
	EditState(ctx context.Context, req SessionEdit) (state StateValue, created bool, err error)
	// DeleteSession deletes a session with its state, its journal, and all its handlers
	// with their runs and streams. A later session of the same name is another session.
	//
	// # Errors
	//
	// CodeConflict: runs of the session are active.
	DeleteSession(ctx context.Context, tenant, id string) error
	// ReleaseSession takes a session out of quarantine, whatever the reason, and loads it
	// now. It also loads a session that is not in quarantine.
	//
	// # Errors
	//
	// CodeNotFound; the errors of loading: CodeInternal if the session is still damaged,
	// which puts it into quarantine again, CodeUnavailable if it cannot be read at the
	// moment.
	ReleaseSession(ctx context.Context, tenant, id string) (SessionInfo, error)
}
