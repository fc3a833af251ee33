package engine

import (
	"slices"

	"github.com/weftrun/weft/abi"
)

// runtimeTypes are made by the host alone; no guest and no client may.
var runtimeTypes = map[string]bool{
	abi.TypeStepStateChanged:  true,
	abi.TypeUnhandled:         true,
	abi.TypeIdle:              true,
	abi.TypeWorkflowFailed:    true,
	abi.TypeWorkflowTimedOut:  true,
	abi.TypeWorkflowCancelled: true,
	abi.TypeStepFailed:        true,
}

// IsRuntimeType reports whether the type is one of those that only the host
// makes: the terminal and internal events and StepFailedEvent.
func IsRuntimeType(typ string) bool { return runtimeTypes[typ] }

// maxExtends bounds the chain of ancestors of an event type.
const maxExtends = 32

// baseOf gives the base type of a kind.
var baseOf = func() map[abi.EventKind]string {
	m := make(map[abi.EventKind]string, len(abi.BaseKinds))
	for typ, kind := range abi.BaseKinds {
		m[kind] = typ
	}
	return m
}()

// eventType is an event type that a workflow knows: declared or base.
type eventType struct {
	name     string
	kind     abi.EventKind
	declared bool
	used     bool // by a step
	decl     abi.EventDecl
	// ancestors is what clients are shown: nearest first, ending in the base
	// type of the kind, but without Event, which all types would end in.
	ancestors []string
	// descendants are the types that have this one among their ancestors
	// (Event: among all that is plain), sorted.
	descendants []string
	// defaults are those of the fields; nil: none has one.
	defaults map[string]any
}

func isBase(typ string) bool {
	_, ok := abi.BaseKinds[typ]
	return ok
}

// eventTypes reads the declarations into the graph's table.
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

// fieldDefaults gives the defaults of the fields that a type declares, or inherits from
// the nearest type that declares some.
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
	v, err := abi.DecodeValue(schema) // whoever compiles the schema says what it is not
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

// filled gives an event from outside with the defaults of its fields, if some step may
// wait for it: requirements are compared with what the step is going to see.
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

// descend turns the ancestors around. Types that are found in one another's
// ancestors by a circle have been reported.
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
