// Package inspect has what a store holds, row by row, as the verification of a store reads
// it.
//
// It must not know how rows are stored, or what makes them valid.
package inspect

import "github.com/weftrun/weft/host"

// What a store holds, row by row, as whoever verifies it reads it: see package
// audit. IDs are the store's own.
type (
	// Session is a session without its journal.
	Session struct {
		ID      int64
		Key     host.SessionKey
		Last    uint64
		WakeAt  int64
		Private bool // it goes with its last handler
		// Unlisted is the position up to which it is not noted which versions the
		// entries need; 0: all is.
		Unlisted uint64
	}
	// Handler is a handler of a session.
	Handler struct {
		HandlerID string
		FirstSeq  int64 // of its latest run's first event, had or to come
	}
	// Run is a run of a session. A run of which a part does not read is
	// blocked as [host.BlockedUnreadable].
	Run struct {
		Run    host.Run
		Latest bool // the store has it as its handler's latest
	}
	// Events is a row of a handler's stream.
	Events struct {
		HandlerID   string
		RunID       string
		First, Last int64
		Events      []host.StreamEvent
		Err         error // why the events do not read, else nil
	}
	// Loose is a row that refers to nothing, or is itself not as it has to be.
	Loose struct {
		Tenant, Session string // "": of none
		What            string // one sentence without a full stop
	}
)
