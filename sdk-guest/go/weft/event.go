package weft

import (
	"errors"
	"reflect"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Event is any event. As the type of a step's argument or result it needs the
// options [Accepts] or [Emits] to say which ones.
type Event any

// Value is any value of the data model: nil, bool, int64 (uint64 if larger),
// float64, string, []byte, []any and map[string]any. Every type of event field
// may stand for it on the way out.
type Value = any

// Extra, embedded in an event or state struct, keeps the keys that the struct
// does not declare.
//
//	type StartEvent struct {
//		weft.Start
//		weft.Extra // whatever else the caller sent: ev.Extra["color"]
//		Name string
//	}
type Extra = codec.Extra

// Tuple, embedded in a struct that is a part of an event or of the state, makes
// it a list of its fields in their order: small, where there are many.
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

// Stop is the event that ends the run: the base StopEvent. Its result is the
// run's. Embedded in a struct it makes that a stop event of its own, with the
// struct's fields instead of the result.
type Stop struct {
	Result any
}

// Result gives the stop event with a result.
func Result(v any) Stop { return Stop{Result: v} }

// InputRequired, embedded in a struct, makes it an event that asks a person
// for input. The base type is a struct named InputRequiredEvent.
type InputRequired struct{}

// HumanResponse, embedded in a struct, makes it an event that carries a
// person's answer. The base type is a struct named HumanResponseEvent.
type HumanResponse struct{}

// StepFailed is the event that a step with [Catches] gets when another has
// failed for good, or the run has been [Cancelled] or has [TimedOut].
type StepFailed struct {
	_              struct{} `weft:"StepFailedEvent"`
	StepName       string   // "" if it is the run
	Exception      Exception
	Attempts       uint64
	ElapsedSeconds float64 // since the first attempt began
	// InputEvent is what the step failed on, as {"type", "value"}, or a list of
	// those; nil if it is too large.
	InputEvent Value `weft:",omitempty"`
}

// Exception is the error of a step that failed.
type Exception struct {
	ExceptionType    string // its code
	ExceptionMessage string
}

// Join, embedded in a struct whose other fields are events, makes it the
// argument of a step that waits for one event of each.
//
//	type Both struct {
//		weft.Join
//		Left  LeftEvent
//		Right RightEvent
//	}
type Join struct{}

// Nothing is the result of a step that gives no event.
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

// kinds gives the kind and the base type of what embeds a marker.
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

// eventType is what the SDK knows of an event's type.
type eventType struct {
	name, kind, base, doc string
	plan                  *codec.Plan
}

// eventTypes holds those made so far; types are few, so a search is cheaper
// than a map.
var eventTypes []*eventType

// eventOf gives the event type of a struct type.
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

// readMarkers looks for embedded markers and for a blank field, whose tags
// name and describe the type.
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

// typeName names a type in a message. (Its String method would cost a guest
// another 3 KB.)
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

// quote shows a name in a message.
func quote(s string) string { return "\"" + s + "\"" }
