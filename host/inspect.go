package host

// What a store holds, row by row, as whoever verifies it reads it: see package
// audit. IDs are the store's own.
type (
	// SessionRow is a session without its journal.
	SessionRow struct {
		ID      int64
		Key     SessionKey
		Last    uint64
		WakeAt  int64
		Private bool // it goes with its last handler
		// Unlisted is the position up to which it is not noted which versions the
		// entries need; 0: all is.
		Unlisted uint64
	}
	// JournalRow is one row of a session's journal.
	JournalRow struct {
		First uint64 // position of its first entry
		Data  []byte
	}
	// HandlerRow is a handler of a session.
	HandlerRow struct {
		HandlerID string
		FirstSeq  int64 // of its latest run's first event, had or to come
	}
	// RunRow is a run of a session. A run of which a part does not read is
	// blocked as [BlockedUnreadable].
	RunRow struct {
		Run    Run
		Latest bool // the store has it as its handler's latest
	}
	// EventsRow is a row of a handler's stream.
	EventsRow struct {
		HandlerID   string
		RunID       string
		First, Last int64
		Events      []StreamEvent
		Err         error // why the events do not read, else nil
	}
	// LooseRow is a row that refers to nothing, or is itself not as it has to be.
	LooseRow struct {
		Tenant, Session string // "": of none
		What            string // one sentence without a full stop
	}
)
