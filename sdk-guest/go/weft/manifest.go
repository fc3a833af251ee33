package weft

import (
	"errors"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// object is a map of the manifest.
type object = map[string]any

// put sets a key unless the text is empty.
func put(o object, key, text string) {
	if text != "" {
		o[key] = text
	}
}

// flag sets a key that is absent when false.
func flag(o object, key string, is bool) {
	if is {
		o[key] = true
	}
}

// describe passes the manifest to the host.
func describe() {
	m, err := defined.manifest()
	if err != nil {
		defined.note(err)
		defined.refuse()
	}
	b, err := codec.Append(make([]byte, 0, 1024), m)
	if err != nil {
		defined.note(err)
		defined.refuse()
	}
	boundary.Output(b)
}

func (w *workflow) manifest() (object, error) {
	var steps []any
	for _, s := range w.steps {
		steps = append(steps, s.manifest())
	}
	events := object{}
	for _, et := range w.events {
		o, err := w.eventManifest(et)
		if err != nil {
			return nil, err
		}
		if o != nil {
			events[et.name] = o
		}
	}
	m := object{"abi": abiVersion, "workflow": w.name, "steps": steps, "events": events}
	put(m, "version", w.version)
	put(m, "description", w.doc)
	flag(m, "part", w.part)
	if len(w.resources) > 0 {
		m["resources"] = w.resources
	}
	if w.hasTimeout {
		m["timeout"] = int64(w.timeout)
	}
	if w.state == nil {
		return m, nil
	}
	state, err := w.stateManifest()
	m["state"] = state
	return m, err
}

func (w *workflow) stateManifest() (object, error) {
	schema, err := w.statePlan.Schema()
	if err != nil {
		return nil, err
	}
	schema["title"] = w.state.Name()
	ptr, _ := w.statePlan.New()
	if w.initial != nil {
		ptr = w.statePlan.Box(w.initial)
	} else {
		w.statePlan.Defaults(ptr)
	}
	e := &codec.Encoder{}
	w.statePlan.Encode(e, ptr)
	if e.Err() != nil {
		return nil, errors.New("the initial state: " + e.Err().Error())
	}
	return object{"schema": schema, "default": codec.Raw(e.B)}, nil
}

func (s *step) manifest() object {
	o := object{"name": s.name, "accepts": s.acceptsManifest()}
	var emits []any
	for _, et := range s.emits {
		emits = append(emits, et.name)
	}
	if len(s.emitLists) > 0 {
		emits = append(emits, []any{"list", names(s.emitLists)})
	}
	if len(emits) > 0 {
		o["emits"] = emits
	}
	if len(s.waits) > 0 {
		o["waits"] = names(s.waits)
	}
	switch {
	case s.catchesAll:
		o["catches"] = "*"
	case len(s.catches) > 0:
		o["catches"] = s.catches
	}
	if s.maxRecoveries != nil {
		o["max_recoveries"] = *s.maxRecoveries
	}
	if s.workers > 0 {
		o["workers"] = s.workers
	}
	if s.timeout > 0 {
		o["timeout"] = int64(s.timeout)
	}
	if s.retry != nil {
		o["retry"] = s.retry
	}
	flag(o, "atomic", s.atomic)
	flag(o, "accept_subtypes", s.subtypes)
	put(o, "description", s.doc)
	return o
}

func (s *step) acceptsManifest() []any {
	switch s.input {
	case inputAny:
		return []any{[]any{"any", names(s.accepts)}}
	case inputList, inputListAny:
		slot := []any{"list", names(s.accepts)}
		if s.take > 0 {
			slot = append(slot, s.take)
		}
		return []any{slot}
	}
	return names(s.accepts) // one, or a join
}

func names(types []*eventType) []any {
	var list []any
	for _, et := range types {
		list = append(list, et.name)
	}
	return list
}

// eventManifest returns the declaration of a type, or nil if it needs none: every host
// knows the SDK's own events.
func (w *workflow) eventManifest(et *eventType) (object, error) {
	if t := et.plan.Type(); t == typeStop || t == typeStepFailed {
		return nil, nil
	}
	schema, err := et.plan.Schema()
	if err != nil {
		return nil, err
	}
	schema["title"] = et.name
	o := object{"schema": schema}
	put(o, "kind", et.kind)
	if base := w.baseOf(et); base != et.name {
		put(o, "extends", base)
	}
	put(o, "description", et.doc)
	return o, nil
}

// baseOf returns the type that an event extends: the first of the workflow's events that
// its struct embeds, otherwise the base type of its kind.
func (w *workflow) baseOf(et *eventType) string {
	t := et.plan.Type()
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		for _, other := range w.events {
			if f.Anonymous && f.Type == other.plan.Type() {
				return other.name
			}
		}
	}
	return et.base
}
