// Package engine defines what a run does. A session is a pure state machine: it takes
// ticks and returns journal entries and commands.
//
// The package has no access to clocks, random numbers, goroutines, storage or guests, and
// imports neither context nor sync. The same ticks always give the same entries. Folding
// the same entries always gives the same session.
//
// # Protocol
//
// A tick is something that wants to happen. [Session.Reduce] decides the tick: Reduce
// either refuses it and changes nothing, or turns it into an [Entry] and folds the entry
// into the session. An entry holds every effect in its resolved form. A session is loaded
// with [Session.Fold] alone. Reduce decides and then folds, so live work and loading run
// the same code.
//
// # Snapshots and forks
//
// [Session.Snapshot] encodes everything that a session holds, and [Restore] rebuilds the
// session from the encoding. An [EntrySnapshot] replaces all entries before it.
//
// [Session.Fork] copies one run, as it was at a point in its past, into a session of its
// own. The ids that clients know are new in the fork: the caller chooses those of the
// run, and those of its children are derived from a new seed. No two runs ever share an
// id. Internal ids (invocations, events, calls, timers) stay the same, and so do the
// records of open attempts. Open attempts are replayed with the run and session ids that
// their guests have seen: recorded calls get their recorded answers, and only later calls
// are new.
package engine

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// Tick is something that wants to happen to a session. It is one of the types below.
type Tick interface{ tick() }

type (
	// StartRun begins a run. The caller has already checked the start event against its
	// schema.
	StartRun struct {
		RunID     string
		HandlerID string
		Version   string // digest of the module; the graph is looked up by it
		Event     abi.Event
		Seed      [32]byte
		Timeout   int64 // nanoseconds of serving time; 0: none
		Limits    host.Limits
		// Parent is set for a child of a run. For a child in another session the start
		// arrives as a message.
		Parent *Parent
		// Trace is the trace context of the caller that began the run; nil: none.
		Trace *host.Trace
		// Age is when the run at the top of the child's tree first started, in Unix
		// nanoseconds. 0: this run is at the top, and its own start counts.
		Age int64
		// Queue makes the run wait while other runs of the session are active or queued.
		Queue bool
		// Work: the timeout counts only while an attempt of the run is open. Time in
		// which all invocations of the run wait does not count.
		Work bool
	}
	// BeginRun begins the queued run that has waited longest, if no other run of the
	// session has begun.
	BeginRun struct{}
	// PostEvent delivers an event from a client.
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
		// Stage is what an atomic step did; nil for other steps. Stage is ignored if the
		// output is an error.
		Stage *Stage
	}
	// Timer fires the earliest timer if it is due.
	Timer struct{}
	// Cancel ends a run after the steps that catch the cancellation have cleaned up. A
	// second Cancel ends the run at once.
	Cancel struct{ RunID string }
	// Block stops a run until an operator resumes it.
	Block struct {
		RunID  string
		Reason host.Blocked
	}
	// Pause keeps a run from beginning attempts until it is resumed. Events wait.
	Pause struct{ RunID string }
	// Resume continues a paused or blocked run. The attempts of a blocked run are
	// replayed from their records or, with Anew, begin again without them.
	Resume struct {
		RunID string
		Anew  bool
	}
	// Shift postpones the serving-time deadlines of all active runs by the time in which
	// the server did not serve, in nanoseconds.
	Shift struct{ Lost int64 }
	// Extend postpones one timeout, of a run or an attempt, by the time in which it
	// waited for a core, in nanoseconds. See [Session.DueTimeout].
	Extend struct {
		Of Timeout
		By int64
	}
	// Delivered says that a session has received, or no longer needs, its messages with
	// ids up to ID. See [Session.Mail].
	Delivered struct {
		To string
		ID uint64
	}
	// ChildEnded reports the end of a child that runs in another session.
	ChildEnded struct{ End ChildEnd }
	// ChildShown delivers an event of the stream of a child in another session.
	ChildShown struct{ Show ChildShow }
	// ResourceAnswered delivers the answer to a call of a resource: Err or, if Err is
	// nil, Value, one encoded value (nil: null).
	ResourceAnswered struct {
		Invocation uint64
		Attempt    uint64
		N          uint64 // of the call that it answers
		Value      abi.Raw
		Err        *abi.Error
	}
	// ResourceDelta delivers a part of the answer's text, for the run's stream.
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

// Request is the effect that a host call asks for. It is one of the types below.
type Request interface{ request() }

