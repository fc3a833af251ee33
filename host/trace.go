package host

import (
	"context"

	"github.com/weftrun/weft/abi"
)

// Trace is where something stands in a distributed trace, in the words of W3C Trace
// Context. The text of it comes from clients: it has been checked when it is here.
type Trace struct {
	// Parent is the traceparent of what began this: a request, or the attempt of a
	// step.
	Parent string `cbor:"1,keyasint"`
	State  string `cbor:"2,keyasint,omitempty"` // the tracestate that came with it
	// Link is the traceparent of what this goes on from, in the same trace or
	// another: of a fork or a retry the run that was; "": nothing.
	Link string `cbor:"3,keyasint,omitempty"`
}

// TracedRun is what the spans of a run's parts need of it.
type TracedRun struct {
	Tenant    string
	HandlerID string
	RunID     string
	Workflow  string
	Trace     *Trace // nil: none
}

// Traced gives what the spans of a run's parts need of it.
func (r *Run) Traced() TracedRun {
	return TracedRun{Tenant: r.Tenant, HandlerID: r.HandlerID, RunID: r.RunID, Workflow: r.Workflow, Trace: r.Trace}
}

// TracedAttempt is an attempt of a step. What ended it is not known before it has.
type TracedAttempt struct {
	Run        TracedRun
	Step       string
	Invocation uint64
	Attempt    uint64
	// Started and Ended are Unix nanoseconds: from when it was first open, over
	// waits and restarts of the server, to its end.
	Started, Ended int64
	Replayed       bool   // its guest ran more than once, from its record
	Fuel           uint64 // of its last run
	Code           string // with which it failed; "": it did not
	Abandoned      bool   // it was cut off: by its run's end or its timeout
}

// TracedCall is a call of a resource that an attempt makes.
type TracedCall struct {
	Attempt        TracedAttempt // which it is of; its end is not known
	Resource       string
	Method         string
	Mode           ResourceMode
	Key            string // the call's own, stable
	Started, Ended int64  // Unix nanoseconds
	Code           string // with which it failed; "": it did not
}

// TracedPost is an event that was posted to a run.
type TracedPost struct {
	Run  TracedRun
	Type string
	From *Trace // whose Parent is the request that brought it; nil: none
	At   int64  // Unix nanoseconds
}

// TracedRequest is a request that was answered.
type TracedRequest struct {
	Own            *Trace // whose Parent is the request's own span
	Given          *Trace // what the client has given; nil: nothing
	Route, Method  string // "" for what the server does not have
	Status         int
	Request        string // its id
	Tenant, Run    string // "": not known
	Started, Ended int64  // Unix nanoseconds
}

// Origin is where work comes from: a request.
type Origin struct {
	Request string // its id; "": no request
	Trace   *Trace // whose Parent is the request's span; nil: it is not traced
}

type originKey struct{}

// WithOrigin notes in a context where what is done under it comes from.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf gives what [WithOrigin] has noted, else the zero value.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// FailureCode is an error's code, "" for none.
func FailureCode(err *abi.Error) string {
	if err == nil {
		return ""
	}
	return err.Code
}
