package engine

import (
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// EntryKind says what an entry records. The numbers are part of the journal's format.
type EntryKind uint8

// The kinds of entries, and the fields of [Entry] that each kind uses beside Seq, At and
// Kind. "call" stands for RunID, Invocation, Attempt and N. Fields in brackets are
// optional.
//
//	 1 start        RunID, Start, [Changes]          begins a run
//	 2 post         RunID, Event, [Step]             event from a client
//	 3 edit         call, Changes                    state_edit or state_commit
//	 4 send         call, Event, [Step]              send_event
//	 5 stream       call, Event                      write_stream
//	 6 collect      call, Collect, [Event]           collect_events
//	 7 finish       call without N, Finish, [Changes, Retry]  end of an attempt
//	 8 timer        RunID, Timer, [Invocation, Attempt, Retry]  a timer fires
//	 9 cancel       RunID
//	10 block        RunID, Block
//	11 shift        Lost                             time without a server does not count
//	12 wait         call, Wait, [Event, Due]         wait_for_event; Event asks for the answer
//	13 sleep        call, Due
//	14 pause        RunID
//	15 resume       RunID, [Anew]
//	16 child        call, Child, [Changes]           run_workflow
//	17 delivered    Delivered                        messages leave the outbox
//	18 child_ended  RunID, Ended                     of a child in another session
//	19 child_shown  RunID, Shown                     of a child in another session
//	20 queue        RunID, Start                     a start waits for its turn
//	21 begin        RunID, [Changes or Fault]        the run that waited longest begins
//	23 resource     call, Resource                   a call of a resource begins
//	24 answered     call, Answer                     the resource has answered
//	26 snapshot     Snapshot, [Held], Ran            replaces all entries before it
//	27 fork         Snapshot, [Held]                 first entry of a fork
//	28 retry        RunID, Rerun, [Held]             a failed run continues
//	29 migrate      RunID, Version                   a run continues with another version
//	30 patch        [Changes]                        edit of the state by a client
//	31 answer_part  call, Delta                      text of an answer, before the answer
//	32 extend       RunID, Timer, Lost, [Invocation] a timeout moves
//
// The first entry of an attempt also has Open, and any entry that an attempt wrote may
// have Calls, Logs and Burnt (see [Entry.OfAttempt]).
//
// No weft has ever written the kinds 22 and 25, nor the fields with the keys 26, 27 and
// 33 to 39: they were set aside while features were developed side by side. Key 17
// (Crash) was written by older servers and is ignored.
const (
	EntryStart   EntryKind = 1
	EntryPost    EntryKind = 2
	EntryEdit    EntryKind = 3
	EntrySend    EntryKind = 4
	EntryStream  EntryKind = 5
	EntryCollect EntryKind = 6
	EntryFinish  EntryKind = 7
	EntryTimer   EntryKind = 8
	EntryCancel  EntryKind = 9
	EntryBlock   EntryKind = 10
	EntryShift   EntryKind = 11
	EntryWait    EntryKind = 12
	EntrySleep   EntryKind = 13
	EntryPause   EntryKind = 14
	EntryResume  EntryKind = 15

	// Children: see child.go and message.go.

	EntryChild      EntryKind = 16
	EntryDelivered  EntryKind = 17
	EntryChildEnded EntryKind = 18
	EntryChildShown EntryKind = 19

	EntryQueue EntryKind = 20 // a start waits for its session's turn
	EntryBegin EntryKind = 21 // the queued run that waited longest begins

	// Resources: see resource.go.

	EntryResource         EntryKind = 23
	EntryResourceAnswered EntryKind = 24

	EntryAnswerPart EntryKind = 31 // part of an answer, before the whole answer

	// Snapshots: see adopt.go.

	EntrySnapshot EntryKind = 26 // everything that the session holds
	EntryFork     EntryKind = 27 // the first entry of a fork

	EntryRetry   EntryKind = 28 // a failed run continues: see rerun.go
	EntryMigrate EntryKind = 29 // a run continues with another version: see migrate.go
	EntryPatch   EntryKind = 30 // an edit of the state by a client: see outside.go

	EntryExtend EntryKind = 32 // a timeout moves: see timeout.go
)

// entryNames are the names of the kinds in a run's timeline.
var entryNames = map[EntryKind]string{
	EntryStart: "start", EntryPost: "post", EntryEdit: "edit", EntrySend: "send", EntryStream: "stream", EntryCollect: "collect",
	EntryFinish: "finish", EntryTimer: "timer", EntryCancel: "cancel", EntryBlock: "block", EntryShift: "shift", EntryWait: "wait",
	EntrySleep: "sleep", EntryPause: "pause", EntryResume: "resume", EntryChild: "child", EntryDelivered: "delivered",
	EntryChildEnded: "child_ended", EntryChildShown: "child_shown", EntryQueue: "queue", EntryBegin: "begin",
	EntrySnapshot: "snapshot", EntryFork: "fork", EntryResource: "resource", EntryResourceAnswered: "answered",
	EntryRetry: "retry", EntryMigrate: "migrate", EntryPatch: "patch",
	EntryAnswerPart: "answer_part", EntryExtend: "extend",
}

// String returns the kind's name in a run's timeline.
func (k EntryKind) String() string {
	if name, ok := entryNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Entry is one position of a session's journal: an effect in its resolved form. Folding
// an entry needs no plugin, schema or edit semantics. An entry is immutable once Reduce
// has returned it, except for Open, Calls, Logs and Burnt: the code that journals the
// entry may set these before it does. Fold ignores them.
type Entry struct {
	Seq  uint64    `cbor:"1,keyasint"`
	At   int64     `cbor:"2,keyasint"` // Unix nanoseconds, never before the entry before
	Kind EntryKind `cbor:"3,keyasint"`

	RunID      string `cbor:"4,keyasint,omitempty"`
	Invocation uint64 `cbor:"5,keyasint,omitempty"`
	Attempt    uint64 `cbor:"6,keyasint,omitempty"`
	N          uint64 `cbor:"7,keyasint,omitempty"` // number of the call in its attempt

	Start   *StartPart    `cbor:"8,keyasint,omitempty"`
	Event   *abi.Event    `cbor:"9,keyasint,omitempty"`
	Step    string        `cbor:"10,keyasint,omitempty"`
	Changes []byte        `cbor:"11,keyasint,omitempty"` // state.EncodeChanges
	Collect *CollectPart  `cbor:"12,keyasint,omitempty"`
	Finish  *FinishPart   `cbor:"13,keyasint,omitempty"`
	Timer   uint64        `cbor:"14,keyasint,omitempty"` // id of the timer that fires or moves
	Block   *host.Blocked `cbor:"15,keyasint,omitempty"`
	Lost    int64         `cbor:"16,keyasint,omitempty"` // nanoseconds by which timers move: EntryShift, EntryExtend
	Crash   bool          `cbor:"17,keyasint,omitempty"` // written by older servers, ignored
	Retry   *RetryPart    `cbor:"18,keyasint,omitempty"` // of a failed attempt; nil: no further attempt
	Due     int64         `cbor:"20,keyasint,omitempty"` // when a sleep or a wait ends; 0: a wait without a timeout

	Wait *WaitPart `cbor:"19,keyasint,omitempty"` // of an EntryWait; its Event asks for the answer

	Child     *ChildPart     `cbor:"21,keyasint,omitempty"`
	Delivered *DeliveredPart `cbor:"22,keyasint,omitempty"`
	Ended     *ChildEnd      `cbor:"23,keyasint,omitempty"` // of an EntryChildEnded
	Shown     *ChildShow     `cbor:"24,keyasint,omitempty"` // of an EntryChildShown
	// Fault is why a queued run cannot begin. Of an EntryBegin.
	Fault *abi.Error `cbor:"25,keyasint,omitempty"`

	Resource *ResourcePart `cbor:"28,keyasint,omitempty"`
	Answer   *AnswerPart   `cbor:"29,keyasint,omitempty"`
	Delta    *DeltaPart    `cbor:"47,keyasint,omitempty"`
	// Snapshot and Held belong to an EntrySnapshot and an EntryFork. Held and Rerun, the
	// snapshot of the run that continues, belong to an EntryRetry.
	Snapshot []byte        `cbor:"40,keyasint,omitempty"`
	Held     []HeldAttempt `cbor:"41,keyasint,omitempty"`
	Rerun    []byte        `cbor:"42,keyasint,omitempty"`
	// Anew, of an EntryResume: the attempts that the block interrupted begin again.
	Anew bool `cbor:"43,keyasint,omitempty"`
	// Version, of an EntryMigrate, is the version with which the run continues.
	Version string `cbor:"44,keyasint,omitempty"`
	// Ran, of an EntrySnapshot: the snapshot lists the workflows that have run in the
	// session. Snapshots of older servers do not.
	Ran bool `cbor:"45,keyasint,omitempty"`

	// Burnt is what the attempt has burnt up to and with this entry. An EntryFinish has
	// Burnt only if its Fuel does not say the same.
	Burnt *Burnt `cbor:"46,keyasint,omitempty"`

	// Open is on the first entry of an attempt: what its input was made of.
	Open *AttemptOpen `cbor:"30,keyasint,omitempty"`
	// Calls are the records of the attempt that no earlier entry carries, up to and with
	// the entry's own call.
	Calls []CallRecord `cbor:"31,keyasint,omitempty"`
	// Logs are the lines that the attempt logged since its entry before.
	Logs []LogRecord `cbor:"32,keyasint,omitempty"`
}

// Burnt counts the fuel that the guest of an attempt has burnt, in units.
type Burnt struct {
	// Own counts each unit of the attempt once, however often the guest ran.
	Own uint64 `cbor:"1,keyasint,omitempty"`
	// Again counts what replays burnt to reach the point that the attempt had reached.
	Again uint64 `cbor:"2,keyasint,omitempty"`
	// Beyond is the part of Again that the tenant pays for.
	Beyond uint64 `cbor:"3,keyasint,omitempty"`
}

// Billed is what the tenant pays for the attempt, in units.
func (b Burnt) Billed() uint64 { return b.Own + b.Beyond }

// freeReplays is how many times its own fuel an attempt may burn again free of charge.
const freeReplays = 10

// With returns the attempt's total when a run of its guest, which began at the total b,
// has burnt run units.
func (b Burnt) With(run uint64) Burnt {
	// Only the part of a run that goes further than all runs before is new.
	out := Burnt{Own: max(b.Own, run), Again: b.Again + min(b.Own, run), Beyond: b.Beyond}
	if free := freeReplays * out.Own; out.Again > free {
		out.Beyond = max(out.Beyond, out.Again-free)
	}
	return out
}

// Spending returns what the attempt had burnt by this entry. ok is false if the entry
// does not say.
func (e *Entry) Spending() (b Burnt, ok bool) {
	switch {
	case e.Burnt != nil:
		return *e.Burnt, true
	case e.Finish != nil:
		return Burnt{Own: e.Finish.Fuel}, true
	}
	return b, false
}

// StartPart belongs to an EntryStart and an EntryQueue, and to the start of a child.
type StartPart struct {
	HandlerID string      `cbor:"1,keyasint"`
	Version   string      `cbor:"2,keyasint"`
	Event     abi.Event   `cbor:"3,keyasint"`
	Seed      [32]byte    `cbor:"4,keyasint"`
	Timeout   int64       `cbor:"5,keyasint,omitempty"`
	Limits    host.Limits `cbor:"6,keyasint"`
	Parent    *Parent     `cbor:"7,keyasint,omitempty"` // of a child
	Trace     *host.Trace `cbor:"8,keyasint,omitempty"` // of the caller that began the run
	// Age belongs to a child; see StartRun. Journals of older servers do not have it:
	// such children count from their own start.
	Age int64 `cbor:"10,keyasint,omitempty"`
	// Work: the timeout counts only while an attempt of the run is open.
	Work bool `cbor:"9,keyasint,omitempty"`
	// Stalls: the run ends when nothing is left to do. Runs of older servers stay active.
	Stalls bool `cbor:"11,keyasint,omitempty"`
}

// Parent is what the run of a child knows of the run that began it.
type Parent struct {
	Session string `cbor:"1,keyasint"`
	Stream  bool   `cbor:"2,keyasint,omitempty"` // the parent's stream shows the child's events
	Depth   int    `cbor:"3,keyasint"`           // number of runs above the child
	// RunID and Step are the run and the step that began the child; "" in the journals of
	// older servers.
	RunID string `cbor:"4,keyasint,omitempty"`
	Step  string `cbor:"5,keyasint,omitempty"`
}

// ChildPart belongs to an EntryChild.
type ChildPart struct {
	Key      string `cbor:"1,keyasint"` // names the child in its invocation
	Workflow string `cbor:"2,keyasint"`
	// The other fields belong to a child that begins. They are empty if the attempt waits
	// for a child that an earlier attempt began.
	RunID   string     `cbor:"3,keyasint,omitempty"`
	Session string     `cbor:"4,keyasint,omitempty"` // "": the parent's own
	Stream  bool       `cbor:"5,keyasint,omitempty"`
	Start   *StartPart `cbor:"6,keyasint,omitempty"`
}

// DeliveredPart belongs to an EntryDelivered.
type DeliveredPart struct {
	To string `cbor:"1,keyasint"`
	ID uint64 `cbor:"2,keyasint"` // of the last message delivered
}

// ResourcePart belongs to an EntryResource: the intent of a call.
type ResourcePart struct {
	Resource string            `cbor:"1,keyasint"`
	Method   string            `cbor:"2,keyasint"`
	Payload  abi.Raw           `cbor:"3,keyasint"`
	Ordinal  uint64            `cbor:"4,keyasint"` // among equal calls of the attempt, from 1
	Mode     host.ResourceMode `cbor:"5,keyasint"`
}

// AnswerPart belongs to an EntryResourceAnswered. Exactly one field is set.
type AnswerPart struct {
	Value abi.Raw    `cbor:"1,keyasint,omitempty"`
	Err   *abi.Error `cbor:"2,keyasint,omitempty"`
}

// DeltaPart belongs to an EntryAnswerPart.
type DeltaPart struct {
	Body     abi.Raw  `cbor:"1,keyasint"` // of the event that shows the part
	Streamed int      `cbor:"2,keyasint"` // bytes of the answer's text, including this part
	Hash     [32]byte `cbor:"3,keyasint"` // SHA-256 of those bytes
}

// Begins returns the run that the entry begins in its own session; start is nil if the
// entry begins none.
func (e *Entry) Begins() (runID string, start *StartPart) {
	switch {
	case e.Start != nil:
		return e.RunID, e.Start
	case e.Child != nil && e.Child.Start != nil && e.Child.Session == "":
		return e.Child.RunID, e.Child.Start
	}
	return "", nil
}

// OfAttempt reports whether an attempt wrote the entry. A timer, its extension and the
// answer of a resource name an invocation too, but the attempt did not write them.
func (e *Entry) OfAttempt() bool {
	return e.Invocation != 0 && e.Kind != EntryTimer && e.Kind != EntryExtend && e.Kind != EntryResourceAnswered && e.Kind != EntryAnswerPart
}

// Replayed is the number of calls in the attempt's record after this entry, if the entry
// carries its part of the record. A call that suspends has no answer yet, so it is not in
// the record.
func (e *Entry) Replayed() uint64 {
	switch {
	case e.N == 0:
		return 0
	case e.Kind == EntrySleep, e.Kind == EntryChild, e.Kind == EntryResource, e.Kind == EntryWait && e.Wait != nil && e.Wait.Taken == 0:
		return e.N - 1
	}
	return e.N
}

// CollectPart belongs to an EntryCollect. Its ids name events in the buffer.
type CollectPart struct {
	Buffer string `cbor:"1,keyasint,omitempty"`
	// Added is the id under which an event was buffered: the entry's Event or, if the
	// entry has none, the event of the invocation's trigger. 0: the event was buffered
	// before.
	Added   uint64   `cbor:"2,keyasint,omitempty"`
	Release []uint64 `cbor:"3,keyasint,omitempty"` // the complete set, in its order
	// Complete says that a set was released. The set may be empty.
	Complete bool `cbor:"6,keyasint,omitempty"`
	// Given is the id of the event in the invocation's trigger that the guest passed; 0:
	// the guest made the event.
	Given    uint64   `cbor:"4,keyasint,omitempty"`
	Expected []string `cbor:"5,keyasint,omitempty"` // of the release
}

// FinishPart belongs to an EntryFinish.
type FinishPart struct {
	Events []abi.Event `cbor:"1,keyasint,omitempty"`
	List   bool        `cbor:"2,keyasint,omitempty"`
	Err    *abi.Error  `cbor:"3,keyasint,omitempty"`
	Fuel   uint64      `cbor:"4,keyasint,omitempty"`
	// Staged is what an atomic step sent and wrote, in order, ahead of Events. Its edits
	// are the entry's Changes.
	Staged []StagedPart `cbor:"5,keyasint,omitempty"`
}

// StagedPart is an event that an atomic step sent or wrote to the stream.
type StagedPart struct {
	Event  abi.Event `cbor:"1,keyasint"`
	Step   string    `cbor:"2,keyasint,omitempty"`
	Stream bool      `cbor:"3,keyasint,omitempty"`
}

// WaitPart belongs to an EntryWait.
type WaitPart struct {
	ID           string  `cbor:"1,keyasint"`
	Type         string  `cbor:"2,keyasint"`
	Requirements abi.Raw `cbor:"3,keyasint,omitempty"`
	Broadcast    bool    `cbor:"4,keyasint,omitempty"`
	// Taken is the id of the event in the inbox that answers at once; 0: no event does,
	// and the attempt is suspended.
	Taken uint64 `cbor:"5,keyasint,omitempty"`
}

// RetryPart says that another attempt follows a failed one. The failed attempt ended by
// an EntryFinish or by the EntryTimer of its step's timeout.
type RetryPart struct {
	Due int64 `cbor:"1,keyasint"` // when, Unix nanoseconds
}

// AttemptOpen has the parts of an attempt's input that the session itself does not hold
// (the session holds the trigger, the attempt number and the last error). The journal
// keeps it, so that a change of the server's configuration cannot change a replay.
type AttemptOpen struct {
	Clock  int64       `cbor:"1,keyasint"`
	Seed   [32]byte    `cbor:"2,keyasint"`
	Limits host.Limits `cbor:"3,keyasint"`
	// RunID and SessionID are the ids under which the attempt began, if it continues in a
	// fork under other ids: its guest has seen the old ones. "": the present ids.
	RunID     string `cbor:"4,keyasint,omitempty"`
	SessionID string `cbor:"5,keyasint,omitempty"`
	// Prices is the version of the price table of host calls; see state.Prices. The
	// attempt keeps its version to the end.
	Prices uint64 `cbor:"6,keyasint,omitempty"`
}

// CallRecord is one host call of an attempt: the request and the answer.
type CallRecord struct {
	N        uint64     `cbor:"1,keyasint"`
	Import   abi.Import `cbor:"2,keyasint"`
	Request  []byte     `cbor:"3,keyasint,omitempty"` // complete if short, else its SHA-256
	Hashed   bool       `cbor:"4,keyasint,omitempty"`
	Status   abi.Status `cbor:"5,keyasint,omitempty"`
	Response []byte     `cbor:"6,keyasint,omitempty"`
	Clock    int64      `cbor:"7,keyasint"` // the guest's virtual clock after the call
	// Fuel is what the call cost beyond its flat price, in units. A replay charges this
	// amount, because it does not repeat the work.
	Fuel uint64 `cbor:"8,keyasint,omitempty"`
}

// LogRecord is a line that a guest logged.
type LogRecord struct {
	Level   int64   `cbor:"1,keyasint,omitempty"`
	Message string  `cbor:"2,keyasint"`
	Attrs   abi.Raw `cbor:"3,keyasint,omitempty"`
	Clock   int64   `cbor:"4,keyasint"`
	FD      uint32  `cbor:"5,keyasint,omitempty"` // 1 or 2 if the guest printed the line
	// Complete: the printed line has ended, and the next print begins another line.
	Complete bool `cbor:"-"`
}
