package wefttest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
)

// The types and steps around a step that runs alone. Plugins cannot use such names.
const (
	aloneStart = "wefttest start"
	aloneSink  = "wefttest sink"
)

// Step runs one step alone, on events that the test supplies: values of event types of
// this process, or an [Event]. A step that takes a list receives all of them, a join one
// for each of its fields, and any other step exactly one. The state is the session's.
//
//	run, err := session.Step("charge", OrderEvent{Item: "tea", Price: 3})
//
// The run has Ended when the step has ended. Emitted is what the step returned; Sent,
// Stream, Edits and Log are what it did before. No other step receives its events. Its
// retry policy applies, and its waits are answered by [Run.Send]. A step that catches
// failures takes a [weft.StepFailed].
func (s *Session) Step(name string, events ...any) (*Run, error) {
	process.Lock()
	defer process.Unlock()
	if s.fault != nil {
		return nil, s.fault
	}
	m, err := manifestOf(s.guest)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Steps, func(d abi.StepDecl) bool { return d.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("workflow %s has no step %s", m.Workflow, name)
	}
	given, err := trigger(&m.Steps[i], events)
	if err != nil {
		return nil, fmt.Errorf("step %s: %w", name, err)
	}
	p := s.another()
	if err := p.compileAlone(m, i, given); err != nil {
		return nil, err
	}
	if whole := s.program; whole != nil {
		p.schemas = whole.schemas
	}
	return s.alone(p).begin(p.startAlone(), name)
}

// another makes a further program of the session's guest.
func (s *Session) another() *program {
	return &program{version: fmt.Sprintf("alone %d", len(s.world.programs)), guest: s.guest}
}

// alone returns the session with a different program.
func (s *Session) alone(p *program) *Session {
	s.world.programs[p.version] = p
	alone := *s
	alone.program = p
	return &alone
}

// startAlone begins a run of a program made around a step or a function.
func (p *program) startAlone() engine.StartRun {
	return engine.StartRun{Version: p.version, Event: abi.Event{Type: aloneStart, Body: abi.EmptyMap}, Limits: limit.Default()}
}

// trigger reads the events that the step will receive.
func trigger(d *abi.StepDecl, events []any) ([]abi.Event, error) {
	var given []abi.Event
	for _, v := range events {
		name, body, err := typedEvent(v)
		if err != nil {
			return nil, err
		}
		given = append(given, abi.Event{Type: name, Body: body})
	}
	switch list := d.Accepts[0].Kind == abi.SlotList; {
	case list:
	case len(d.Accepts) > 1 && len(given) != len(d.Accepts):
		return nil, fmt.Errorf("it joins %d events, and was given %d", len(d.Accepts), len(given))
	case len(d.Accepts) == 1 && len(given) != 1:
		return nil, fmt.Errorf("it takes one event, and was given %d", len(given))
	}
	return given, nil
}

// compileAlone makes a workflow around one step: a step before it that supplies its
// events, and a step after it that takes what it returns and ends the run.
func (p *program) compileAlone(whole *abi.Manifest, index int, given []abi.Event) error {
	d := whole.Steps[index]
	before := abi.StepDecl{Name: aloneStart, Accepts: []abi.Slot{{Types: []string{aloneStart}}}}
	out := abi.StepOutput{Events: given, List: true}
	types := map[string]bool{}
	for _, slot := range d.Accepts {
		for _, typ := range slot.Types {
			types[typ] = true
		}
	}
	if len(given) == 1 && given[0].Type == abi.TypeStepFailed {
		if before.Name, out = failedStep(given[0].Body); before.Name == "" {
			return errors.New("the StepFailed names no step: fill its StepName in, or have the run cleaned up by Run.Cancel")
		}
		d.Catches, d.CatchesAll = []string{before.Name}, false
	} else {
		d.Catches, d.CatchesAll = nil, false
		for i := range given {
			types[given[i].Type] = true
		}
	}
	delete(types, abi.TypeStepFailed)
	before.Emits = []abi.Emit{{Types: []string{abi.TypeStop}}}
	if len(types) > 0 {
		before.Emits = append(before.Emits, abi.Emit{List: true, Types: sorted(types)})
	}
	p.played = map[string]play{
		before.Name: func([]abi.Event) abi.StepOutput { return out },
		aloneSink:   func([]abi.Event) abi.StepOutput { return abi.StepOutput{} },
	}
	m := *whole
	m.Part, m.Timeout = false, nil
	m.Events = aloneEvents(whole)
	m.Steps = []abi.StepDecl{before, d}
	for _, other := range whole.Steps {
		if other.Name != d.Name && other.Name != before.Name && sends(&d, &other) {
			p.played[other.Name] = p.played[aloneSink]
			m.Steps = append(m.Steps, abi.StepDecl{Name: other.Name, Accepts: []abi.Slot{anySlot(&other)}, AcceptSubtypes: other.AcceptSubtypes})
		}
	}
	if sink := sinkOf(&m, &d); len(sink) > 0 {
		m.Steps = append(m.Steps, abi.StepDecl{Name: aloneSink, Accepts: []abi.Slot{{Kind: abi.SlotAny, Types: sink}}})
	}
	return p.compile(&m)
}

// aloneEvents returns the events of the workflow, of which only one starts a run.
func aloneEvents(whole *abi.Manifest) map[string]abi.EventDecl {
	events := map[string]abi.EventDecl{aloneStart: {Kind: abi.KindStart}}
	for name, decl := range whole.Events {
		if decl.Extends == abi.TypeStart {
			decl.Extends = ""
		}
		if decl.Kind == abi.KindStart {
			decl.Kind = abi.KindPlain
		}
		events[name] = decl
	}
	return events
}

// sends reports whether the step may send an event to another step.
func sends(d, other *abi.StepDecl) bool {
	takes := anySlot(other).Types
	return slices.ContainsFunc(d.Emits, func(e abi.Emit) bool {
		return slices.ContainsFunc(e.Types, func(typ string) bool { return slices.Contains(takes, typ) })
	})
}

// anySlot returns a slot that takes any single event of a step.
func anySlot(d *abi.StepDecl) abi.Slot {
	types := map[string]bool{}
	for _, slot := range d.Accepts {
		for _, typ := range slot.Types {
			types[typ] = typ != abi.TypeStepFailed
		}
	}
	delete(types, abi.TypeStepFailed)
	return abi.Slot{Kind: abi.SlotAny, Types: sorted(types)}
}

// sinkOf lists the step's events that no other step takes.
func sinkOf(m *abi.Manifest, d *abi.StepDecl) []string {
	loose := map[string]bool{}
	for _, e := range d.Emits {
		for _, typ := range e.Types {
			kind := m.Events[typ].Kind
			if base, ok := abi.BaseKinds[typ]; ok {
				kind = base
			}
			taken := slices.ContainsFunc(m.Steps, func(s abi.StepDecl) bool { return slices.Contains(anySlot(&s).Types, typ) })
			if kind != abi.KindStop && !taken {
				loose[typ] = true
			}
		}
	}
	return sorted(loose)
}

// failedStep returns the step whose failure is caught, and the failure.
func failedStep(body abi.Raw) (string, abi.StepOutput) {
	fields, _ := decodeValue(body).(map[string]any)
	name, _ := fields["step_name"].(string)
	cause, _ := fields["exception"].(map[string]any)
	e := &abi.Error{}
	e.Code, _ = cause["exception_type"].(string)
	e.Message, _ = cause["exception_message"].(string)
	if e.Code == "" {
		e.Code = "error"
	}
	return name, abi.StepOutput{Err: e}
}

func sorted(set map[string]bool) []string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
