package host

import "github.com/weftrun/weft/abi"

// Timeline is a part of what happened in a run, in the order in which it did.
type Timeline struct {
	Entries []TimelineEntry
	// Next is the position behind which the next part begins; 0: nothing follows.
	Next uint64
}

// MaxTimeline is the most entries that a part of a timeline has.
const MaxTimeline = 1000

// TimelineEntry is one entry of a session's journal, as it concerns a run. Zero
// fields do not apply.
type TimelineEntry struct {
	Seq   uint64 // position in the session's journal
	At    int64  // Unix nanoseconds
	RunID string
	Kind  string // start, post, edit, send, stream, collect, finish, timer, ...
	// Forkable: a fork may go on from just after this entry.
	Forkable bool

	// Of what an attempt of a step did: the step, its invocation, which attempt it
	// was, and the number of its host call.
	Step       string
	Invocation uint64
	Attempt    uint64
	Call       uint64

	Events []abi.Event // that came, were sent, written, asked, collected or returned
	To     string      // the step that they are meant for
	List   bool        // the events were returned as a list
	Edits  []TimelineEdit

	// Of the end of an attempt: what it burnt, how long it took from when it began
	// (in nanoseconds, waits included; 0: not known), why it failed, and when it is
	// tried again.
	Fuel     uint64
	Duration int64
	Err      *abi.Error
	RetryAt  int64 // Unix nanoseconds

	Timer  string // that fired: deadline, attempt, retry, sleep, wait, grace
	Until  int64  // when a sleep or a wait ends, Unix nanoseconds
	Wait   *TimelineWait
	Child  *TimelineChild
	Called *TimelineCall
	Block  *Blocked
	Status Status // with which the run ended by this entry

	// Began lists the attempts that got a worker by this entry.
	Began []TimelineAttempt
	Logs  []TimelineLog
}

// TimelineEdit is a change of the session's state.
type TimelineEdit struct {
	Path     string  // resolved, as edits name it; "": the whole
	Old, New abi.Raw // nil: there is none
}

// TimelineWait is a wait for an event that began.
type TimelineWait struct {
	ID           string
	Type         string
	Requirements abi.Raw // nil: none
	Broadcast    bool
	Answered     uint64 // id of a kept event that answered at once; 0: none did
}

// TimelineChild is a child that a step runs, or that has ended.
type TimelineChild struct {
	Workflow  string
	RunID     string
	HandlerID string
	SessionID string
}

// TimelineCall is a call of a resource, or the answer to one.
type TimelineCall struct {
	Resource string
	Method   string
	Payload  abi.Raw // nil: it is an answer
	Answer   abi.Raw // nil: it is a call, or has failed
}

// TimelineAttempt is an attempt that began, or went on after a wait.
type TimelineAttempt struct {
	Step       string
	Invocation uint64
	Attempt    uint64
}

// TimelineLog is a line that a step logged.
type TimelineLog struct {
	At      int64 // Unix nanoseconds, of the step's clock; of a printed line, of its entry
	Level   int64 // as of package log/slog
	Message string
	Attrs   abi.Raw // nil: none
}

// Fork is a run that goes on a second time, from a position of its past.
type Fork struct {
	Run Run // in a private session of its own
	// Anew lists what was under way outside of the session, and was begun again.
	Anew []Renewed
}

// Kinds of what is [Renewed]: a child that runs in another session, and a call of a
// resource that had no answer.
const (
	RenewedChild    = "child"
	RenewedResource = "resource"
)

// Renewed is something that a fork has begun again.
type Renewed struct {
	Kind      string
	Step      string // that waits for it
	Workflow  string // of a child
	Resource  string // that is called
	HandlerID string // of the child now
	Was       string // handler id of the child before
}

// MigrateRequest asks for the runs of a workflow that are under way to be moved to its
// newest version, a page of them at a time, newest first.
type MigrateRequest struct {
	Tenant   string
	Workflow string
	// HandlerID: this run alone; "": all.
	HandlerID string
	// DryRun moves none.
	DryRun bool
	Limit  int // runs to look at, 1 to 1000
	// After continues behind a run: its (Started, HandlerID); zero is the top.
	AfterStarted int64
	AfterHandler string
}

// Migration is what came of a [MigrateRequest].
type Migration struct {
	Workflow string
	Version  string // the digest that runs are moved to
	Checked  int    // runs of other versions that were looked at
	Fit      int    // of them: those that the version fits
	Moved    int    // of these: those that go on with it
	// Departed are those that it does not fit, and Running the handlers of those
	// that had a step at work, so that nothing can be said yet.
	Departed []Departure
	Running  []string
	// NextStarted and NextHandler are After of the next page; empty: it was the last.
	NextStarted int64
	NextHandler string
}

// Incompatible is the [Departure] Code of a run of which something waits that the
// version has no place for. Else it is [BlockedReplayMismatch].
const Incompatible = "incompatible"

// Departure says why a run cannot go on with another version.
type Departure struct {
	HandlerID string
	RunID     string
	Version   string // that the run has
	Code      string
	Message   string
	// Of an attempt that would depart from its record: its step, the number of the
	// call from 1 and what it was.
	Step   string
	Call   uint64
	Import string
}

// RunSnapshotVersion is the version of the form of a [RunSnapshot], and the newest
// that is read.
const RunSnapshotVersion = 1

// RunSnapshot is all that a run is made of: another one can go on from it, here or
// on another server that has the same versions of its workflows.
type RunSnapshot struct {
	Version   int
	Workflow  string
	HandlerID string
	RunID     string
	Status    Status   // of one that has ended it has the state alone
	Modules   []string // digests of the versions of the runs in it, sorted
	Session   []byte   // see package engine
	Held      []byte   // records of the attempts under way
}
