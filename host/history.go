package host

import "github.com/weftrun/weft/abi"

// TimelineQuery asks for a part of the history of a run. Zero fields select everything.
type TimelineQuery struct {
	Tenant string
	ID     string // a handler, which stands for its latest run, or a run
	// After and Before are positions in the session's journal, which the part excludes.
	After, Before uint64
	Limit         int  // entries, 1 to [MaxTimeline]
	Newest        bool // the newest entries, newest first
	// Kinds and Steps select entries of these kinds, and of these steps.
	Kinds, Steps []string
	// Cut replaces values with more encoded bytes by an object with "cut" (true), "bytes"
	// (the length of the value's JSON text), and "head" (the first Cut bytes of that text);
	// 0: values are whole.
	Cut int
}

// Timeline is a part of the history of a run, in the order of the query.
type Timeline struct {
	Entries []TimelineEntry
	// Next is the position after which the next part begins, or before which it begins if
	// the newest entry is first; 0: there is no next part.
	Next uint64
}

// MaxTimeline is the largest number of entries in a part of a timeline.
const MaxTimeline = 1000

// TimelineEntry is one entry of a session's journal, as far as it concerns a run. Zero
// fields do not apply.
type TimelineEntry struct {
	Seq   uint64 // position in the session's journal
	At    int64  // Unix nanoseconds
	RunID string
	Kind  string // start, post, edit, send, stream, collect, finish, timer, ...
	// Forkable says that a fork may begin directly after this entry.
	Forkable bool

	// What an attempt of a step did: the step, its invocation, the number of the attempt,
	// and the number of its host call.
	Step       string
	Invocation uint64
	Attempt    uint64
	Call       uint64

	Events []abi.Event // that arrived, or were sent, written, asked, collected or returned
	To     string      // the step that receives them
	List   bool        // the events were returned as a list
	Edits  []TimelineEdit

	// The end of an attempt: the fuel that it burnt, how long it took from its beginning
	// (in nanoseconds, including waits; 0: unknown), why it failed, and when it is
	// retried.
	Fuel     uint64
	Duration int64
	Err      *abi.Error
	RetryAt  int64 // Unix nanoseconds

	Timer  string // kind of the timer: deadline, attempt, retry, sleep, wait, grace
	Until  int64  // when a sleep or a wait ends, Unix nanoseconds
	Wait   *TimelineWait
	Child  *TimelineChild
	Called *TimelineCall
	Block  *Blocked
	Status Status // status of the run, if this entry ended it

	// Began lists the attempts to which this entry gave a worker.
	Began []TimelineAttempt
	Logs  []TimelineLog
}

// TimelineEdit is a change of the session's state.
type TimelineEdit struct {
	Path     string  // resolved, in the form of edits; "": the whole state
	Old, New abi.Raw // nil: no value
}

// TimelineWait is the beginning of a wait for an event.
type TimelineWait struct {
	ID           string
	Type         string
	Requirements abi.Raw // nil: none
	Broadcast    bool
	Answered     uint64 // id of a kept event that answered at once; 0: none
}

// TimelineChild is a child that a step starts, or that has ended.
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
	Answer   abi.Raw // nil: it is a call, or an answer that is an error
}

// TimelineAttempt is an attempt that began, or continued after a wait.
type TimelineAttempt struct {
	Step       string
	Invocation uint64
	Attempt    uint64
}

// TimelineLog is a line that a step logged.
type TimelineLog struct {
	At      int64 // Unix nanoseconds, by the step's clock; for a printed line, the time of its entry
	Level   int64 // as in package log/slog
	Message string
	Attrs   abi.Raw // nil: none
}

// ForkRequest asks to continue a run a second time.
type ForkRequest struct {
	Tenant string
	ID     string // a handler, which stands for its latest run, or a run
	At     uint64 // a position of the session's journal: the fork continues just after it
	// At most one of them changes the state with which the fork begins: edits, a merge patch
	// (RFC 7396, a map), or the whole state (a map).
	Edits        []abi.Edit
	Patch, State abi.Raw
	// Answer is an event that the fork gets before it continues, as SendOnce gives it to a
	// run; nil: none. Step is the step that gets it; "": all steps that accept it.
	Answer *abi.Event
	Step   string
	Paused bool // the fork waits until it is resumed
	// DryRun checks the request and begins nothing.
	DryRun bool
}

// Fork is a run that continues a second time, from an earlier position.
type Fork struct {
	Run Run // in its own private session; of a dry run, as it would be, with ids of nobody
	// Anew lists work outside of the session that was in progress, and was started again.
	Anew []Renewed
}

// Kinds of [Renewed] work: a child that runs in another session, and a call of a resource
// that had no answer.
const (
	RenewedChild    = "child"
	RenewedResource = "resource"
)

// Renewed is work that a fork has started again.
type Renewed struct {
	Kind      string
	Step      string // that waits for the work
	Workflow  string // of a child
	Resource  string // of a call
	HandlerID string // new handler of the child
	Was       string // previous handler of the child
}

// MigrateRequest asks to move the active runs of a workflow to its newest version. A
// request handles one page of runs, newest first.
type MigrateRequest struct {
	Tenant   string
	Workflow string
	// HandlerID selects a single run; "": all runs.
	HandlerID string
	// DryRun does not move any run.
	DryRun bool
	Limit  int // runs to examine, 1 to 1000
	// The page begins after the run with these values of (Started, HandlerID); zero: at
	// the newest run.
	AfterStarted int64
	AfterHandler string
}

// Migration is the result of a [MigrateRequest].
type Migration struct {
	Workflow string
	Version  string // digest of the version to which runs move
	Checked  int    // examined runs that have another version
	Fit      int    // of Checked: runs that the version fits
	Moved    int    // of Fit: runs that now use the version
	// Departed are the runs that the version does not fit. Running are the handlers of
	// runs with a running step, which cannot be checked yet.
	Departed []Departure
	Running  []string
	// NextStarted and NextHandler are the After fields of the next page; empty on the
	// last.
	NextStarted int64
	NextHandler string
}

// Incompatible is the Code of a [Departure] if something in the run waits for which the
// version has no place. Otherwise the Code is [BlockedReplayMismatch].
const Incompatible = "incompatible"

// Departure says why a run cannot continue with another version.
type Departure struct {
	HandlerID string
	RunID     string
	Version   string // current version of the run
	Code      string
	Message   string
	// The attempt that would depart from its record: its step, the number of the call
	// (from 1) and the recorded call.
	Step   string
	Call   uint64
	Import string
}

// RunSnapshotVersion is the current version of the form of a [RunSnapshot], and the
// newest one that can be read.
const RunSnapshotVersion = 1

// RunSnapshot is all data of a run. Another run can continue from it, here or on another
// server that has the same versions of its workflows.
type RunSnapshot struct {
	Version   int
	Workflow  string
	HandlerID string
	RunID     string
	Status    Status   // the snapshot of an ended run has only the state
	Modules   []string // digests of the versions of the runs in it, sorted
	Session   []byte   // see package engine
	Held      []byte   // records of the open attempts
}
