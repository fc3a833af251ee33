// Package inspect has the content of a store, row by row, as the verification of a store
// reads it.
//
// It does not depend on how rows are stored, or on what makes them valid.
package inspect

import "github.com/weftrun/weft/host"

// The content of a store, row by row, as package audit verifies it. IDs are the store's
// own.
type (
	// Session is a session without its journal.
	Session struct {
		ID      int64
		Key     host.SessionKey
		Last    uint64
		WakeAt  int64
		Private bool // deleted with its last handler
		// Unlisted is the position up to which the versions that the entries need are not
		// recorded; 0: all are recorded.
		Unlisted uint64
	}
	// Handler is a handler of a session.
	Handler struct {
		HandlerID string
		FirstSeq  int64 // of its latest run's first event, past or future
	}
	// Run is a run of a session. A run with an unreadable part is blocked as
	// [host.BlockedUnreadable].
	Run struct {
		Run    host.Run
		Latest bool // the store has it as the latest run of its handler
	}
	// Events is a row of a handler's stream.
	Events struct {
		HandlerID   string
		RunID       string
		First, Last int64
		Events      []host.StreamEvent
		Err         error // why the events cannot be read, otherwise nil
	}
	// Loose is a row that refers to nothing, or is itself invalid.
	Loose struct {
		Tenant, Session string // "": no session
		What            string // one sentence without a full stop
	}
)
