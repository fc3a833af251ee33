// Package traced has the data for the spans of runs, attempts, calls and requests, and
// carries the origin of work in a context.
//
// It does not depend on how spans are made or sent.
package traced

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Run has the data of a run for the spans of its parts.
type Run struct {
	Tenant    string
	HandlerID string
	RunID     string
	Workflow  string
	Trace     *host.Trace // nil: none
}

// Of returns the data of a run for the spans of its parts.
func Of(r *host.Run) Run {
	return Run{Tenant: r.Tenant, HandlerID: r.HandlerID, RunID: r.RunID, Workflow: r.Workflow, Trace: r.Trace}
}

// Attempt is an attempt of a step. The fields about its end are set when it has ended.
type Attempt struct {
	Run        Run
	Step       string
	Invocation uint64
	Attempt    uint64
	// Started and Ended are Unix nanoseconds: from when it was first open, over waits and
	// restarts of the server, to its end.
	Started, Ended int64
	Replayed       bool   // its guest ran more than once, from its record
	Fuel           uint64 // of its last run
	Code           string // of its error; "": it succeeded
	Abandoned      bool   // ended by its run's end or its timeout
}

// Call is a call of a resource that an attempt makes.
type Call struct {
	Attempt        Attempt // the attempt that made it, which has not ended
	Resource       string
	Method         string
	Mode           host.ResourceMode
	Key            string // the call's own, stable
	Started, Ended int64  // Unix nanoseconds
	Code           string // of its error; "": it succeeded
}

// Post is an event that was posted to a run.
type Post struct {
	Run  Run
	Type string
	From *host.Trace // its Parent is the request that brought it; nil: none
	At   int64       // Unix nanoseconds
}

// Request is a request that was answered.
type Request struct {
	Own            *host.Trace // its Parent is the request's own span
	Given          *host.Trace // from the client; nil: none
	Route, Method  string      // "" for an unknown route or method
	Status         int
	Request        string // its id
	Tenant, Run    string // "": unknown
	Started, Ended int64  // Unix nanoseconds
}

// Origin is the request that caused work.
type Origin struct {
	Request string      // its id; "": no request
	Trace   *host.Trace // its Parent is the request's span; nil: the request is not traced
}

type originKey struct{}

// WithOrigin returns a context with the origin of the work that uses it.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin from [WithOrigin], or the zero value.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// FailureCode returns an error's code, "" for no error.
func FailureCode(err *abi.Error) string {
	if err == nil {
		return ""
	}
	return err.Code
}

// Tracer makes the spans of traces. It hears what has ended, with the times that the
// journal has of it: nothing is held while a run waits. The ids of a span follow from its
// run alone, so that they are the same after a restart. Its methods are called from any
// goroutine and under mutexes: they must neither block nor call back, and must neither keep
// nor change their arguments.
type Tracer interface {
	// Span gives the traceparent of a run's own span.
	Span(run *Run) string
	// Child gives the trace of a run that an attempt begins.
	Child(at *Attempt) *host.Trace
	// Outgoing gives the trace that a call of a service carries; nil: none.
	Outgoing(call *Call) *host.Trace

	// Ran: a run has its final record, which perhaps is not durable yet.
	Ran(run *host.Run)
	// Attempted: an attempt of a step has ended.
	Attempted(at *Attempt)
	// Called: a call of a resource was made.
	Called(call *Call)
	// Posted: a run has got an event from outside.
	Posted(post *Post)
}
