package engine

import (
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// EntryKind says what an entry records. The numbers are the journal's format.
type EntryKind uint8

// The kinds of entries.
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
	// Of children: see child.go and message.go.
	EntryChild      EntryKind = 16
	EntryDelivered  EntryKind = 17
	EntryChildEnded EntryKind = 18
	EntryChildShown EntryKind = 19

	EntryQueue EntryKind = 20 // a start that waits for its session's turn
	EntryBegin EntryKind = 21 // of the queued run that waits longest
	// Of resources: see resource.go.
	EntryResource         EntryKind = 23
	EntryResourceAnswered EntryKind = 24

	EntryAnswerPart EntryKind = 31 // of an answer, before the whole

	// Of snapshots: see adopt.go.
	EntrySnapshot EntryKind = 26 // what the session holds, for those who load it
	EntryFork     EntryKind = 27 // the beginning of a session that was another

	EntryRetry   EntryKind = 28 // a run that has failed goes on: see rerun.go
	EntryMigrate EntryKind = 29 // a run goes on with another version: see migrate.go
	EntryPatch   EntryKind = 30 // an edit of the state from outside: see outside.go

	EntryExtend EntryKind = 32 // a timeout moves on: see timeout.go
)

// entryNames are how entries are called in a run's timeline.
var entryNames = map[EntryKind]string{
	EntryStart: "start", EntryPost: "post", EntryEdit: "edit", EntrySend: "send", EntryStream: "stream", EntryCollect: "collect",
	EntryFinish: "finish", EntryTimer: "timer", EntryCancel: "cancel", EntryBlock: "block", EntryShift: "shift", EntryWait: "wait",
	EntrySleep: "sleep", EntryPause: "pause", EntryResume: "resume", EntryChild: "child", EntryDelivered: "delivered",
	EntryChildEnded: "child_ended", EntryChildShown: "child_shown", EntryQueue: "queue", EntryBegin: "begin",
	EntrySnapshot: "snapshot", EntryFork: "fork", EntryResource: "resource", EntryResourceAnswered: "answered",
	EntryRetry: "retry", EntryMigrate: "migrate", EntryPatch: "patch",
	EntryAnswerPart: "answer_part", EntryExtend: "extend",
}

