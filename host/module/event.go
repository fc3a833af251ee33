package module

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/work"
)

// maxExtends bounds the chain of types from which a schema is inherited.
const maxExtends = 32

// eventTypes holds the compiled schemas of a manifest's event types, by type:
// a type without a schema has the nearest one of those that it extends.
type eventTypes map[string]*schema

// compileEvents compiles the schemas of a manifest, or lists everything that is
// wrong with them.
func compileEvents(m *abi.Manifest) (eventTypes, []host.Problem) {
	own := map[string]*schema{}
	var problems []host.Problem
	total := 0
	for _, typ := range slices.Sorted(maps.Keys(m.Events)) {
		raw := m.Events[typ].Schema
		if raw == nil {
			continue
		}
		if total += len(raw); total > maxManifestSchema {
			return nil, append(problems, host.Problem{Code: "invalid_schema", Event: typ,
				Message: fmt.Sprintf("the schemas of the event types have more than %d bytes in all", maxManifestSchema)})
		}
		s, faults := compileSchema(raw)
		for _, fault := range faults {
			problems = append(problems, host.Problem{Code: "invalid_schema", Event: typ, Message: fmt.Sprintf("the schema of event type %s: %s", typ, fault)})
		}
		own[typ] = s
	}
	if len(problems) > 0 {
		return nil, problems
	}
	all := eventTypes{}
	for typ := range m.Events {
		if s := inherited(m, own, typ); s != nil {
			all[typ] = s
		}
	}
	return all, nil
}

// inherited finds the schema of a type: its own, or the nearest of its
// ancestors'.
func inherited(m *abi.Manifest, own map[string]*schema, typ string) *schema {
	for range maxExtends {
		if s := own[typ]; s != nil {
			return s
		}
		decl, declared := m.Events[typ]
		if !declared || decl.Extends == "" {
			return nil
		}
		typ = decl.Extends
	}
	return nil
}

// prepare checks the body of an event and takes out the fields that count as
// absent: those that are null, are declared and not required, and may not be
// null. It returns the body itself when there are none.
//
// The error is a [*host.Error], or that of the meter if its limit was not reached.
func (s *schema) prepare(m *work.Meter, body abi.Raw, root string) (abi.Raw, error) {
	v, err := view(m, body)
	if err := costly(err, root); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, host.Errorf(host.CodeInvalidArgument, "%s: %w", root, err)
	}
	if v.kind != kindObject {
		return nil, host.Errorf(host.CodeInvalidArgument, "%s: must be an object, got %s", root, describe(v))
	}
	given, err := s.given(m, v)
	if err := costly(err, root); err != nil {
		return nil, err
	}
	if given != nil {
		body, v = given, onto(given)
	}
	problems, err := evaluate(m, s, v, root)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, host.Errorf(host.CodeInvalidArgument, "%s", strings.Join(problems, "; "))
	}
	return body, nil
}

// given gives a body without the fields that count as absent; nil if there are none.
// The error is the meter's.
func (s *schema) given(m *work.Meter, v cursor) (abi.Raw, error) {
	e := &evaluation{meter: m}
	v.places = &places{}
	fields, _ := e.members(v)
	var absent set
	left := v.count()
	for i, field := range fields.all {
		if v.raw[field.value] == abi.Null[0] && s.absent(m, string(v.raw[field.key:field.value])) {
			absent.add(i)
			left--
		}
	}
	if m.Err() != nil || left == v.count() {
		return nil, m.Err()
	}
	out := cbor.AppendHead(make(abi.Raw, 0, len(v.raw)+5), cbor.Map, uint64(left))
	begin := uint32(0)
	for i, field := range fields.all {
		if !absent.has(i) {
			out = append(out, v.raw[begin:field.end]...)
		}
		begin = field.end
	}
	return out, nil
}

// costly is the error of a body whose check took too much, or the meter's other error.
func costly(err error, root string) error {
	over := (*work.Exceeded)(nil)
	switch {
	case err == nil, errors.Is(err, errNoValue):
		return nil
	case errors.As(err, &over):
		return host.Errorf(host.CodeInvalidArgument, "%s: is too costly to check with its schema", root)
	}
	return err
}

// absent tells whether a field that is null counts as absent; that is of no use once the
// meter has ended.
func (s *schema) absent(m *work.Meter, name string) bool {
	declared, required, nullable := false, false, true
	for depth := 0; s != nil && depth < maxNesting; depth++ {
		if m.Spend(lookUnits+nameUnits*uint64(len(s.required))) != nil {
			return false
		}
		required = required || slices.Contains(s.required, name)
		if p, ok := s.properties[name]; ok {
			declared = true
			if nullable {
				problems, err := evaluate(m, p, cursor{}, "")
				nullable = problems == nil && err == nil
			}
		}
		if len(s.refs) == 0 {
			break
		}
		s = s.refs[0]
	}
	return declared && !required && !nullable
}
