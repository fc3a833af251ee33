package weft

import (
	"errors"
	"reflect"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Event is any event. A step whose argument or result has this type needs the option
// [Accepts] or [Emits], which lists the event types.
type Event any

// Value is any value of the data model: nil, bool, int64 (uint64 if larger), float64,
// string, []byte, []any and map[string]any. When it is written, a Value may hold any type
// allowed for an event field.
type Value = any

// Extra, embedded in an event or state struct, keeps the keys that the struct does not
// declare.
//
//	type StartEvent struct {
//		weft.Start
//		weft.Extra // whatever else the caller sent: ev.Extra["color"]
//		Name string
//	}
type Extra = codec.Extra

// Tuple, embedded in a struct that is part of an event or of the state, encodes the
// struct as a list of its fields in order. This saves space if there are many such
// structs.
//
//	type WordCount struct {
//		weft.Tuple
//		Word  string
//		Count int
//	} // ["word", 3]
type Tuple = codec.Tuple

// Start, embedded in a struct, makes it the event that starts the workflow. A
// struct named StartEvent is the base start event; any other name extends it.
//
//	type StartEvent struct {
//		weft.Start
//		Query string `doc:"what to look for"`
//		Limit int    `default:"10" min:"0"`
//		Mode  string `weft:"mode,omitempty" enum:"fast,deep"`
//	}
//
// Here query is required, limit is 10 if absent, and mode may be absent.
type Start struct{}

// Stop is the event that ends the run: the base StopEvent. Its result becomes the run's
// result. A struct that embeds Stop is a separate stop event, with the struct's fields
// instead of the result.
type Stop struct {
	Result any
}

// Result returns a stop event with the given result.
func Result(v any) Stop { return Stop{Result: v} }

// InputRequired, embedded in a struct, makes it an event that asks a person
// for input. The base type is a struct named InputRequiredEvent.
type InputRequired struct{}

// HumanResponse, embedded in a struct, makes it an event that carries a
// person's answer. The base type is a struct named HumanResponseEvent.
type HumanResponse struct{}

// StepFailed is the event that a step with [Catches] receives when another step has
// failed finally, or when the run was [Cancelled] or has [TimedOut].
type StepFailed struct {
	_              struct{} `weft:"StepFailedEvent"`
	StepName       string   // "" if the run itself ended
	Exception      Exception
	Attempts       uint64
	ElapsedSeconds float64 // since the first attempt started
	// InputEvent is the event that the failed step received, as {"type", "value"}, or a
	// list of such events; nil if it is too large.
	InputEvent Value `weft:",omitempty"`
}

// Exception is the error of a step that failed.
type Exception struct {
	ExceptionType    string // the error's code
	ExceptionMessage string
}

// Join, embedded in a struct whose other fields are events, makes the struct the argument
// of a step that waits for one event of each field's type.
//
//	type Both struct {
//		weft.Join
//		Left  LeftEvent
//		Right RightEvent
//	}
type Join struct{}

// Nothing is the result type of a step that returns no event.
type Nothing struct{}

var (
	typeStart         = reflect.TypeOf(Start{})
	typeStop          = reflect.TypeOf(Stop{})
	typeStepFailed    = reflect.TypeOf(StepFailed{})
	typeInputRequired = reflect.TypeOf(InputRequired{})
	typeHumanResponse = reflect.TypeOf(HumanResponse{})
	typeJoin          = reflect.TypeOf(Join{})
	typeNothing       = reflect.TypeOf(Nothing{})
)

// kinds maps each marker to the kind and the base type of structs that embed it.
var kinds = map[reflect.Type]struct{ kind, base string }{
	typeStart:         {"start", "StartEvent"},
	typeStop:          {"stop", "StopEvent"},
	typeInputRequired: {"input_required", "InputRequiredEvent"},
	typeHumanResponse: {"human_response", "HumanResponseEvent"},
}

func init() {
	for t := range kinds {
		codec.Markers[t] = true
	}
}

// eventType is what the SDK knows about an event's type.
type eventType struct {
	name, kind, base, doc string
	plan                  *codec.Plan
}

// eventTypes holds the event types made so far. A search is cheaper than a map, because
// there are few types.
var eventTypes []*eventType

// eventOf returns the event type of a struct type.
func eventOf(t reflect.Type) (*eventType, error) {
	for _, et := range eventTypes {
		if et.plan.Type() == t {
			return et, nil
		}
	}
	if t == nil || t.Kind() != reflect.Struct {
		advice := "define a struct with a field for it"
		switch {
		case t == nil:
			advice = "list events by empty values, FirstEvent{}"
		case t.Kind() == reflect.Pointer:
			advice = "use the struct itself"
		case t.Kind() == reflect.Interface:
			advice = "use weft.Event and list the types with Accepts or Emits"
		}
		return nil, errors.New(typeName(t) + " is not an event type: " + advice)
	}
	plan, err := codec.Of(t)
	if err != nil {
		return nil, err
	}
	if !plan.IsStruct() {
		return nil, errors.New(typeName(t) + " is a tuple, but an event is a map: drop weft.Tuple")
	}
	et := &eventType{name: t.Name(), plan: plan}
	if t == typeStop {
		et.name = "StopEvent"
		et.kind, et.base = "stop", "StopEvent"
	}
	et.readMarkers(t)
	if et.name == "" || strings.Contains(et.name, "[") {
		return nil, errors.New("event type " + typeName(t) + " has no plain name: name it by a field _ struct{} `weft:\"NameEvent\"`")
	}
	eventTypes = append(eventTypes, et)
	return et, nil
}

// readMarkers looks for embedded markers, and for a blank field, whose tags name and
// describe the type.
func (et *eventType) readMarkers(t reflect.Type) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		k, marker := kinds[f.Type]
		marker = marker && f.Anonymous
		if marker {
			et.kind, et.base = k.kind, k.base
		} else if f.Anonymous && f.Type.Kind() == reflect.Struct {
			inner := eventType{}
			if inner.readMarkers(f.Type); inner.kind != "" {
				et.kind, et.base = inner.kind, inner.base
			}
		}
		if !marker && f.Name != "_" {
			continue
		}
		if name := f.Tag.Get("weft"); name != "" {
			et.name = name
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			et.doc = doc
		}
	}
}

// typeName returns a type's name for a message. (The type's String method would add
// another 3 KB to a guest.)
func typeName(t reflect.Type) string {
	switch {
	case t == nil:
		return "nil"
	case t.Name() != "":
		return t.Name()
	case t.Kind() == reflect.Pointer:
		return "*" + t.Elem().Name()
	}
	return "a " + t.Kind().String()
}

// quote quotes a name for a message.
func quote(s string) string { return "\"" + s + "\"" }
