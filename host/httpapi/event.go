package httpapi

import (
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
)

// basePrefix is the name space of the base and runtime event types.
const basePrefix = "workflows.events."

// dataKey is the field under which clients also send an event's free fields.
const dataKey = "_data"

// clientEvent is an event as a client writes it.
type clientEvent struct {
	typ       string  // "" for plain fields, or when only the qualified name is given
	qualified string  // likewise
	body      abi.Raw // canonical; fields under _data are plain ones here
}

// typeName gives the event's type, "" for plain fields. Of a qualified name it
// is what follows the name space: that of the base types, the workflow's, or
// in names that clients in other languages give, all before the last dot.
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

// readEvent reads an event, or a text that holds one in JSON: an envelope
// {type or qualified_name, value}, or with plain the bare fields. bare says
// whether plain fields are allowed.
func readEvent(v value, bare bool) (clientEvent, error) {
	if v.text() {
		text, err := v.textOf()
		if err != nil {
			return clientEvent{}, err
		}
		inner := jsonValue(text)
		inner.path, inner.room = v.path, v.room
		if len(inner.raw) == 0 || !inner.object() {
			return clientEvent{}, invalid("'%s' must be an object, or a text that holds one in JSON", v.path)
		}
		v = inner
	}
	if !v.object() {
		if _, err := v.canonical(); err != nil {
			return clientEvent{}, err
		}
		return clientEvent{}, invalid("'%s' must be an object, or a text that holds one in JSON", v.path)
	}
	if bare {
		enveloped, err := looksEnveloped(v)
		if err != nil {
			return clientEvent{}, err
		}
		if !enveloped {
			body, err := eventBody(v)
			return clientEvent{body: body}, err
		}
	}
	return readEnvelope(v)
}

// looksEnveloped tells an envelope from plain fields, which may have the names
// of an envelope's parts too: there is a type with a value, or a type under
// both its names.
func looksEnveloped(v value) (bool, error) {
	var typ, qualified, val bool
	m := v.members()
	for name, member, ok := m.next(); ok; name, member, ok = m.next() {
		switch string(name) {
		case "type":
			typ = member.text() && member.given()
		case "qualified_name":
			qualified = member.text() && member.given()
		case "value":
			val = true
		}
	}
	return val && (typ || qualified) || typ && qualified, m.err
}

// readEnvelope reads an envelope; data is the older name of value.
func readEnvelope(v value) (clientEvent, error) {
	fields, err := v.fields("type", "qualified_name", "value", "data")
	if err != nil {
		return clientEvent{}, err
	}
	var e clientEvent
	if e.typ, err = fields["type"].optionalText(); err != nil {
		return clientEvent{}, err
	}
	if e.qualified, err = fields["qualified_name"].optionalText(); err != nil {
		return clientEvent{}, err
	}
	if e.typ == "" && e.qualified == "" {
		return clientEvent{}, invalid("'%s' must have a type or a qualified_name", v.path)
	}
	if len(e.typ) > abi.MaxTypeName || len(e.qualified) > abi.MaxTypeName+abi.MaxWorkflowName {
		return clientEvent{}, invalid("The event type of '%s' is too long", v.path)
	}
	content, ok := fields["value"]
	if old, both := fields["data"]; both {
		if !ok {
			content, ok = old, true
		} else if _, err := old.canonical(); err != nil {
			return clientEvent{}, err
		}
	}
	if !ok {
		return clientEvent{}, invalid("'%s' must have a value", v.path)
	}
	if content.null() {
		e.body = abi.EmptyMap
		return e, nil
	}
	e.body, err = eventBody(content)
	return e, err
}

// eventBody transcodes the fields of an event and lifts those under _data.
// A field that is there both plain and under _data has its plain value.
func eventBody(v value) (abi.Raw, error) {
	raw, err := objectOf(v)
	if err != nil {
		return nil, err
	}
	free := lookup(raw, dataKey)
	switch {
	case free == nil:
		return raw, nil
	case cbor.Major(free[0]) == cbor.Map:
		return merge(free, raw, dataKey), nil
	case free[0] == abi.Null[0]:
		return merge(abi.EmptyMap, raw, dataKey), nil
	default:
		return nil, invalid("'%s' must be an object", joinPath(v.path, dataKey))
	}
}

// objectOf transcodes a value that has to be an object. (JSON's {"$bytes": ...}
// is none.)
func objectOf(v value) (abi.Raw, error) {
	raw, err := v.canonical()
	if err != nil {
		return nil, err
	}
	if cbor.Major(raw[0]) != cbor.Map {
		return nil, invalid("'%s' must be an object", v.path)
	}
	return raw, nil
}
