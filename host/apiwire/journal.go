package apiwire

import "github.com/weftrun/weft/host"

// Journal is a page of a run's timeline.
type Journal struct {
	_          struct{} `doc:"A part of a listing."`
	Entries    []Entry  `json:"entries"`
	NextCursor OrNull   `json:"next_cursor" doc:"Where the next page begins; null on the last." fill:"-"`
}

// Entry is an entry of a run's timeline; see [host.TimelineEntry].
type Entry struct {
	_          struct{}    `doc:"One entry of a run's journal."`
	Seq        uint64      `json:"seq" api:"min=1" doc:"Its position."`
	At         NanoTime    `json:"time,omitempty" doc:"With nanoseconds."`
	RunID      string      `json:"run_id,omitempty"`
	Kind       string      `json:"kind"`
	Forkable   bool        `json:"forkable" doc:"A fork may begin just after this entry."`
	Step       string      `json:"step,omitempty"`
	Invocation uint64      `json:"invocation,omitempty" api:"min=1"`
	Attempt    uint64      `json:"attempt,omitempty" api:"min=1"`
	Call       uint64      `json:"call,omitempty" api:"min=1" doc:"The number of the host call."`
	Events     []Event     `json:"events,omitempty" doc:"The events that came or that the step sent, wrote, asked, collected or returned."`
	List       bool        `json:"list,omitempty" doc:"The events were returned as a list."`
	To         string      `json:"to,omitempty" doc:"The step that gets the events."`
	Edits      []Edit      `json:"edits,omitempty" doc:"Of the state."`
	Fuel       uint64      `json:"fuel,omitempty" doc:"What the attempt burnt."`
	Duration   Seconds     `json:"duration_seconds,omitempty" doc:"From when the attempt began, waits included."`
	Err        *Failure    `json:"error,omitempty"`
	RetryAt    NanoTime    `json:"retry_at,omitempty"`
	Status     host.Status `json:"status,omitempty" doc:"With which the run ended."`
	Block      *Blocked    `json:"blocked,omitempty"`
	Timer      string      `json:"timer,omitempty" doc:"That fired."`
	Until      NanoTime    `json:"until,omitempty"`
	Wait       *Wait       `json:"wait,omitempty"`
	Child      *Child      `json:"child,omitempty"`
	Called     *Called     `json:"called,omitempty"`
	Began      []Attempt   `json:"began,omitempty" doc:"Attempts that got a worker."`
	Logs       []Log       `json:"logs,omitempty"`
}

// Event is an event of a journal's entry.
type Event struct {
	Type string `json:"type,omitempty"`
	Body Value  `json:"value,omitempty"`
}

// Edit is a change of a state. Old is nil if the path had no value, New if the value was
// deleted.
type Edit struct {
	Path string `json:"path"`
	Old  Value  `json:"old,omitempty"`
	New  Value  `json:"new,omitempty"`
}

// Failure is why an attempt failed.
type Failure struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Wait is a wait for an event.
type Wait struct {
	ID           string `json:"waiter_id,omitempty"`
	Type         string `json:"type,omitempty"`
	Requirements Value  `json:"requirements,omitempty"`
	Broadcast    bool   `json:"broadcast,omitempty"`
	Answered     bool   `json:"answered,omitempty"`
}

// Child is a run that a step starts.
type Child struct {
	Workflow  string `json:"workflow_name,omitempty"`
	RunID     string `json:"run_id,omitempty"`
	HandlerID string `json:"handler_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

// Called is a call of a resource, or the answer to a call. In an answer, Payload is nil.
// In a call, and in an answer that is an error, Answer is nil.
type Called struct {
	Resource string `json:"resource,omitempty"`
	Method   string `json:"method,omitempty"`
	Payload  Value  `json:"payload,omitempty"`
	Answer   Value  `json:"answer,omitempty"`
}

// Attempt is an attempt that began.
type Attempt struct {
	Step       string `json:"step,omitempty"`
	Invocation uint64 `json:"invocation,omitempty" api:"min=1"`
	Attempt    uint64 `json:"attempt,omitempty" api:"min=1"`
}

// Log is a line that a step has logged. Level is -4 for debug, 0 for info, 4 for warning,
// 8 for error; Attrs is an object, or nil.
type Log struct {
	At      NanoTime `json:"time,omitempty"`
	Level   int64    `json:"level" api:"signed"`
	Message string   `json:"message"`
	Attrs   Value    `json:"attrs,omitempty"`
}
