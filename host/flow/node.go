package flow

import (
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/state"
)

// Kind is what a node does.
type Kind string

// The kinds of nodes.
const (
	KindStep      Kind = "step"
	KindSteps     Kind = "steps"
	KindParallel  Kind = "parallel"
	KindCondition Kind = "condition"
	KindRouter    Kind = "router"
	KindLoop      Kind = "loop"
)

// Node is one node of a flow.
type Node struct {
	Kind        Kind
	Name        string
	Path        string // the names from the root on, joined by "/"; "" for the root
	Description string

	Function string // of a step: PLUGIN.FUNCTION
	Workflow string // of a step: what it runs instead
	Retries  int
	Backoff  time.Duration // before the first retry, twice as long before each other; 0: at once
	OnError  OnError
	Timeout  time.Duration // 0: none

	Steps []*Node // of a router: its choices
	Else  []*Node // of a condition

	MaxConcurrency int // of a parallel node; 0: all at once
	Multiple       bool
	MaxIterations  int
	Forward        bool
	Test           *Test // of a condition, a router or a loop; nil: none
	Review         *Review
}

// OnError says what follows when a step has failed for good.
type OnError string

// What may follow.
const (
	OnErrorFail  OnError = "fail"
	OnErrorSkip  OnError = "skip"
	OnErrorPause OnError = "pause"
)

// Test is how a condition, a router or a loop decides: exactly one part is set.
type Test struct {
	Function string
	Fixed    *bool
	expr     *expression
}

// Review says what people are asked before, within or after a node.
type Review struct {
	Confirm   *Question // before it
	Input     *Question // before it: what they say becomes its input
	Output    *Question // after it
	Iteration *Question // after each iteration of a loop, but the last
	OnReject  OnReject
	Retries   int // how often "retry" does the node again
	Timeout   time.Duration
	OnTimeout OnTimeout
}

// Question is what people are shown.
type Question struct {
	Message string
	Schema  abi.Raw // of the input; nil: any
	schema  *state.Schema
}

// OnReject says what follows a "no".
type OnReject string

// What may follow a "no".
const (
	RejectSkip   OnReject = "skip"
	RejectCancel OnReject = "cancel"
	RejectElse   OnReject = "else"
	RejectRetry  OnReject = "retry"
)

// OnTimeout says what follows when nobody answers in time.
type OnTimeout string

// What may follow silence.
const (
	TimeoutCancel  OnTimeout = "cancel"
	TimeoutSkip    OnTimeout = "skip"
	TimeoutApprove OnTimeout = "approve"
)

// Document is a flow that has been checked. It is immutable and may be used by any
// number of goroutines.
type Document struct {
	Description  string
	SessionState map[string]any // nil: none
	Input        map[string]any // the JSON Schema of what it works on; nil: any value, or none
	Root         *Node

	raw    abi.Raw
	byPath map[string]*Node
	order  []*Node // depth first
}

// Raw is the document in canonical form. It must not be changed.
func (d *Document) Raw() abi.Raw { return d.raw }

// Nodes are all nodes but the root, depth first. They must not be changed.
func (d *Document) Nodes() []*Node { return d.order }

// Reference is a place in a document that names a function or a workflow.
type Reference struct{ Node, Name string }

// Functions are the places that name a function, in the order of the document.
func (d *Document) Functions() []Reference {
	var out []Reference
	for _, n := range d.order {
		if n.Function != "" {
			out = append(out, Reference{n.Path, n.Function})
		}
		if n.Test != nil && n.Test.Function != "" {
			out = append(out, Reference{n.Path, n.Test.Function})
		}
	}
	return out
}

// Workflows are the places that name a workflow, in the order of the document.
func (d *Document) Workflows() []Reference {
	var out []Reference
	for _, n := range d.order {
		if n.Workflow != "" {
			out = append(out, Reference{n.Path, n.Workflow})
		}
	}
	return out
}

// asks reports whether people are asked anything.
func (d *Document) asks() bool {
	for _, n := range d.order {
		if n.Review != nil || n.OnError == OnErrorPause {
			return true
		}
	}
	return false
}

// branches reports whether the driver calls itself: for branches, or for iterations.
func (d *Document) branches() bool {
	for _, n := range d.order {
		if n.Kind == KindParallel || n.Kind == KindLoop {
			return true
		}
	}
	return false
}
