// Package engine is the semantics of runs: a session is a pure state machine
// that takes ticks and gives journal entries and commands.
//
// It must not know time, goroutines, storage or guests. It imports no I/O, no
// context, no sync, no clock and no random: the same ticks give the same
// entries, and folding the same entries gives the same session, always.
//
// # Protocol
//
// A tick (something that wants to happen) is decided by [Session.Reduce]: it
// is refused and changes nothing, or it becomes an [Entry], in which every
// effect stands resolved, and the entry is folded into the session. A session
// is loaded by folding its entries with [Session.Fold] alone; Reduce is decide
// then Fold, so that both ways meet in the same code.
//
// # Snapshots and forks
//
// [Session.Snapshot] is everything that a session holds, and [Restore] makes the
// session of it again; an [EntrySnapshot] stands for all entries before it.
//
// [Session.Fork] makes a session of its own of one run at a point of its past. The
// ids that clients know are new in it: those of the run are given, those of its
// children derived from a new seed, so that no two runs ever have one id. The ids
// inside (invocations, events, calls, timers) stay, as do the records of attempts
// under way, which are replayed with the run and session ids that their guests have
// seen: what was answered is answered again, and only what comes after is new.
package engine

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// Tick is something that wants to happen to a session: one of the types below.
type Tick interface{ tick() }

type (
	// StartRun begins a run. The caller has checked the start event against
	// its schema.
	StartRun struct {
		RunID     string
		HandlerID string
		Version   string // digest of the module; the graph is looked up by it
		Event     abi.Event
		Seed      [32]byte
		Timeout   int64 // nanoseconds of serving time; 0: none
		Limits    host.Limits
		// Parent is set for a child that a run of another session began.
		Parent *Parent
		// Trace is that of who began the run; nil: none.
		Trace *host.Trace
		// Age is when the run at the top of a child's tree first started, in Unix
		// nanoseconds; 0: this run is at the top, and its own start counts.
		Age int64
		// Queue has the run wait while others of the session are active, or wait
		// themselves.
		Queue bool
		// Work: the timeout counts only the time in which an attempt of the run is
		// open, not the time in which all of its invocations wait.
		Work bool
	}
	// BeginRun begins the queued run that waits longest, if no other run of the
	// session is under way.
	BeginRun struct{}
	// PostEvent brings an event from outside.
	PostEvent struct {
		RunID string
		Event abi.Event
		Step  string // "": every step that accepts it
	}
	// Call is a host call with an effect, made by an open attempt.
	Call struct {
		Invocation uint64
		Attempt    uint64
		N          uint64 // ordinal of the call in its attempt, from 1
		Request    Request
	}
	// Finish ends an attempt, with an output or an error.
	Finish struct {
		Invocation uint64
		Attempt    uint64
		Output     abi.StepOutput
		Fuel       uint64
		// Stage is what an atomic step did; nil for others, and looked at only if
		// the output is no error.
		Stage *Stage
	}
	// Timer fires the earliest timer if it is due.
	Timer struct{}
	// Cancel ends a run, when the steps that catch it have cleaned up; a second
	// one ends it at once.
	Cancel struct{ RunID string }
	// Block stops a run until somebody helps.
	Block struct {
		RunID  string
		Reason host.Blocked
	}
	// Pause lets a run begin no attempts until it is resumed: what comes waits.
	Pause struct{ RunID string }
	// Resume lets a run that was paused or blocked go on: one that was blocked with
	// the records of its attempts or, if they are to begin Anew, without.
	Resume struct {
		RunID string
		Anew  bool
	}
	// Shift moves the serving-time deadlines of all active runs on by the time
	// in which the server was not serving, in nanoseconds.
	Shift struct{ Lost int64 }
	// Extend moves one timeout on, of a run or an attempt, by the time in which it
	// waited for a core, in nanoseconds. See [Session.DueTimeout].
	Extend struct {
		Of Timeout
		By int64
	}
	// Delivered says that a session has, or needs no more, the messages to it up
	// to and with one. See [Session.Mail].
	Delivered struct {
		To string
		ID uint64
	}
	// ChildEnded brings the end of a child from another session.
	ChildEnded struct{ End ChildEnd }
	// ChildShown brings an event of a child's stream from another session.
	ChildShown struct{ Show ChildShow }
	// ResourceAnswered brings the answer to a call of a resource: Err, or if
	// that is nil Value, one encoded value (nil: null).
	ResourceAnswered struct {
		Invocation uint64
		Attempt    uint64
		N          uint64 // of the call that it answers
		Value      abi.Raw
		Err        *abi.Error
	}
	// ResourceDelta brings a part of the answer's text, for the run's stream.
	ResourceDelta struct {
		Invocation uint64
		Attempt    uint64
		N          uint64 // of the call
		Delta      host.ResourceDelta
	}
)

func (StartRun) tick()         {}
func (BeginRun) tick()         {}
func (PostEvent) tick()        {}
func (Call) tick()             {}
func (Finish) tick()           {}
func (Timer) tick()            {}
func (Cancel) tick()           {}
func (Block) tick()            {}
func (Pause) tick()            {}
func (Resume) tick()           {}
func (Shift) tick()            {}
func (Extend) tick()           {}
func (Delivered) tick()        {}
func (ChildEnded) tick()       {}
func (ChildShown) tick()       {}
func (ResourceAnswered) tick() {}
func (ResourceDelta) tick()    {}

