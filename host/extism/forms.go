package extism

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
)

// Form is how an event becomes bytes, or how the bytes of an output are read.
type Form string

// The forms. The name of a field follows FormField.
const (
	FormAuto   Form = "auto"
	FormBody   Form = "body"   // input: the event's body, as JSON
	FormField  Form = "field:" // input: one field of it
	FormEvent  Form = "event"  // input: {"type", "value"}, or a list of them, as JSON
	FormJSON   Form = "json"   // output
	FormText   Form = "text"   // output
	FormBytes  Form = "bytes"  // output
	FormEvents Form = "events" // output: null, {"type", "value"}, or a list of them, as JSON
)

const (
	inputForms  = "auto, body, field:NAME or event"
	outputForms = "auto, json, text, bytes or events"
	inputField  = "input" // the only field of a body meant for a plugin
)

func inputForm(text string) (Form, bool) {
	f := Form(text)
	if field, ok := f.field(); ok {
		return f, field != ""
	}
	return f, f == FormAuto || f == FormBody || f == FormEvent
}

func outputForm(text string) (Form, bool) {
	switch f := Form(text); f {
	case FormAuto, FormJSON, FormText, FormBytes, FormEvents:
		return f, true
	}
	return "", false
}

// field returns the name of the field that an input consists of.
func (f Form) field() (name string, ok bool) { return strings.CutPrefix(string(f), string(FormField)) }

// Bytes returns the bytes that a step's export reads.
//
// # Errors
//
// An error if the event lacks the required field.
func (s *Step) Bytes(trigger []abi.Event, list bool) ([]byte, error) {
	if s.Input == FormEvent {
		return eventsJSON(trigger, list)
	}
	if list {
		return bodiesJSON(trigger)
	}
	if len(trigger) == 0 {
		return nil, nil
	}
	body := trigger[0].Body
	field, ofField := s.Input.field()
	if s.Input == FormBody {
		return abi.ToJSON(body)
	}
	if !ofField {
		field = inputField
	}
	v, err := abi.DecodeValue(body)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	value, there := m[field]
	switch {
	case !ofField && (!there || len(m) != 1):
		return abi.ToJSON(body)
	case !there:
		return nil, fmt.Errorf("the event %s has no field %s, which the step's input consists of", trigger[0].Type, clip(field))
	}
	switch value := value.(type) {
	case string:
		return []byte(value), nil
	case []byte:
		return value, nil
	}
	raw, err := abi.EncodeValue(value)
	if err != nil {
		return nil, err
	}
	return abi.ToJSON(raw)
}

func eventsJSON(trigger []abi.Event, list bool) ([]byte, error) {
	all := make([]any, len(trigger))
	for i, ev := range trigger {
		all[i] = map[string]any{"type": ev.Type, "value": ev.Body}
	}
	var v any = all
	if !list && len(all) == 1 {
		v = all[0]
	}
	raw, err := abi.EncodeValue(v)
	if err != nil {
		return nil, err
	}
	return abi.ToJSON(raw)
}

func bodiesJSON(trigger []abi.Event) ([]byte, error) {
	all := make([]any, len(trigger))
	for i, ev := range trigger {
		all[i] = ev.Body
	}
	raw, err := abi.EncodeValue(all)
	if err != nil {
		return nil, err
	}
	return abi.ToJSON(raw)
}

// Events converts the bytes that an export wrote to events.
//
// # Errors
//
// An error if the bytes do not have the form that the manifest declares.
func (s *Step) Events(output []byte) (abi.StepOutput, error) {
	if s.Output == FormEvents {
		return readEvents(output)
	}
	if s.Emits == "" {
		return abi.StepOutput{}, nil
	}
	value, err := s.value(output)
	if err != nil {
		return abi.StepOutput{}, err
	}
	body := value
	if into := s.into(value); into != "" {
		if body, err = abi.EncodeValue(map[string]any{into: value}); err != nil {
			return abi.StepOutput{}, err
		}
	}
	return abi.StepOutput{Events: []abi.Event{{Type: s.Emits, Body: body}}}, nil
}

// into returns the field that a value is put into, or "" if the value is the body.
func (s *Step) into(value abi.Raw) string {
	const major, mapping = 5, 5
	switch {
	case s.Into != "":
		return s.Into
	case s.Emits != abi.TypeStop && len(value) > 0 && value[0]>>major == mapping:
		return ""
	}
	return resultField
}

// value reads an output by its form.
func (s *Step) value(output []byte) (abi.Raw, error) {
	switch s.Output {
	case FormJSON:
		v, err := abi.FromJSON(output)
		if err != nil {
			return nil, fmt.Errorf("the output of %s is not JSON: %w", s.Export, err)
		}
		return v, nil
	case FormText:
		if !utf8.Valid(output) {
			return nil, fmt.Errorf("the output of %s is not UTF-8: its form is text", s.Export)
		}
		return abi.EncodeValue(string(output))
	case FormBytes:
		return abi.EncodeValue(output)
	}
	if v, err := abi.FromJSON(output); err == nil {
		return v, nil
	}
	if utf8.Valid(output) {
		return abi.EncodeValue(string(output))
	}
	return abi.EncodeValue(output)
}

// readEvents reads an output that contains events with their types.
func readEvents(output []byte) (out abi.StepOutput, err error) {
	raw, err := abi.FromJSON(output)
	if err != nil {
		return out, fmt.Errorf("the output is not JSON: %w", err)
	}
	v, err := abi.DecodeValue(raw)
	if err != nil {
		return out, err
	}
	list, isList := v.([]any)
	switch {
	case v == nil:
		return out, nil
	case !isList:
		list = []any{v}
	}
	out.List = isList
	for _, item := range list {
		ev, err := readEvent(item)
		if err != nil {
			return out, err
		}
		out.Events = append(out.Events, ev)
	}
	return out, nil
}

func readEvent(v any) (ev abi.Event, err error) {
	m, ok := v.(map[string]any)
	if !ok {
		return ev, errors.New(`an event in the output must be {"type": TYPE, "value": {...}}`)
	}
	if ev.Type, ok = m["type"].(string); !ok {
		return ev, errors.New("an event in the output has no type")
	}
	ev.Body = abi.EmptyMap
	if body, there := m["value"]; there {
		if _, ok := body.(map[string]any); !ok {
			return ev, fmt.Errorf("the value of the event %s in the output must be an object", clip(ev.Type))
		}
		if ev.Body, err = abi.EncodeValue(body); err != nil {
			return ev, err
		}
	}
	return ev, nil
}
