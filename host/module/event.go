package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/jsonschema/draft2020"
	"github.com/weftrun/weft/host/work"
)

// maxManifestSchema bounds the schemas of all event types of a plugin, in bytes.
const maxManifestSchema = 512 << 10

// maxExtends bounds the chain of types from which a schema is inherited.
const maxExtends = 32

// eventTypes holds the compiled schemas of a manifest's event types, by type:
// a type without a schema has the nearest one of those that it extends.
type eventTypes map[string]*jsonschema.Schema

// compileEvents compiles the schemas of a manifest, or lists everything that is
// wrong with them.
func compileEvents(m *abi.Manifest) (eventTypes, []host.Problem) {
	own := map[string]*jsonschema.Schema{}
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
		s, faults := draft2020.Compile(raw)
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
func inherited(m *abi.Manifest, own map[string]*jsonschema.Schema, typ string) *jsonschema.Schema {
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
func prepare(s *jsonschema.Schema, m *work.Meter, body abi.Raw, root string) (abi.Raw, error) {
	given, problems, err := s.Prepare(m, body, root)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, host.Errorf(host.CodeInvalidArgument, "%s", strings.Join(problems, "; "))
	}
	return given, nil
}
