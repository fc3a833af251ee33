// Package host has the types of the server: runs, sessions, tenants and stream events,
// the error codes and their HTTP statuses, the Store interface, and the services that the
// HTTP API calls.
//
// It contains no logic beyond small methods of its types, and depends only on package abi
// and packages of constants and plain types.
package host

import (
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/limit"
)

// DefaultTenant is the only tenant of a server without keys.
const DefaultTenant = limit.DefaultTenant

// Limits limit what an invocation, run, session or request may use. Package limit has
// their defaults and settings.
type Limits = limit.Limits

// Status is the state of a run as clients see it.
type Status string

// The statuses of a run. All but StatusRunning are final.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Final reports whether a run with this status has ended.
func (s Status) Final() bool { return s != StatusRunning }

// SessionKey names a session.
type SessionKey struct {
	Tenant  string
	Session string
}

// Run is the durable record of one execution of a workflow. A handler id
// points to its latest run.
type Run struct {
	Tenant    string
	HandlerID string
	RunID     string
	SessionID string
	Workflow  string
	// Version is the digest of the run's version, of a module or of a composition: "" in
	// records from before versions existed.
	Version string
	Status  Status
	// Error is the message for people of a failed run, ErrorCode its code.
	Error     string
	ErrorCode string
	// ErrorStep is the step that failed, ErrorAttempt the number of its attempts. If the
	// run timed out, ErrorStep has the steps that were running, and ErrorAttempt is 0. ""
	// and 0: no step failed, or the record is older than these fields.
	ErrorStep    string
	ErrorAttempt uint64
	// Result is the stop event of a completed run, otherwise nil.
	Result *StreamEvent
	// Times are nanoseconds since the Unix epoch; Completed is 0 while running.
	Started   int64
	Updated   int64
	Completed int64
	Paused    bool
	// Blocked says why a running run cannot continue without help, otherwise nil.
	Blocked *Blocked
	// WaitingFor lists what a running run waits for, longest wait first, at most
	// 20 items: the waits of its steps and, while it has nothing to do, the
	// answers of people that its steps accept.
	WaitingFor []Waiting
	// Kept are events that no step has waited for yet, by type, oldest first, at most
	// 20 of them.
	Kept []Kept
	// ParentRun is the run id of the run that began this one as its child, and ParentStep
	// the step that did so; "": no run, or the record is older than these fields.
	ParentRun  string
	ParentStep string
	// ForkedFrom is the run id of the run of whose past this one is a fork, ForkedAt the
	// position in the session's journal from which it continues. RetriedFrom is the run
	// id of the failed run that this one continues. "": none, or the record is older.
	ForkedFrom  string
	ForkedAt    uint64
	RetriedFrom string
	// Steps counts finished invocations, and Fuel the fuel that they burnt.
	Steps uint64
	Fuel  uint64
	// Trace is the run's place in a trace that a client began. It is nil if there is no
	// trace, or if the record was read from a store, which does not keep it. It is not
	// modified.
	Trace *Trace
}

// Waiting is something that a run waits for: an event from outside, a child run, the
// answer of a resource, a time, or another condition.
type Waiting struct {
	Step     string `cbor:"1,keyasint"`           // the step that waits for it, or accepts it
	Type     string `cbor:"2,keyasint"`           // of the event
	WaiterID string `cbor:"3,keyasint,omitempty"` // "": the step did not name the wait, or accepts the event
	Since    int64  `cbor:"4,keyasint"`           // Unix nanoseconds
	Child    string `cbor:"5,keyasint,omitempty"` // waits for the end of this handler's run instead
	Until    int64  `cbor:"6,keyasint,omitempty"` // sleeps until this time, in Unix nanoseconds, instead
	// Reason is [WaitsForRetry] if the step is retried at Until, and [WaitsForTurn] if
	// the run itself waits; then Step and Type are empty.
	Reason   string `cbor:"7,keyasint,omitempty"`
	Resource string `cbor:"8,keyasint,omitempty"` // waits for the answer of this resource instead
	// Requirements is the JSON object of the fields that the event must have; "": the
	// event may have any fields, or the object is longer than 1 KiB.
	Requirements string `cbor:"9,keyasint,omitempty"`
}

// Kept is an event that a run keeps for a later wait.
type Kept struct {
	Type string `cbor:"1,keyasint"`
	Step string `cbor:"2,keyasint,omitempty"` // the only step that may receive it; "": any
}

// WaitsForTurn is the Reason of a run that has not begun, because it is queued after
// other runs of its session.
const WaitsForTurn = "session"

// WaitsForRetry is the Reason of a step that has failed and will be retried.
const WaitsForRetry = "retry"

// Blocked says why a run cannot continue without help.
type Blocked struct {
	Code    string `cbor:"1,keyasint"` // replay_mismatch, host_crash
	Message string `cbor:"2,keyasint"`
}

// StreamEvent is one event of a handler's stream, as clients receive it.
type StreamEvent struct {
	Seq      uint64   `cbor:"1,keyasint"` // counts the events of all runs of the handler, including hidden events
	RunID    string   `cbor:"2,keyasint"`
	Type     string   `cbor:"3,keyasint"`
	Types    []string `cbor:"4,keyasint,omitempty"` // declared ancestors, nearest first
	Base     bool     `cbor:"5,keyasint,omitempty"` // a type of the runtime, not of the workflow
	Internal bool     `cbor:"6,keyasint,omitempty"` // shown on request only
	Terminal bool     `cbor:"7,keyasint,omitempty"` // the last of its run
	Body     abi.Raw  `cbor:"8,keyasint"`
	Workflow string   `cbor:"9,keyasint"`
	// Child is the handler of the child run for which a step waits from now on; "" in all
	// other events. Clients do not see it.
	Child string `cbor:"10,keyasint,omitempty"`
}

// QualifiedName returns the event's name with its name space: workflows.events.NAME for
// base and runtime types, WORKFLOW.NAME for a plugin's own types.
func (e *StreamEvent) QualifiedName() string {
	if e.Base {
		return "workflows.events." + e.Type
	}
	return e.Workflow + "." + e.Type
}

// PluginInfo describes an uploaded version of a plugin.
type PluginInfo struct {
	Name            string
	Workflow        string // the workflow that it defines; "": it is a part
	Version         int    // 1 for a plugin's first upload, increasing
	SHA256          string
	RewrittenSHA256 string
	Size            int
	Manifest        abi.Raw // canonical CBOR of the manifest
	Imports         []string
	Created         time.Time
	Runs            int // running runs that use the version; for the newest version without others: any version
	// HeldBy says which versions these runs use, by workflow. It is set only in a list of
	// a plugin's versions.
	HeldBy []VersionRuns
	// ComposedIn names the composed workflows that have the plugin's steps, sorted.
	ComposedIn []string
}

// Problem is one fault of an uploaded plugin or a composed workflow.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Step    string `json:"step,omitempty"`
	Event   string `json:"event,omitempty"`
}
