package engine

import (
	"slices"

	"github.com/weftrun/weft/abi"
)

// runtimeTypes are the types that only the host makes. Guests and clients may not.
var runtimeTypes = map[string]bool{
	abi.TypeStepStateChanged:  true,
	abi.TypeUnhandled:         true,
	abi.TypeIdle:              true,
	abi.TypeWorkflowFailed:    true,
	abi.TypeWorkflowTimedOut:  true,
	abi.TypeWorkflowCancelled: true,
	abi.TypeStepFailed:        true,
}

// IsRuntimeType reports whether only the host makes events of the type: the terminal and
// internal events and StepFailedEvent.
func IsRuntimeType(typ string) bool { return runtimeTypes[typ] }

// maxExtends bounds the number of ancestors of an event type.
const maxExtends = 32

// baseOf maps a kind to its base type.
var baseOf = func() map[abi.EventKind]string {
	m := make(map[abi.EventKind]string, len(abi.BaseKinds))
	for typ, kind := range abi.BaseKinds {
		m[kind] = typ
	}
	return m
}()

// eventType is an event type that a workflow knows, declared or base.
type eventType struct {
	name     string
	kind     abi.EventKind
	declared bool
	used     bool // a step names it
	decl     abi.EventDecl
	// ancestors are shown to clients: nearest first, ending in the base type of the kind.
	// Event is left out, because every list would end in it.
	ancestors []string
	// descendants are the types that have this one among their ancestors, sorted. Those
	// of Event are all plain types.
	descendants []string
	// defaults are the default values of the fields; nil: no field has one.
	defaults map[string]any
}

func isBase(typ string) bool {
	_, ok := abi.BaseKinds[typ]
	return ok
}

// eventTypes enters the declarations into the graph's table.
func (c *compiler) eventTypes() {
	for typ, kind := range abi.BaseKinds {
		c.g.types[typ] = &eventType{name: typ, kind: kind}
	}
	for _, name := range sortedKeys(c.m.Events) {
		decl := c.m.Events[name]
		if IsRuntimeType(name) {
			c.problem("runtime_type", "", name, "the event type %s is the runtime's own: choose another name", name)
			continue
		}
		if t, ok := c.g.types[name]; ok {
			c.redeclare(t, decl)
			continue
		}
		c.g.types[name] = &eventType{name: name, kind: decl.Kind, declared: true, decl: decl}
	}
	for _, name := range sortedKeys(c.g.types) {
		c.ancestry(c.g.types[name])
	}
	c.descend()
	for _, t := range c.g.types {
		t.defaults = c.fieldDefaults(t)
	}
}

// fieldDefaults returns the defaults of the type's fields. A type without a schema
// inherits from its nearest ancestor that has one.
func (c *compiler) fieldDefaults(t *eventType) map[string]any {
	schema := t.decl.Schema
	for _, up := range t.ancestors {
		if a := c.g.types[up]; schema == nil && a != nil {
			schema = a.decl.Schema
		}
	}
	if schema == nil {
		return nil
	}
	v, err := abi.DecodeValue(schema) // compiling the schema reports what is wrong with it
	whole, isMap := v.(map[string]any)
	properties, has := whole["properties"].(map[string]any)
	if err != nil || !isMap || !has {
		return nil
	}
	var defaults map[string]any
	for name, property := range properties {
		of, _ := property.(map[string]any)
		if value, has := of["default"]; has {
			if defaults == nil {
				defaults = make(map[string]any)
			}
			defaults[name] = value
		}
	}
	return defaults
}

// filled adds the defaults of missing fields to an event from outside, if a step may wait
// for the event. Requirements are compared with the values that the step will see.
func (g *Graph) filled(ev abi.Event) abi.Event {
	t := g.types[ev.Type]
	if t == nil || t.defaults == nil || len(g.waits[ev.Type]) == 0 {
		return ev
	}
	v, err := abi.DecodeValue(ev.Body)
	body, isMap := v.(map[string]any)
	if err != nil || !isMap {
		return ev
	}
	given := len(body)
	for name, value := range t.defaults {
		if _, has := body[name]; !has {
			body[name] = value
		}
	}
	// Keep the client's own encoding if there is nothing to add.
	if len(body) == given {
		return ev
	}
	if raw, err := abi.EncodeValue(body); err == nil {
		ev.Body = raw
	}
	return ev
}

func (c *compiler) redeclare(t *eventType, decl abi.EventDecl) {
	if decl.Kind != "" && decl.Kind != t.kind {
		c.problem("base_kind", "", t.name, "the base event type %s is declared with the kind %q: leave the kind out, or choose another name", t.name, string(decl.Kind))
	}
	if decl.Extends != "" {
		c.problem("base_extends", "", t.name, "the base event type %s cannot extend %s: declare a type of your own that extends it", t.name, clip(decl.Extends))
	}
	decl.Extends = ""
	t.declared, t.decl = true, decl
}

// ancestry follows extends and finds the kind, which a type inherits.
func (c *compiler) ancestry(t *eventType) {
	kind := t.decl.Kind
	at := t
	for at.decl.Extends != "" {
		up, ok := c.g.types[at.decl.Extends]
		if !ok {
			// Report the missing type once, at the type that names it.
			if at == t {
				c.problem("unknown_type", "", t.name, "%s extends %s, which is not declared: declare it in events", t.name, clip(t.decl.Extends))
			}
			break
		}
		if up == t || slices.Contains(t.ancestors, up.name) || len(t.ancestors) == maxExtends {
			c.problem("cyclic_extends", "", t.name, "%s extends itself in a circle or through more than %d types: let one of them extend nothing", t.name, maxExtends)
			break
		}
		t.ancestors = append(t.ancestors, up.name)
		upKind := up.decl.Kind
		if isBase(up.name) {
			upKind = up.kind
		}
		if kind == "" {
			kind = upKind
		} else if upKind != "" && upKind != kind && at == t {
			c.problem("kind_mismatch", "", t.name, "%s is declared with the kind %q but extends %s, which is %q: leave its kind out", t.name, string(kind), up.name, string(upKind))
		}
		at = up
	}
	// A base type has a fixed kind.
	if isBase(t.name) {
		return
	}
	t.kind = kind
	t.ancestors = slices.DeleteFunc(t.ancestors, func(a string) bool { return a == abi.TypeEvent })
	if base := baseOf[kind]; kind != "" && !slices.Contains(t.ancestors, base) {
		t.ancestors = append(t.ancestors, base)
	}
	if len(t.ancestors) == 0 {
		t.ancestors = nil
	}
}

// descend fills in the descendants from the ancestors. Circles have been reported before.
func (c *compiler) descend() {
	for _, name := range sortedKeys(c.g.types) {
		t := c.g.types[name]
		for _, up := range t.ancestors {
			if a, ok := c.g.types[up]; ok && a != t {
				a.descendants = append(a.descendants, name)
			}
		}
		if t.kind == abi.KindPlain && name != abi.TypeEvent {
			all := c.g.types[abi.TypeEvent]
			all.descendants = append(all.descendants, name)
		}
	}
}
