// Package flow gives a meaning to flows: declarative trees over the functions of
// plugins. It reads and checks a flow's document, says which steps and events of
// the engine it comes to, and interprets it: as the guest of an invocation that
// makes its host calls like any other, and is replayed like any other.
//
// It must not know how a step is scheduled, journaled or run, nor read a clock or
// draw a number: what it does depends on the document, the invocation's input and
// the answers to its calls alone.
//
// # The module of a flow
//
// A flow is stored as a module whose bytes are [Magic] and the document in
// canonical form ([Seal]). Its manifest ([Document.Manifest]) declares two steps
// that this package serves: [StepDrive] walks the tree, and [StepCatch] turns the
// failure of a function into an answer. A function is called by an event of
// [TypeInput] to its step alone, and answers by one of [TypeOutput]; both carry the
// field [FieldCall], which the engine hands on from the one to the other. The
// branches of a parallel node, and the later iterations of a long loop, are
// invocations of [StepDrive] of their own, called in the same way by [TypeBranch].
package flow

import "github.com/weftrun/weft/host"

// Magic begins the bytes of a flow's module. Its last byte before the end is the
// version of the format.
const Magic = "\x00weft-flow\x01\n"

// ImageHash stands in the place of a pristine image's hash: by it a flow's module
// is told from those that a sandbox runs.
const ImageHash = "flow-1"

// The steps of a flow's module. Those of plugins have a dot in their name.
const (
	StepDrive = "flow"
	StepCatch = "flow_failed"
)

// The events of a flow.
const (
	TypeStart     = "FlowStartEvent"
	TypeInput     = "StepInput"
	TypeOutput    = "StepOutput"
	TypeBranch    = "FlowBranch"
	TypeStarted   = "StepStarted"
	TypeCompleted = "StepCompleted"
	TypeFailed    = "StepFailed"
	TypeIteration = "LoopIterationStarted"
	TypeIterated  = "LoopIterationCompleted"
)

// FieldCall is the field by which a call and its answer are told from others.
const FieldCall = "call"

// Bounds of a flow's document.
const (
	MaxBytes      = host.MaxFlowBytes // of its canonical form
	MaxNodes      = 1000
	MaxDepth      = 12     // of nodes within nodes
	MaxExpression = 4096   // bytes of one CEL expression
	MaxIterations = 10_000 // of a loop
	MaxRetries    = 100    // of a step
	MaxNesting    = 10     // of workflows within workflows
	maxProblems   = 1000
)

// MaxUnits bounds the work of one evaluation of a CEL expression, in units of fuel:
// about 0.2 s of a core, or a million operations.
const MaxUnits = 500_000_000
