// Package host is the vocabulary of the server: what a run, a session, a
// tenant and a stream event are, the error codes and their HTTP statuses, the
// Store interface, and the services that the HTTP API calls.
//
// It must not know how any of it is done: it holds no logic beyond small
// methods of its types, and imports only package abi of this project.
package host

import (
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/limit"
)

// DefaultTenant is the one tenant of a server without keys.
const DefaultTenant = limit.DefaultTenant

// Limits bound what one invocation, run, session or request may use: see package
// limit, which has their defaults and settings.
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
	// Version is the digest of the version that the run is on, of a module or of a
	// composition: "" in records that were written before there was one.
	Version string
	Status  Status
	// Error is the message for people of a failed run, ErrorCode its code.
	Error     string
	ErrorCode string
	// ErrorStep is the step that failed, ErrorAttempt the number of its attempts; of a
	// timeout of the run the steps that were at work, and no attempt. "" and 0: no step
	// failed, or the record is older than these fields.
	ErrorStep    string
	ErrorAttempt uint64
	// Result is the stop event of a completed run, else nil.
	Result *StreamEvent
	// Times are nanoseconds since the Unix epoch; Completed is 0 while running.
	Started   int64
	Updated   int64
	Completed int64
	Paused    bool
	// Blocked says why a running run cannot go on without help, else nil.
	Blocked *Blocked
	// WaitingFor is what a running run waits for, the longest first, at most
	// 20 entries: what its steps wait for and, while it has nothing to
	// do, the answers of people that its steps accept.
	WaitingFor []Waiting
	// Kept are events that no step has waited for yet, by type, the oldest of a type
	// first, at most 20.
	Kept []Kept
	// Steps and Fuel count finished invocations and what they burnt.
	Steps uint64
	Fuel  uint64
	// Trace is where the run stands in a trace that others began; nil: it has none,
	// or the record was read from a store, which does not keep it. It is not modified.
	Trace *Trace
}

// Waiting is what a run waits for: an event from outside, the run of a child, the
// answer of a resource, a time, or something else that has to come.
type Waiting struct {
	Step     string `cbor:"1,keyasint"`           // that waits for it, or accepts it
	Type     string `cbor:"2,keyasint"`           // of the event
	WaiterID string `cbor:"3,keyasint,omitempty"` // "": the step gave the wait no name, or accepts the event
	Since    int64  `cbor:"4,keyasint"`           // Unix nanoseconds
	Child    string `cbor:"5,keyasint,omitempty"` // it waits for the end of this handler's run instead
	Until    int64  `cbor:"6,keyasint,omitempty"` // it sleeps instead, to this time in Unix nanoseconds
	// Reason is [WaitsForRetry] if Until is when the step is tried again, and
	// [WaitsForTurn] if it is no step that waits; Step and Type are empty then.
	Reason   string `cbor:"7,keyasint,omitempty"`
	Resource string `cbor:"8,keyasint,omitempty"` // it waits for the answer of this resource instead
	// Requirements is the JSON object of the fields that the event has to have; "": it
	// may have any, or the object is longer than 1 KiB.
	Requirements string `cbor:"9,keyasint,omitempty"`
}

// Kept is an event that a run keeps for a later wait.
type Kept struct {
	Type string `cbor:"1,keyasint"`
	Step string `cbor:"2,keyasint,omitempty"` // the only one that it is meant for; "": any
}

// WaitsForTurn is the Reason of a run that has not begun, because other runs of its
// session are before it.
const WaitsForTurn = "session"

// WaitsForRetry is the Reason of a step that has failed and is tried again later.
const WaitsForRetry = "retry"

// Blocked is the reason for which a run stands still until somebody helps.
type Blocked struct {
	Code    string `cbor:"1,keyasint"` // replay_mismatch, host_crash
	Message string `cbor:"2,keyasint"`
}

// StreamEvent is one event of a handler's stream, as it leaves the server.
type StreamEvent struct {
	Seq      uint64   `cbor:"1,keyasint"` // over all runs of the handler, hidden events counted
	RunID    string   `cbor:"2,keyasint"`
	Type     string   `cbor:"3,keyasint"`
	Types    []string `cbor:"4,keyasint,omitempty"` // declared ancestors, nearest first
	Base     bool     `cbor:"5,keyasint,omitempty"` // a type of the runtime, not the workflow's own
	Internal bool     `cbor:"6,keyasint,omitempty"` // shown on request only
	Terminal bool     `cbor:"7,keyasint,omitempty"` // the last of its run
	Body     abi.Raw  `cbor:"8,keyasint"`
	Workflow string   `cbor:"9,keyasint"`
	// Child is the handler of the run that a step waits for from here on, as its
	// child; "" of all other events. Clients do not see it.
	Child string `cbor:"10,keyasint,omitempty"`
}

// QualifiedName is the event's name with its name space: workflows.events.NAME
// for the base and runtime types, WORKFLOW.NAME for a plugin's own.
func (e *StreamEvent) QualifiedName() string {
	if e.Base {
		return "workflows.events." + e.Type
	}
	return e.Workflow + "." + e.Type
}

// PluginInfo describes an uploaded version of a plugin.
type PluginInfo struct {
	Name            string
	Workflow        string // that it makes by itself; "": it is a part
	Version         int    // 1 for a plugin's first upload, counting up
	SHA256          string
	RewrittenSHA256 string
	Size            int
	Manifest        abi.Raw // canonical CBOR of the manifest
	Imports         []string
	Created         time.Time
	Runs            int // running runs that hold the version; with the newest alone: any version
	// HeldBy says on which versions those runs are, of the plugin's own workflow and
	// of composed ones; in the list of a plugin's versions alone.
	HeldBy []VersionRuns
	// ComposedIn names the composed workflows that have its steps, sorted.
	ComposedIn []string
}

// Problem is one fault of an uploaded plugin or a composed workflow.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Step    string `json:"step,omitempty"`
	Event   string `json:"event,omitempty"`
}
