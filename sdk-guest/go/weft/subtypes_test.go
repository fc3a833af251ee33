package weft

import (
	"reflect"
	"testing"
)

type (
	item  struct{ Name string }
	item2 struct {
		item
		Weight int
	}
	box struct {
		item2
		Size int
	}
	question struct {
		InputRequired
		Text string
	}
	hard struct {
		question
		Level int
	}
	firstAndMore struct {
		first
		More string
	}
)

// An event that embeds another extends it.
func TestSubtypesInTheManifest(t *testing.T) {
	define(t, Step("only", func(*untypedContext, start) (Event, error) { return nil, nil },
		Emits(item{}, item2{}, box{}, question{}, hard{})))
	for name, want := range map[string][2]string{"item": {}, "item2": {"", "item"}, "box": {"", "item2"},
		"question": {"input_required", "InputRequiredEvent"}, "hard": {"input_required", "question"}} {
		for _, et := range defined.events {
			if et.name != name {
				continue
			}
			o, err := defined.eventManifest(et)
			kind, _ := o["kind"].(string)
			extends, _ := o["extends"].(string)
			if err != nil || kind != want[0] || extends != want[1] {
				t.Errorf("%s: kind %q, extends %q (%v)", name, kind, extends, err)
			}
		}
	}
}

// A type that the plugin does not know is taken as the one that it must extend.
func TestSubtypesOfOthers(t *testing.T) {
	define(t, Step("give", func(*untypedContext, firstAndMore) (Nothing, error) { return Nothing{}, nil }))
	one, _ := eventOf(reflect.TypeOf(first{}))
	two, _ := eventOf(reflect.TypeOf(second{}))
	s := &step{accepts: []*eventType{one}}
	if s.accepted("unknown") != nil {
		t.Error("an unknown type is taken")
	}
	if s.subtypes = true; s.accepted("unknown") != one || s.accepted("firstAndMore") == one {
		t.Error("an unknown type is not taken as the one that it must extend, or a known one is")
	}
	if s.accepts = append(s.accepts, two); s.accepted("unknown") != nil {
		t.Error("an unknown type is taken as one of two")
	}
}
