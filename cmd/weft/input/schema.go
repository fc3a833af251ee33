package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxVisits limits how many subschemas are examined for one field, because schemas may
// refer to themselves.
const maxVisits = 256

// kinds is a set of JSON types. nil means that the schema does not name types.
type kinds map[string]bool

// String lists the types in words.
func (k kinds) String() string {
	if len(k) == 0 {
		return "any"
	}
	return strings.Join(slices.Sorted(maps.Keys(k)), " or ")
}

// Schema has the parts of an event type's JSON Schema that the command line needs. The
// server decides whether an event is valid.
type Schema struct {
	Title      string
	Properties map[string]any
	Required   []string
	root       map[string]any
}

// ReadSchema reads the JSON Schema of an event type.
func ReadSchema(text []byte) (*Schema, error) {
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("the server's schema is not understood: %w", err)
	}
	s := &Schema{root: root}
	s.Title, _ = root["title"].(string)
	s.Properties, _ = root["properties"].(map[string]any)
	list, _ := root["required"].([]any)
	for _, name := range list {
		if name, ok := name.(string); ok {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

// Names lists the declared fields, the required ones first.
func (s *Schema) Names() []string {
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case s.Requires(a) == s.Requires(b):
			return 0
		case s.Requires(a):
			return -1
		}
		return 1
	})
	return names
}

// Requires reports whether the field is required.
func (s *Schema) Requires(name string) bool { return slices.Contains(s.Required, name) }

// declares reports whether the schema declares the field.
func (s *Schema) declares(name string) bool {
	_, ok := s.Properties[name]
	return ok
}

// KindsOf returns the types that a field may have.
func (s *Schema) KindsOf(name string) kinds {
	visits := maxVisits
	return s.kinds(s.Properties[name], &visits)
}

// kinds returns the types that a subschema allows, as far as they are obvious.
func (s *Schema) kinds(node any, visits *int) kinds {
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

// union returns the types of alternatives, nil if an alternative does not name types.
func (s *Schema) union(list []any, visits *int) kinds {
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

// resolve follows a reference within the schema. It returns nil for other references.
func (s *Schema) resolve(ref string) any {
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
