// Package traced has what the spans of runs, attempts, calls and requests need of them, and
// carries in a context where work comes from.
//
// It must not know how spans are made or sent.
package traced

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Run is what the spans of a run's parts need of it.
type Run struct {
	Tenant    string
	HandlerID string
	RunID     string
	Workflow  string
	Trace     *host.Trace // nil: none
}

// Of returns what the spans of a run's parts need of it.
func Of(r *host.Run) Run {
	return Run{Tenant: r.Tenant, HandlerID: r.HandlerID, RunID: r.RunID, Workflow: r.Workflow, Trace: r.Trace}
}

// Attempt is an attempt of a step. What ended it is not known before it has.
type Attempt struct {
	Run        Run
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

// Call is a call of a resource that an attempt makes.
type Call struct {
	Attempt        Attempt // which it is of; its end is not known
	Resource       string
	Method         string
	Mode           host.ResourceMode
	Key            string // the call's own, stable
	Started, Ended int64  // Unix nanoseconds
	Code           string // with which it failed; "": it did not
}

// Post is an event that was posted to a run.
type Post struct {
	Run  Run
	Type string
	From *host.Trace // whose Parent is the request that brought it; nil: none
	At   int64       // Unix nanoseconds
}

// Request is a request that was answered.
type Request struct {
	Own            *host.Trace // whose Parent is the request's own span
	Given          *host.Trace // what the client has given; nil: nothing
	Route, Method  string      // "" for what the server does not have
	Status         int
	Request        string // its id
	Tenant, Run    string // "": not known
	Started, Ended int64  // Unix nanoseconds
}

// Origin is where work comes from: a request.
type Origin struct {
	Request string      // its id; "": no request
	Trace   *host.Trace // whose Parent is the request's span; nil: it is not traced
}

type originKey struct{}

// WithOrigin notes in a context where what is done under it comes from.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns what [WithOrigin] has noted, else the zero value.
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
