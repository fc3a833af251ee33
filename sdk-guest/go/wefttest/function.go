package wefttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
)

// Event types between flows and functions, and a type that represents events for other
// functions.
const (
	typeStepInput  = "StepInput"
	typeStepOutput = "StepOutput"
	aloneOther     = "wefttest other"
)

// Function calls one function of the plugin (weft.Function) as a flow does, with a
// weft.StepInput, or a map or struct of its fields. The state is the session's.
//
//	run, err := session.Function("add_item", weft.StepInput{Input: "milk"})
//
// The run's Result is the content of the output. The whole output, with stop and error,
// is the last event of Emitted. Other steps of the plugin process the events that the
// function sends them. The function's retry policy applies, and its waits are answered by
// [Run.Send]. The returned error is the function's failure.
//
// A flow with its conditions and nodes cannot run here; 'weft test' runs it on a server.
func (s *Session) Function(name string, in any) (*Run, error) {
	process.Lock()
	defer process.Unlock()
	if s.fault != nil {
		return nil, s.fault
	}
	m, err := manifestOf(s.guest)
	if err != nil {
		return nil, err
	}
	body, err := bodyOf(in)
	if err != nil {
		return nil, fmt.Errorf("the input of function %s: %w", name, err)
	}
	p := s.another()
	if err := p.compileFunction(m, name, body); err != nil {
		return nil, err
	}
	t := p.startAlone()
	if d, set := p.graph.Timeout(); set {
		t.Timeout = int64(d)
	}
	return s.alone(p).begin(t, "")
}

// compileFunction makes a workflow around one function: a step before it that supplies
// its input, all steps of the plugin, and a step after it that ends the run with its
// output.
func (p *program) compileFunction(whole *abi.Manifest, name string, input abi.Raw) error {
	i := slices.IndexFunc(whole.Steps, func(d abi.StepDecl) bool { return d.Name == name && isFunction(&d) })
	if i < 0 {
		return noFunction(whole, name)
	}
	m := *whole
	m.Part = false
	m.Events = aloneEvents(whole)
	before := abi.StepDecl{
		Name: aloneStart, Accepts: []abi.Slot{{Types: []string{aloneStart}}}, Emits: []abi.Emit{{Types: []string{typeStepInput}}},
	}
	steps := slices.Clone(whole.Steps)
	for k := range steps {
		if k != i && isFunction(&steps[k]) { // declared, because steps may follow from it, but never called
			steps[k].Accepts = []abi.Slot{{Types: []string{aloneOther}}}
			m.Events[aloneOther] = abi.EventDecl{}
		}
	}
	if _, others := m.Events[aloneOther]; others {
		before.Emits = append(before.Emits, abi.Emit{Types: []string{aloneOther}})
	}
	m.Steps = append([]abi.StepDecl{before}, steps...)
	m.Steps = append(m.Steps, abi.StepDecl{
		Name: aloneSink, Accepts: []abi.Slot{{Types: []string{typeStepOutput}}}, Emits: []abi.Emit{{Types: []string{abi.TypeStop}}},
	})
	p.played = map[string]play{
		aloneStart: func([]abi.Event) abi.StepOutput {
			return abi.StepOutput{Events: []abi.Event{{Type: typeStepInput, Body: input}}}
		},
		aloneSink: answerOf,
	}
	return p.compile(&m)
}

func isFunction(d *abi.StepDecl) bool {
	return len(d.Accepts) == 1 && slices.Equal(d.Accepts[0].Types, []string{typeStepInput})
}

// noFunction returns an error that lists the existing functions.
func noFunction(m *abi.Manifest, name string) error {
	var names []string
	for i := range m.Steps {
		if isFunction(&m.Steps[i]) {
			names = append(names, m.Steps[i].Name)
		}
	}
	if len(names) == 0 {
		return errors.New("the plugin has no functions that flows can call: define them by weft.Function(\"" + name + "\", ...)")
	}
	return fmt.Errorf("the plugin has no function %s: it has %s", name, strings.Join(names, ", "))
}

// answerOf ends a run with the content of a function's output.
func answerOf(trigger []abi.Event) abi.StepOutput {
	fields, _ := decodeValue(trigger[0].Body).(map[string]any)
	body, err := encodeValue(map[string]any{"result": fields["content"]})
	if err != nil {
		return abi.StepOutput{Err: guestError(err)}
	}
	return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: body}}}
}
