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
	Path        string // the names from the root, joined by "/"; "" for the root
	Description string

	Function string // of a step: PLUGIN.FUNCTION
	Workflow string // of a step: the workflow that it runs instead of a function
	Retries  int
	Backoff  time.Duration // pause before the first retry, doubled for each further retry; 0: none
	OnError  OnError
	Timeout  time.Duration // 0: none

	Steps []*Node // of a router: its choices
	Else  []*Node // of a condition

	MaxConcurrency int // of a parallel node; 0: no limit
	Multiple       bool
	MaxIterations  int
	Forward        bool
	Test           *Test // of a condition, a router or a loop; nil: none
	Review         *Review
}

// OnError says what follows when a step has failed finally.
type OnError string

// The values of OnError.
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

// Review says what people are asked before, during or after a node.
type Review struct {
	Confirm   *Question // before the node
	Input     *Question // before the node: the answer becomes its input
	Output    *Question // after the node
	Iteration *Question // after each iteration of a loop except the last
	OnReject  OnReject
	Retries   int // how often the answer "retry" may repeat the node
	Timeout   time.Duration
	OnTimeout OnTimeout
}

// Question is what people are shown.
type Question struct {
	Message string
	Schema  abi.Raw // of the input; nil: any
	schema  *state.Schema
}

// OnReject says what follows a rejection.
type OnReject string

// The values of OnReject.
const (
	RejectSkip   OnReject = "skip"
	RejectCancel OnReject = "cancel"
	RejectElse   OnReject = "else"
	RejectRetry  OnReject = "retry"
)

// OnTimeout says what follows when nobody answers in time.
type OnTimeout string

// The values of OnTimeout.
const (
	TimeoutCancel  OnTimeout = "cancel"
	TimeoutSkip    OnTimeout = "skip"
	TimeoutApprove OnTimeout = "approve"
)

// Document is a checked flow. It is immutable, and any goroutine may use it.
type Document struct {
	Description  string
	SessionState map[string]any // nil: none
	Input        map[string]any // the JSON Schema of the flow's input; nil: any value, or none
	Root         *Node

	raw    abi.Raw
	byPath map[string]*Node
	order  []*Node // depth first
}

// Raw returns the document in canonical form. The caller must not modify it.
func (d *Document) Raw() abi.Raw { return d.raw }

// Nodes returns all nodes except the root, depth first. The caller must not modify them.
func (d *Document) Nodes() []*Node { return d.order }

// Reference is a place in a document that names a function or a workflow.
type Reference struct{ Node, Name string }

// Functions returns the places that name a function, in the order of the document.
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

// Workflows returns the places that name a workflow, in the order of the document.
func (d *Document) Workflows() []Reference {
	var out []Reference
	for _, n := range d.order {
		if n.Workflow != "" {
			out = append(out, Reference{n.Path, n.Workflow})
		}
	}
	return out
}

// asks reports whether the flow asks people anything.
func (d *Document) asks() bool {
	for _, n := range d.order {
		if n.Review != nil || n.OnError == OnErrorPause {
			return true
		}
	}
	return false
}

// branches reports whether the driver calls itself, for branches or for iterations.
func (d *Document) branches() bool {
	for _, n := range d.order {
		if n.Kind == KindParallel || n.Kind == KindLoop {
			return true
		}
	}
	return false
}
