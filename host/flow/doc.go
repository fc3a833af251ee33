// Package flow implements flows: declarative trees over the functions of plugins. It
// reads and checks a flow's document, and derives the steps and events that the flow
// consists of. It interprets the flow as the guest of an invocation, which makes host
// calls and is replayed like any other guest.
//
// The package must not depend on how a step is scheduled, journaled or run, and must not
// read a clock or draw random numbers. Its behavior depends only on the document, the
// invocation's input and the answers to its calls.
//
// # The module of a flow
//
// A flow is stored as a module whose bytes are [Magic] and the document in canonical form
// ([Seal]). Its manifest ([Document.Manifest]) declares two steps that this package
// serves: [StepDrive] walks the tree, and [StepCatch] turns the failure of a function
// into an answer. An event of [TypeInput], sent to the function's step alone, calls a
// function; an event of [TypeOutput] is the answer. Both have the field [FieldCall],
// which the engine copies from the call to the answer. The branches of a parallel node,
// and the later iterations of a long loop, are separate invocations of [StepDrive], which
// [TypeBranch] calls in the same way.
package flow

import (
	"github.com/weftrun/weft/host/limit"
)

// Magic begins the bytes of a flow's module. The byte before its final newline is the
// version of the format.
const Magic = "\x00weft-flow\x01\n"

// ImageHash replaces the hash of a pristine image. It distinguishes a flow's module from
// modules that a sandbox runs.
const ImageHash = "flow-1"

// The steps of a flow's module. Names of plugins' steps contain a dot.
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

// FieldCall is the field that matches an answer with its call.
const FieldCall = "call"

// Bounds of a flow's document.
const (
	MaxBytes      = limit.MaxFlowBytes // of its canonical form
	MaxNodes      = 1000
	MaxDepth      = 12     // depth of nested nodes
	MaxExpression = 4096   // bytes of one CEL expression
	MaxIterations = 10_000 // of a loop
	MaxRetries    = 100    // of a step
	MaxNesting    = 10     // depth of nested workflows
	maxProblems   = 1000
)

// MaxUnits bounds the work of one evaluation of a CEL expression, in units of fuel:
// about 0.2 s of a core, or a million operations.
const MaxUnits = 500_000_000
