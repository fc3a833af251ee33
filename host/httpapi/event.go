package httpapi

import (
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/httpapi/object"
)

// basePrefix is the name space of the base and runtime event types.
const basePrefix = "workflows.events."

// dataKey is the field under which clients also send an event's free fields.
const dataKey = "_data"

// clientEvent is an event as a client writes it.
type clientEvent struct {
	typ       string  // "" for plain fields, or if only the qualified name is given
	qualified string  // "" if it is not given
	body      abi.Raw // canonical, with the fields of _data moved to the top
}

// typeName returns the event's type, "" for plain fields. For a qualified name it is the
// part after the name space. The name space is that of the base types or of the workflow;
// in names from clients in other languages it is everything before the last dot.
func (e clientEvent) typeName(workflow string) string {
	if e.typ != "" || e.qualified == "" {
		return e.typ
	}
	for _, prefix := range []string{basePrefix, workflow + "."} {
		if name, ok := strings.CutPrefix(e.qualified, prefix); ok {
			return name
		}
	}
	return e.qualified[strings.LastIndexByte(e.qualified, '.')+1:]
}

// readEvent reads an event, or a text that holds an event in JSON. An event is an
// envelope {type or qualified_name, value}. If bare is true, plain fields are allowed,
// too.
func readEvent(v value, bare bool) (clientEvent, error) {
	if v.text() {
		text, err := v.textOf()
		if err != nil {
			return clientEvent{}, err
		}
		if v, err = v.parse(text); err != nil {
			if at := skipSpace(text); at == len(text) || text[at] != '{' {
				return clientEvent{}, notAnEvent(v)
			}
			return clientEvent{}, v.malformed(err)
		}
	}
	if !v.object() {
		return clientEvent{}, notAnEvent(v)
	}
	if bare && !looksEnveloped(v) {
		body, err := eventBody(v)
		return clientEvent{body: body}, err
	}
	return readEnvelope(v)
}

func notAnEvent(v value) error {
	return invalid("'%s' must be an object, or a text that holds one in JSON", v.path)
}

// looksEnveloped distinguishes an envelope from plain fields, which may have the same
// names as an envelope's parts. An envelope has a type and a value, or a type under both
// of its names.
func looksEnveloped(v value) bool {
	names := func(key string) bool {
		name := v.under("", object.Lookup(v.raw, key))
		return name.text() && name.given()
	}
	typ, qualified := names("type"), names("qualified_name")
	return object.Lookup(v.raw, "value") != nil && (typ || qualified) || typ && qualified
}

// readEnvelope reads an envelope; data is an older name of value.
func readEnvelope(v value) (e clientEvent, err error) {
	if e.typ, err = v.under("type", object.Lookup(v.raw, "type")).optionalText(); err != nil {
		return e, err
	}
	if e.qualified, err = v.under("qualified_name", object.Lookup(v.raw, "qualified_name")).optionalText(); err != nil {
		return e, err
	}
	if e.typ == "" && e.qualified == "" {
		return e, invalid("'%s' must have a type or a qualified_name", v.path)
	}
	if len(e.typ) > abi.MaxTypeName || len(e.qualified) > abi.MaxTypeName+abi.MaxWorkflowName {
		return e, invalid("The event type of '%s' is too long", v.path)
	}
	content := v.under("value", object.Lookup(v.raw, "value"))
	if content.raw == nil {
		content = v.under("data", object.Lookup(v.raw, "data"))
	}
	switch {
	case content.raw == nil:
		return e, invalid("'%s' must have a value", v.path)
	case content.null():
		e.body = abi.EmptyMap
	default:
		e.body, err = eventBody(content)
	}
	return e, err
}

// eventBody returns the fields of an event and moves the fields of _data to the top. If a
// field occurs in both places, the plain field wins.
func eventBody(v value) (abi.Raw, error) {
	fields, err := v.objectValue()
	if err != nil {
		return nil, err
	}
	raw := abi.Raw(fields)
	free := object.Lookup(raw, dataKey)
	switch {
	case free == nil:
		return raw, nil
	case cbor.Major(free[0]) == cbor.Map:
		return object.Merge(free, raw, dataKey), nil
	case free[0] == abi.Null[0]:
		return object.Merge(abi.EmptyMap, raw, dataKey), nil
	default:
		return nil, invalid("'%s' must be an object", joinPath(v.path, dataKey))
	}
}
