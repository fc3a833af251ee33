// Package abi holds the messages that cross the boundary between the host and a step
// plugin, their strict and bounded CBOR codec, the limits of that codec and the status
// codes of failing host calls. abi.cddl, in this folder, is the normative text.
//
// The package must not depend on what messages are used for: no runs, sessions or
// storage. Of this project it imports only cbor, the codec of single items.
package abi

import (
	"time"

	"github.com/weftrun/weft/abi/cbor"
)

// Version is the major version of the ABI. The import module's name and the
// manifest's "abi" key carry it.
const Version = 1

// ImportModule is the name of the Wasm module that every import comes from.
const ImportModule = "weft:v1"

// Names of the exports of a plugin.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportDescribe   = "weft_describe"
	ExportStep       = "weft_step"
)

// Raw is one well-formed CBOR data item, not decoded. A Raw from this package's decoders
// has been checked by [CheckValue] and is in Core Deterministic Encoding. A nil Raw means
// "absent"; CBOR null is [Null].
type Raw []byte

// Null is the CBOR item null. Do not modify it.
var Null = Raw{cbor.Null}

// EmptyMap is the CBOR item {}. Do not modify it.
var EmptyMap = Raw{0xa0}

// Event is a typed message: what steps accept and emit.
type Event struct {
	Type string
	Body Raw    // a map with text keys
	ID   uint64 // assigned by the host; 0 means absent
}

// Error is an error that crosses the boundary: a step's failure or a failing
// host call's response. It implements the error interface as "code: message".
type Error struct {
	Code      string
	Message   string
	Retryable *bool // nil: absent
	Data      Raw   // nil: absent
}

// RunInfo identifies the run, session and attempt that a step works for.
type RunInfo struct {
	Tenant     string
	Workflow   string
	RunID      string
	SessionID  string
	Invocation uint64
	Attempt    uint64 // 1 for the first
	Clock      int64  // nanoseconds since the Unix epoch, UTC
	LastError  *Error // of the previous attempt; nil for the first
}

// StepInput is the input of weft_step.
type StepInput struct {
	Step string
	// Trigger holds one event or, with List, the events of a collector or join.
	Trigger []Event
	List    bool
	Run     RunInfo
	Config  Raw // a map; nil: absent
}

// StepOutput is the result of weft_step. Err excludes events.
type StepOutput struct {
	// Events holds no event (the step returned null), one event or, with List, any
	// number.
	Events []Event
	List   bool
	Err    *Error
}

// Manifest is what weft_describe returns: a workflow, or a part of a workflow.
type Manifest struct {
	ABI         uint64
	Workflow    string
	Version     string
	Description string
	Part        bool
	Steps       []StepDecl
	Events      map[string]EventDecl
	State       *StateDecl
	Resources   []ResourceDecl
	// Timeout of a run: nil is the host's default, 0 none.
	Timeout *time.Duration
}

// StateDecl declares the session state: a JSON Schema and the default values.
type StateDecl struct {
	Schema  Raw // a map; nil: absent
	Default Raw // a map; nil: absent
}

// ResourceDecl is a resource that a plugin requires.
type ResourceDecl struct {
	Name        string
	Kind        string
	Description string
	Optional    bool
}

// StepDecl declares one step.
type StepDecl struct {
	Name           string
	Accepts        []Slot
	Emits          []Emit // empty: the step returns nothing
	Workers        int    // 0: absent
	Timeout        time.Duration
	Retry          *RetryPolicy
	Catches        []string // step names, "cancelled", "timeout"
	CatchesAll     bool     // "*"
	MaxRecoveries  *uint64
	Waits          []string
	AcceptSubtypes bool
	Atomic         bool
	Description    string
}

// SlotKind says how a slot takes events.
type SlotKind uint8

// The kinds of slots.
const (
	SlotOne  SlotKind = iota // one event of the one type
	SlotAny                  // one event of any of the types
	SlotList                 // collects a stream of the types
)

// Slot is one entry of a step's "accepts".
type Slot struct {
	Kind  SlotKind
	Types []string
	Take  uint64 // for a list: run at the n-th arrival; 0: when no more events can come
}

// Emit is one entry of a step's "emits".
type Emit struct {
	List  bool
	Types []string // exactly one unless List
}

// EventKind is the declared kind of an event type.
type EventKind string

// The kinds of events. The zero value is a plain event.
const (
	KindPlain         EventKind = ""
	KindStart         EventKind = "start"
	KindStop          EventKind = "stop"
	KindInputRequired EventKind = "input_required"
	KindHumanResponse EventKind = "human_response"
)

// EventDecl declares an event type.
type EventDecl struct {
	Kind        EventKind
	Extends     string
	Schema      Raw // JSON Schema 2020-12 as CBOR data; nil: absent
	Description string
}

// RetryPolicy says when and how a failed step is retried. Nil parts have their defaults:
// always, fixed 5 s, 3 attempts.
type RetryPolicy struct {
	When *Condition
	Wait *WaitRule
	Stop *StopRule
}

// Condition selects failures. Exactly one of its parts is set.
type Condition struct {
	Always, Never bool
	Codes         []string
	Message       *string
	Not           *Condition
	Any, All      []Condition
}

// WaitRule determines the delay before the next attempt. Exactly one of its parts is set.
type WaitRule struct {
	Fixed             *time.Duration
	Incrementing      *[3]time.Duration // start, step, max
	Exponential       *ExponentialRule
	Random            *[2]time.Duration // min, max
	ExponentialJitter *JitterRule
	Chain, Sum        []WaitRule
}

// ExponentialRule is multiplier * base^(attempt-1), at most max.
type ExponentialRule struct {
	Multiplier time.Duration
	Base       float64
	Max        time.Duration
}

