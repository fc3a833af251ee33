package flow

import (
	"time"

	"github.com/weftrun/weft/abi"
)

// driveWorkers is how many invocations of the driver run concurrently in a run.
// Invocations that wait for a function do not count.
const driveWorkers = 16

// Manifest returns the manifest of a flow's module. functions are all steps of the flow's
// plugins, whose failures the flow catches.
func (d *Document) Manifest(workflow string, functions []string) *abi.Manifest {
	one := func(typ string) abi.Slot { return abi.Slot{Kind: abi.SlotOne, Types: []string{typ}} }
	emit := func(typ string) abi.Emit { return abi.Emit{Types: []string{typ}} }
	calls, branches := len(d.Functions()) > 0, d.branches()
	drive := abi.StepDecl{
		Name: StepDrive, Accepts: []abi.Slot{one(TypeStart)}, Emits: []abi.Emit{emit(abi.TypeStop)},
		Workers: driveWorkers, Description: "walks the flow",
	}
	if branches {
		drive.Accepts = []abi.Slot{{Kind: abi.SlotAny, Types: []string{TypeStart, TypeBranch}}}
		drive.Emits = append(drive.Emits, emit(TypeBranch), emit(TypeOutput))
	}
	if calls {
		drive.Emits = append(drive.Emits, emit(TypeInput))
	}
	if calls || branches {
		drive.Waits = append(drive.Waits, TypeOutput)
	}
	m := &abi.Manifest{
		ABI: abi.Version, Workflow: workflow, Description: d.Description, Part: true, Events: d.events(calls, branches),
	}
	if d.asks() {
		drive.Waits = append(drive.Waits, abi.TypeHumanResponse)
		var none time.Duration
		m.Timeout = &none // people need time to answer
	}
	m.Steps = []abi.StepDecl{drive}
	if calls && len(functions) > 0 {
		m.Steps = append(m.Steps, abi.StepDecl{
			Name: StepCatch, Accepts: []abi.Slot{one(abi.TypeStepFailed)}, Emits: []abi.Emit{emit(TypeOutput)},
			Workers: driveWorkers, Catches: functions, Description: "answers in the place of a function that failed",
		})
	}
	return m
}

// startSchema returns the schema of the start event, which a flow with an input schema
// needs.
func (d *Document) startSchema() map[string]any {
	properties := map[string]any{
		"input":           map[string]any{"description": "what the flow works on: any value"},
		"session_state":   map[string]any{"type": "object", "description": "merged into the session's state before anything else"},
		"overwrite":       map[string]any{"type": "boolean", "description": "session_state takes the place of the session's state"},
		"additional_data": map[string]any{"type": "object", "description": "what all functions see beside the input"},
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if d.Input == nil {
		return schema
	}
	properties["input"], schema["required"] = d.Input, []any{"input"}
	return schema
}

// events declares the event types of a flow.
func (d *Document) events(calls, branches bool) map[string]abi.EventDecl {
	schema, err := abi.EncodeValue(d.startSchema())
	if err != nil {
		panic(err) // all parts are constants or were encoded before
	}
	out := map[string]abi.EventDecl{
		TypeStart:     {Kind: abi.KindStart, Schema: schema},
		TypeStarted:   {Description: "a node begins"},
		TypeCompleted: {Description: "a node has succeeded"},
		TypeFailed:    {Description: "a node has failed"},
		TypeIteration: {Description: "an iteration of a loop begins"},
		TypeIterated:  {Description: "an iteration of a loop has ended"},
	}
	if calls {
		out[TypeInput] = abi.EventDecl{Description: "calls a function"}
	}
	if calls || branches {
		out[TypeOutput] = abi.EventDecl{Description: "what a function, or a branch, came to"}
	}
	if branches {
		out[TypeBranch] = abi.EventDecl{Description: "begins a branch of a parallel node, or further iterations of a loop"}
	}
	return out
}