// String is the kind's name in a run's timeline.
func (k EntryKind) String() string {
	if name, ok := entryNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Entry is one position of a session's journal: an effect, resolved, so that
// folding it needs no plugin, schema or edit semantics. It is immutable once
// Reduce has returned it, but for Open, Calls and Logs, which whoever journals
// it may set before, as Burnt; Fold does not look at those.
type Entry struct {
	Seq  uint64    `cbor:"1,keyasint"`
	At   int64     `cbor:"2,keyasint"` // Unix nanoseconds, never before the entry before
	Kind EntryKind `cbor:"3,keyasint"`

	RunID      string `cbor:"4,keyasint,omitempty"`
	Invocation uint64 `cbor:"5,keyasint,omitempty"`
	Attempt    uint64 `cbor:"6,keyasint,omitempty"`
	N          uint64 `cbor:"7,keyasint,omitempty"` // of the call

	Start   *StartPart    `cbor:"8,keyasint,omitempty"`
	Event   *abi.Event    `cbor:"9,keyasint,omitempty"`
	Step    string        `cbor:"10,keyasint,omitempty"`
	Changes []byte        `cbor:"11,keyasint,omitempty"` // state.EncodeChanges
	Collect *CollectPart  `cbor:"12,keyasint,omitempty"`
	Finish  *FinishPart   `cbor:"13,keyasint,omitempty"`
	Timer   uint64        `cbor:"14,keyasint,omitempty"` // id of the timer that fires or moves
	Block   *host.Blocked `cbor:"15,keyasint,omitempty"`
	Lost    int64         `cbor:"16,keyasint,omitempty"` // by how much timers move, of an EntryShift and an EntryExtend
	Crash   bool          `cbor:"17,keyasint,omitempty"` // of older servers, and ignored
	Retry   *RetryPart    `cbor:"18,keyasint,omitempty"` // of a failed attempt; nil: it was the last
	Due     int64         `cbor:"20,keyasint,omitempty"` // when a sleep or a wait ends; 0: a wait without a timeout

	Wait *WaitPart `cbor:"19,keyasint,omitempty"` // of an EntryWait; its Event is what it asks

	Child     *ChildPart     `cbor:"21,keyasint,omitempty"`
	Delivered *DeliveredPart `cbor:"22,keyasint,omitempty"`
	Ended     *ChildEnd      `cbor:"23,keyasint,omitempty"` // of an EntryChildEnded
	Shown     *ChildShow     `cbor:"24,keyasint,omitempty"` // of an EntryChildShown
	// Fault is why a queued run cannot begin, of an EntryBegin.
	Fault *abi.Error `cbor:"25,keyasint,omitempty"`

	Resource *ResourcePart `cbor:"28,keyasint,omitempty"`
	Answer   *AnswerPart   `cbor:"29,keyasint,omitempty"`
	Delta    *DeltaPart    `cbor:"47,keyasint,omitempty"`
	// Snapshot and Held are of an EntrySnapshot and an EntryFork; Held and Rerun,
	// the snapshot of the run that goes on, of an EntryRetry.
	Snapshot []byte        `cbor:"40,keyasint,omitempty"`
	Held     []HeldAttempt `cbor:"41,keyasint,omitempty"`
	Rerun    []byte        `cbor:"42,keyasint,omitempty"`
	// Anew is of an EntryResume: the attempts that the block has cut off begin anew.
	Anew bool `cbor:"43,keyasint,omitempty"`
	// Version is the one with which the run goes on, of an EntryMigrate.
	Version string `cbor:"44,keyasint,omitempty"`
	// Ran is of an EntrySnapshot: it says which workflows have run in the session, as
	// older ones do not.
	Ran bool `cbor:"45,keyasint,omitempty"`

	// Burnt is what the attempt has burnt with the entry, of an EntryFinish only if
	// its Fuel does not say so.
	Burnt *Burnt `cbor:"46,keyasint,omitempty"`

	// Open is on the first entry of an attempt: what its input was made of.
	Open *AttemptOpen `cbor:"30,keyasint,omitempty"`
	// Calls is the part of the attempt's record that was not yet written, up
	// to and with the entry's own call.
	Calls []CallRecord `cbor:"31,keyasint,omitempty"`
	// Logs is what the attempt logged since its entry before.
	Logs []LogRecord `cbor:"32,keyasint,omitempty"`
}

// Burnt counts what the guest of an attempt has burnt.
type Burnt struct {
	// Own counts each unit of the attempt once, however often it was run.
	Own uint64 `cbor:"1,keyasint,omitempty"`
	// Again counts what was burnt to come to where it had been.
	Again uint64 `cbor:"2,keyasint,omitempty"`
	// Beyond is what was billed of that besides Own.
	Beyond uint64 `cbor:"3,keyasint,omitempty"`
}

// Billed is what the attempt has cost its tenant.
func (b Burnt) Billed() uint64 { return b.Own + b.Beyond }

// freeReplays is how many times what an attempt burns it may burn again for nothing.
const freeReplays = 10

// With is what the attempt has burnt when a run of its guest that began with b comes
// to so many units.
func (b Burnt) With(run uint64) Burnt {
	out := Burnt{Own: max(b.Own, run), Again: b.Again + min(b.Own, run), Beyond: b.Beyond}
	if free := freeReplays * out.Own; out.Again > free {
		out.Beyond = max(out.Beyond, out.Again-free)
	}
	return out
}

// Spending is what an entry of an attempt says that it has burnt; ok: it says so.
func (e *Entry) Spending() (b Burnt, ok bool) {
	switch {
	case e.Burnt != nil:
		return *e.Burnt, true
	case e.Finish != nil:
		return Burnt{Own: e.Finish.Fuel}, true
	}
	return b, false
}

// StartPart is the part of an EntryStart and an EntryQueue.
type StartPart struct {
	HandlerID string      `cbor:"1,keyasint"`
	Version   string      `cbor:"2,keyasint"`
	Event     abi.Event   `cbor:"3,keyasint"`
	Seed      [32]byte    `cbor:"4,keyasint"`
	Timeout   int64       `cbor:"5,keyasint,omitempty"`
	Limits    host.Limits `cbor:"6,keyasint"`
	Parent    *Parent     `cbor:"7,keyasint,omitempty"` // of a child
	Trace     *host.Trace `cbor:"8,keyasint,omitempty"` // of who began it
	// Age is that of a child; see StartRun. Journals of older versions have none:
	// those children have their own age.
	Age int64 `cbor:"10,keyasint,omitempty"`
	// Work: the timeout counts only the time in which an attempt of the run is open.
	Work bool `cbor:"9,keyasint,omitempty"`
	// Stalls: the run ends when nothing is left to do. Those of older servers stay.
	Stalls bool `cbor:"11,keyasint,omitempty"`
}

// Parent is what a child's run knows of the run that began it.
type Parent struct {
	Session string `cbor:"1,keyasint"`
	Stream  bool   `cbor:"2,keyasint,omitempty"` // it shows the child's events
	Depth   int    `cbor:"3,keyasint"`           // runs above the child
}

// ChildPart is the part of an EntryChild.
type ChildPart struct {
	Key      string `cbor:"1,keyasint"` // of the child in its invocation
	Workflow string `cbor:"2,keyasint"`
	// The rest is of a child that begins. An attempt that waits for one that an
	// attempt before has begun has none of it.
	RunID   string     `cbor:"3,keyasint,omitempty"`
	Session string     `cbor:"4,keyasint,omitempty"` // "": the parent's own
	Stream  bool       `cbor:"5,keyasint,omitempty"`
	Start   *StartPart `cbor:"6,keyasint,omitempty"`
}

// DeliveredPart is the part of an EntryDelivered.
type DeliveredPart struct {
	To string `cbor:"1,keyasint"`
	ID uint64 `cbor:"2,keyasint"` // of the last message
}

// ResourcePart is the part of an EntryResource: the intent of a call.
type ResourcePart struct {
	Resource string            `cbor:"1,keyasint"`
	Method   string            `cbor:"2,keyasint"`
	Payload  abi.Raw           `cbor:"3,keyasint"`
	Ordinal  uint64            `cbor:"4,keyasint"` // among the calls of the attempt that are alike, from 1
	Mode     host.ResourceMode `cbor:"5,keyasint"`
}

// AnswerPart is the part of an EntryResourceAnswered: one of the two.
type AnswerPart struct {
	Value abi.Raw    `cbor:"1,keyasint,omitempty"`
	Err   *abi.Error `cbor:"2,keyasint,omitempty"`
}

// DeltaPart is the part of an EntryAnswerPart.
type DeltaPart struct {
	Body     abi.Raw  `cbor:"1,keyasint"` // of the event that shows it
	Streamed int      `cbor:"2,keyasint"` // bytes of the answer's text, with this part
	Hash     [32]byte `cbor:"3,keyasint"` // their SHA-256
}

// Begins gives the run that the entry begins in its session; nil: none.
func (e *Entry) Begins() (runID string, start *StartPart) {
	switch {
	case e.Start != nil:
		return e.RunID, e.Start
	case e.Child != nil && e.Child.Start != nil && e.Child.Session == "":
		return e.Child.RunID, e.Child.Start
	}
	return "", nil
}

// OfAttempt reports whether an attempt has written the entry: a timer, its extension
// and the answer of a resource are of an attempt's invocation too, and come from
// elsewhere.
func (e *Entry) OfAttempt() bool {
	return e.Invocation != 0 && e.Kind != EntryTimer && e.Kind != EntryExtend && e.Kind != EntryResourceAnswered && e.Kind != EntryAnswerPart
}

// Replayed is how many calls the attempt's record has with this entry, if the
// entry was written with its part of it: one that suspends has no answer to its
// own call yet.
func (e *Entry) Replayed() uint64 {
	switch {
	case e.N == 0:
		return 0
	case e.Kind == EntrySleep, e.Kind == EntryChild, e.Kind == EntryResource, e.Kind == EntryWait && e.Wait != nil && e.Wait.Taken == 0:
		return e.N - 1
	}
	return e.N
}

// CollectPart is the part of an EntryCollect: ids of events in the buffer.
type CollectPart struct {
	Buffer string `cbor:"1,keyasint,omitempty"`
	// Added is the id under which an event was buffered: the entry's Event, or
	// without one that of the invocation's trigger. 0: it was there.
	Added   uint64   `cbor:"2,keyasint,omitempty"`
	Release []uint64 `cbor:"3,keyasint,omitempty"` // the complete set, in its order
	// Complete says that a set was released, of nothing perhaps.
	Complete bool `cbor:"6,keyasint,omitempty"`
	// Given is the id by which the event was recognised as one of the
	// invocation's trigger; 0: the guest made it.
	Given    uint64   `cbor:"4,keyasint,omitempty"`
	Expected []string `cbor:"5,keyasint,omitempty"` // of the release
}

// FinishPart is the part of an EntryFinish.
type FinishPart struct {
	Events []abi.Event `cbor:"1,keyasint,omitempty"`
	List   bool        `cbor:"2,keyasint,omitempty"`
	Err    *abi.Error  `cbor:"3,keyasint,omitempty"`
	Fuel   uint64      `cbor:"4,keyasint,omitempty"`
	// Staged is what an atomic step sent and wrote, before its events; its edits
	// are the entry's Changes.
	Staged []StagedPart `cbor:"5,keyasint,omitempty"`
}

// StagedPart is an event that an atomic step sent, or wrote to the stream.
type StagedPart struct {
	Event  abi.Event `cbor:"1,keyasint"`
	Step   string    `cbor:"2,keyasint,omitempty"`
	Stream bool      `cbor:"3,keyasint,omitempty"`
}

// WaitPart is the part of an EntryWait.
type WaitPart struct {
	ID           string  `cbor:"1,keyasint"`
	Type         string  `cbor:"2,keyasint"`
	Requirements abi.Raw `cbor:"3,keyasint,omitempty"`
	Broadcast    bool    `cbor:"4,keyasint,omitempty"`
	// Taken is the id of the event of the inbox that answers at once; 0: none
	// does, and the attempt is suspended.
	Taken uint64 `cbor:"5,keyasint,omitempty"`
}

// RetryPart says that a failed attempt, ended by an EntryFinish or by the
// EntryTimer of its step's timeout, is followed by another.
type RetryPart struct {
	Due int64 `cbor:"1,keyasint"` // when, Unix nanoseconds
}

// AttemptOpen is what an attempt's input is made of, beside what the session
// itself holds (trigger, attempt number, last error). Nothing that an operator
// can change reaches a replay.
type AttemptOpen struct {
	Clock  int64       `cbor:"1,keyasint"`
	Seed   [32]byte    `cbor:"2,keyasint"`
	Limits host.Limits `cbor:"3,keyasint"`
	// RunID and SessionID are those under which the attempt began, if it goes on in
	// a fork under others: its guest has seen them. "": those of now.
	RunID     string `cbor:"4,keyasint,omitempty"`
	SessionID string `cbor:"5,keyasint,omitempty"`
	// Prices is the version of the table of what host calls cost beyond their flat
	// price, see state.Prices: the attempt's from its beginning to its end.
	Prices uint64 `cbor:"6,keyasint,omitempty"`
}

// CallRecord is one host call of an attempt: what was asked and answered.
type CallRecord struct {
	N        uint64     `cbor:"1,keyasint"`
	Import   abi.Import `cbor:"2,keyasint"`
	Request  []byte     `cbor:"3,keyasint,omitempty"` // whole when short, else its SHA-256
	Hashed   bool       `cbor:"4,keyasint,omitempty"`
	Status   abi.Status `cbor:"5,keyasint,omitempty"`
	Response []byte     `cbor:"6,keyasint,omitempty"`
	Clock    int64      `cbor:"7,keyasint"` // the guest's virtual clock after the call
	// Fuel is what the call cost beyond its flat price, in units. A replay burns it
	// from here, as the work is not done again.
	Fuel uint64 `cbor:"8,keyasint,omitempty"`
}

// LogRecord is a line that a guest logged.
type LogRecord struct {
	Level   int64   `cbor:"1,keyasint,omitempty"`
	Message string  `cbor:"2,keyasint"`
	Attrs   abi.Raw `cbor:"3,keyasint,omitempty"`
	Clock   int64   `cbor:"4,keyasint"`
	FD      uint32  `cbor:"5,keyasint,omitempty"` // 1 or 2 if it was printed
	// Complete: a printed line that ended; the next print begins another.
	Complete bool `cbor:"-"`
}