// JitterRule is initial * base^(attempt-1), at most max, plus up to jitter.
type JitterRule struct {
	Initial time.Duration
	Base    float64
	Max     time.Duration
	Jitter  time.Duration
}

// StopRule says when no further attempt is made. Exactly one of its parts is set.
type StopRule struct {
	Never    bool
	Attempts *uint64
	Delay    *time.Duration
	Any, All []StopRule
}

// Op is an edit operation.
type Op string

// The edit operations of state_edit.
const (
	OpSet       Op = "set"
	OpDelete    Op = "delete"
	OpAppend    Op = "append"
	OpIncrement Op = "increment"
	OpMerge     Op = "merge"
	OpTest      Op = "test"
	OpClear     Op = "clear"
)

// Edit is one edit of a state_edit batch.
type Edit struct {
	Op    Op
	Path  string
	Value Raw // nil for delete and clear
}

// Import names a host call.
type Import string

// The imports of weft:v1. The first three move bytes. All others are host calls with the
// signature (ptr, len) -> status<<32 | len.
const (
	ImportInput       Import = "input"
	ImportResponse    Import = "response"
	ImportOutput      Import = "output"
	ImportStateGet    Import = "state_get"
	ImportStateEdit   Import = "state_edit"
	ImportStateBegin  Import = "state_begin"
	ImportStateCommit Import = "state_commit"
	ImportStateAbort  Import = "state_abort"
	ImportSendEvent   Import = "send_event"
	ImportCollect     Import = "collect_events"
	ImportWait        Import = "wait_for_event"
	ImportWriteStream Import = "write_event_to_stream"
	ImportRunWorkflow Import = "run_workflow"
	ImportResource    Import = "call_resource"
	ImportSleep       Import = "sleep"
	ImportNow         Import = "now"
	ImportRandom      Import = "random"
	ImportLog         Import = "log"
)

// HostCalls lists the imports with the signature (ptr, len) -> i64.
var HostCalls = []Import{
	ImportStateGet, ImportStateEdit, ImportStateBegin, ImportStateCommit, ImportStateAbort,
	ImportSendEvent, ImportCollect, ImportWait, ImportWriteStream, ImportRunWorkflow,
	ImportResource, ImportSleep, ImportNow, ImportRandom, ImportLog,
}

// The requests of the host calls; see abi.cddl. Requests without content
// (state_abort, now) are the empty array.
type (
	// StateGet requests the value at a path.
	StateGet struct {
		Path    string
		Default Raw // nil: absent
	}
	// StateBegin opens an edit of the value at a path.
	StateBegin struct{ Path string }
	// StateCommit replaces the value at the open edit's path.
	StateCommit struct{ Value Raw }
	// SendEvent emits an event, to one step or to all steps that accept it.
	SendEvent struct {
		Event Event
		Step  string // "": all
	}
	// CollectEvents buffers an event until events of all expected types have come.
	CollectEvents struct {
		Event    Event
		Expected []string
		Buffer   string
	}
	// WaitForEvent suspends the invocation until a matching event comes.
	WaitForEvent struct {
		Type         string
		Requirements Raw    // a map; nil: absent
		WaiterEvent  *Event // nil: absent
		WaiterID     string
		Timeout      time.Duration // 0: none
		Broadcast    bool
	}
	// WriteStream publishes an event to the run's stream.
	WriteStream struct{ Event Event }
	// RunWorkflow runs a child workflow.
	RunWorkflow struct {
		Workflow      string
		Event         Event
		ID            string
		Session       *ChildSession // nil: a session of its own
		IncludeStream bool
	}
	// ChildSession identifies the session that a child run uses.
	ChildSession struct {
		Shared bool
		ID     string
	}
	// CallResource calls a granted resource.
	CallResource struct {
		Resource string
		Method   string
		Payload  Raw
	}
	// Sleep waits on a durable timer.
	Sleep struct{ Duration time.Duration }
	// Random requests n deterministic random bytes, n <= 4096.
	Random struct{ N uint64 }
	// Log writes a log record.
	Log struct {
		Level   int64 // -4, 0, 4, 8
		Message string
		Attrs   Raw // a map; nil: absent
	}
)

// Status is the status of a host call: 0, or the number of an error code.
type Status uint32

// The statuses, in the order of abi.cddl.
const (
	StatusOK Status = iota
	StatusInvalidMessage
	StatusNotFound
	StatusConflict
	StatusFailedPrecondition
	StatusPermissionDenied
	StatusLimitExceeded
	StatusTimeout
	StatusSchemaViolation
	StatusUnavailable
	StatusInternal
)

// Base event types: they need no declaration.
const (
	TypeEvent         = "Event"
	TypeStart         = "StartEvent"
	TypeStop          = "StopEvent"
	TypeInputRequired = "InputRequiredEvent"
	TypeHumanResponse = "HumanResponseEvent"
)

// BaseKinds maps each base event type to its kind.
var BaseKinds = map[string]EventKind{
	TypeEvent:         KindPlain,
	TypeStart:         KindStart,
	TypeStop:          KindStop,
	TypeInputRequired: KindInputRequired,
	TypeHumanResponse: KindHumanResponse,
}

// Runtime event types: only the host makes them, never guests or clients.
const (
	TypeStepStateChanged  = "StepStateChanged"
	TypeUnhandled         = "UnhandledEvent"
	TypeIdle              = "WorkflowIdleEvent"
	TypeWorkflowFailed    = "WorkflowFailedEvent"
	TypeWorkflowTimedOut  = "WorkflowTimedOutEvent"
	TypeWorkflowCancelled = "WorkflowCancelledEvent"
	TypeStepFailed        = "StepFailedEvent"
)
