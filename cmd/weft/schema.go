package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxVisits bounds how many subschemas are looked at for one field: schemas may
// refer to themselves.
const maxVisits = 256

// kinds is a set of JSON types. nil is "the schema does not say".
type kinds map[string]bool

// String lists the types as people would.
func (k kinds) String() string {
	if len(k) == 0 {
		return "any"
	}
	return strings.Join(slices.Sorted(maps.Keys(k)), " or ")
}

// eventSchema is what the command line has to know of an event type's JSON
// Schema. Whether an event fits it is for the server to say.
type eventSchema struct {
	Title      string
	properties map[string]any
	required   []string
	root       map[string]any
}

// readSchema reads the JSON Schema of an event type.
func readSchema(text []byte) (*eventSchema, error) {
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("the server's schema is not understood: %w", err)
	}
	s := &eventSchema{root: root}
	s.Title, _ = root["title"].(string)
	s.properties, _ = root["properties"].(map[string]any)
	list, _ := root["required"].([]any)
	for _, name := range list {
		if name, ok := name.(string); ok {
			s.required = append(s.required, name)
		}
	}
	return s, nil
}

// names lists the declared fields, the required ones first.
func (s *eventSchema) names() []string {
	names := slices.Sorted(maps.Keys(s.properties))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case s.requires(a) == s.requires(b):
			return 0
		case s.requires(a):
			return -1
		}
		return 1
	})
	return names
}

func (s *eventSchema) requires(name string) bool { return slices.Contains(s.required, name) }

// declares reports whether the schema knows the field.
func (s *eventSchema) declares(name string) bool {
	_, ok := s.properties[name]
	return ok
}

// kindsOf gives the types that a field may have.
func (s *eventSchema) kindsOf(name string) kinds {
	visits := maxVisits
	return s.kinds(s.properties[name], &visits)
}

// kinds gives the types that a subschema allows, as far as it says so plainly.
func (s *eventSchema) kinds(node any, visits *int) kinds {
	m, ok := node.(map[string]any)
	if *visits--; !ok || *visits < 0 {
		return nil
	}
	switch t := m["type"].(type) {
	case string:
		return kinds{t: true}
	case []any:
		set := kinds{}
		for _, name := range t {
			if name, ok := name.(string); ok {
				set[name] = true
			}
		}
		return set
	}
	if ref, ok := m["$ref"].(string); ok {
		return s.kinds(s.resolve(ref), visits)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := m[key].([]any); ok {
			return s.union(list, visits)
		}
	}
	if list, ok := m["allOf"].([]any); ok {
		for _, part := range list {
			if set := s.kinds(part, visits); set != nil {
				return set
			}
		}
	}
	return nil
}

// union gives the types of alternatives, nil if one does not say.
func (s *eventSchema) union(list []any, visits *int) kinds {
	all := kinds{}
	for _, part := range list {
		set := s.kinds(part, visits)
		if set == nil {
			return nil
		}
		maps.Copy(all, set)
	}
	return all
}

// resolve follows a reference within the schema, nil if it leads elsewhere.
func (s *eventSchema) resolve(ref string) any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var node any = s.root
	for segment := range strings.SplitSeq(path, "/") {
		m, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)]
	}
	return node
}