// Request is the effect that a host call asks for: one of the types below.
type Request interface{ request() }

type (
	// EditState applies a batch of edits. Response: Results.
	EditState struct {
		Edits    []abi.Edit
		Prepared *Prepared // nil: it is worked out within the tick
	}
	// CommitState replaces the value at Path if the node there still is Base
	// (nil: absent), else it is refused with [ErrConflict].
	CommitState struct {
		Path  state.Path
		Base  *state.Node
		Value *state.Node

		Prepared *Prepared // nil: it is worked out within the tick
	}
	// SendEvent emits an event.
	SendEvent struct {
		Event abi.Event
		Step  string
	}
	// WriteStream publishes an event.
	WriteStream struct{ Event abi.Event }
	// CollectEvents buffers an event. Response: Collected, nil until complete.
	CollectEvents struct {
		Event    abi.Event
		Expected []string
		Buffer   string
	}
	// WaitForEvent waits for an event. ID names the wait in its invocation.
	// Response: Event once there is one, else Suspended.
	WaitForEvent struct {
		ID           string
		Type         string
		Requirements abi.Raw    // nil: none
		Ask          *abi.Event // nil: none
		Timeout      int64      // nanoseconds; 0: none
		Broadcast    bool
	}
	// Sleep waits for a time. Response: Suspended, until it is over.
	Sleep struct{ Duration int64 }
	// RunWorkflow runs a workflow as a child. Response: Event once it has ended
	// well, its error once it has failed, else Suspended.
	RunWorkflow struct {
		ID       string // "": the child belongs to this call
		Workflow string
		Event    abi.Event // that the child starts with, as the guest gave it
		Shared   bool      // in the same session
		Session  string    // else in this one; "": in one of its own
		Stream   bool      // the parent's stream shows its events too
		// Start has the version, the checked Event, the timeout and the limits.
		// nil: see [ErrUnresolved].
		Start *StartRun
	}
	// CallResource calls a resource. Response: Value once it has answered, its
	// error once it has failed, else Suspended.
	CallResource struct {
		Resource string
		Method   string
		Payload  abi.Raw // one encoded value
		Ordinal  uint64  // among the calls of the attempt that are alike, from 1
		// Mode is how the operator has granted the resource. "": see
		// [ErrUnresolved].
		Mode host.ResourceMode
	}
)

func (EditState) request()     {}
func (CommitState) request()   {}
func (SendEvent) request()     {}
func (WriteStream) request()   {}
func (CollectEvents) request() {}
func (WaitForEvent) request()  {}
func (Sleep) request()         {}
func (RunWorkflow) request()   {}
func (CallResource) request()  {}

// Response is what a call's request gives back to the guest.
type Response struct {
	Results   []abi.Raw     // of EditState, one for each edit
	Collected []abi.Event   // of CollectEvents
	Complete  bool          // of CollectEvents: Collected is the released set
	Event     abi.Event     // of WaitForEvent and RunWorkflow
	Value     abi.Raw       // of CallResource
	Delivery  host.Delivery // of PostEvent
	// Suspended: there is no answer yet. The guest is to be unwound; a
	// [StartAttempt] says when the attempt can go on.
	Suspended bool
	// Warning is for the log of the invocation; "" for none. The call succeeded.
	Warning string
}

// Result is what a reduced tick came to.
type Result struct {
	// Entry is to be journaled; nil if nothing changed (a batch of tests).
	Entry    *Entry
	Response Response
	Commands []Command
	// Visited counts the items that the tick looked at: what it cost beside what is
	// prepared.
	Visited uint64
}

// Command is something that the session wants done: one of the types below.
type Command interface{ command() }

type (
	// StartAttempt: an invocation has a worker slot; run its current attempt.
	StartAttempt struct{ Invocation uint64 }
	// Abandon: an invocation is no longer wanted; stop it if it runs. It tells whose
	// it was, as the session may know it no more. Held: its attempt goes on when its
	// run, which is blocked, does.
	Abandon struct {
		Invocation uint64
		RunID      string
		Step       string
		Attempt    uint64
		Held       bool
	}
	// Publish: an event for a handler's stream, to be shown when durable.
	Publish struct {
		HandlerID string
		Event     host.StreamEvent
	}
	// RunChanged: the record of a run changed; see [Session.Record].
	RunChanged struct{ Run host.Run }
	// RunEnded: the run has its final status; its RunChanged came before.
	RunEnded struct {
		RunID     string
		HandlerID string
	}
	// Mail: there is a message to another session, see [Session.Mail].
	Mail struct{ To string }
	// CallOut: an invocation waits for the answer of a resource; see
	// [Session.OutCall]. An [Abandon] of the invocation takes it back.
	CallOut struct{ Invocation uint64 }
)

func (StartAttempt) command() {}
func (Mail) command()         {}
func (CallOut) command()      {}
func (Abandon) command()      {}
func (Publish) command()      {}
func (RunChanged) command()   {}
func (RunEnded) command()     {}