type (
	// EditState applies a batch of edits. Response: Results.
	EditState struct {
		Edits    []abi.Edit
		Prepared *Prepared // nil: the tick does the work
	}
	// CommitState replaces the value at Path if the node there is still Base (nil:
	// absent). Otherwise it is refused with [ErrConflict].
	CommitState struct {
		Path  state.Path
		Base  *state.Node
		Value *state.Node

		Prepared *Prepared // nil: the tick does the work
	}
	// SendEvent emits an event.
	SendEvent struct {
		Event abi.Event
		Step  string
	}
	// WriteStream publishes an event.
	WriteStream struct{ Event abi.Event }
	// CollectEvents buffers an event. Response: Collected; nil until the set is complete.
	CollectEvents struct {
		Event    abi.Event
		Expected []string
		Buffer   string
	}
	// WaitForEvent waits for an event. ID names the wait within its invocation. Response:
	// Event when one has arrived, else Suspended.
	WaitForEvent struct {
		ID           string
		Type         string
		Requirements abi.Raw    // nil: none
		Ask          *abi.Event // nil: none
		Timeout      int64      // nanoseconds; 0: none
		Broadcast    bool
	}
	// Sleep waits for a duration in nanoseconds. Response: Suspended until it has passed.
	Sleep struct{ Duration int64 }
	// RunWorkflow runs a workflow as a child. Response: Event if the child has completed,
	// its error if it has failed, else Suspended.
	RunWorkflow struct {
		ID       string // "": the child belongs to this call
		Workflow string
		Event    abi.Event // that the child starts with, as the guest gave it
		Shared   bool      // in the same session
		Session  string    // the child's session if not Shared; "": a session of its own
		Stream   bool      // the parent's stream shows its events too
		// Start holds the version, the checked Event, the timeout and the limits. nil:
		// see [ErrUnresolved].
		Start *StartRun
	}
	// CallResource calls a resource. Response: Value if the resource has answered, its
	// error if the call has failed, else Suspended.
	CallResource struct {
		Resource string
		Method   string
		Payload  abi.Raw // one encoded value
		Ordinal  uint64  // among the calls of the attempt that are alike, from 1
		// Mode is the mode in which the operator granted the resource. "": see
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

// Response is the answer to a call's request.
type Response struct {
	Results   []abi.Raw     // of EditState, one for each edit
	Collected []abi.Event   // of CollectEvents
	Complete  bool          // of CollectEvents: Collected is the released set
	Event     abi.Event     // of WaitForEvent and RunWorkflow
	Value     abi.Raw       // of CallResource
	Delivery  host.Delivery // of PostEvent
	// Suspended: there is no answer yet, and the guest must be unwound. A [StartAttempt]
	// says when the attempt can continue.
	Suspended bool
	// Warning is for the log of the invocation; "": none. The call succeeded.
	Warning string
}

// Result is the outcome of a tick.
type Result struct {
	// Entry must be journaled. It is nil if nothing changed, for example if a batch only
	// tests values.
	Entry    *Entry
	Response Response
	Commands []Command
	// Visited counts the items that the tick looked at. It is the cost of the tick,
	// except for prepared work.
	Visited uint64
}

// Command asks the caller to do something. It is one of the types below.
type Command interface{ command() }

type (
	// StartAttempt asks to run the current attempt of an invocation, which has a worker
	// slot.
	StartAttempt struct{ Invocation uint64 }
	// Abandon asks to stop the current attempt of an invocation, if the attempt runs.
	// The other fields identify the attempt, because the session may have dropped the
	// invocation. Held: the run is blocked, and the attempt continues when the run does.
	Abandon struct {
		Invocation uint64
		RunID      string
		Step       string
		Attempt    uint64
		Held       bool
	}
	// Publish asks to show an event on a handler's stream, as soon as the entry is durable.
	Publish struct {
		HandlerID string
		Event     host.StreamEvent
	}
	// RunChanged reports that the record of a run has changed; see [Session.Record].
	RunChanged struct{ Run host.Run }
	// RunEnded reports that the run has its final status. Its RunChanged precedes the command.
	RunEnded struct {
		RunID     string
		HandlerID string
	}
	// Mail reports a message for another session; see [Session.Mail].
	Mail struct{ To string }
	// CallOut reports that an invocation waits for the answer of a resource; see [Session.OutCall].
	// An [Abandon] of the invocation cancels the command.
	CallOut struct{ Invocation uint64 }
)

func (StartAttempt) command() {}
func (Mail) command()         {}
func (CallOut) command()      {}
func (Abandon) command()      {}
func (Publish) command()      {}
func (RunChanged) command()   {}
func (RunEnded) command()     {}
