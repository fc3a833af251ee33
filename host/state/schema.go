package state

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/pattern"
)

// Schema types a state. It is the part of JSON Schema whose keywords say
// something about one value and its children alone, so that an edit can be
// checked along its own path:
//
//   - type, enum, const;
//   - properties, required, additionalProperties, minProperties,
//     maxProperties;
//   - items, minItems, maxItems;
//   - minimum, maximum, exclusiveMinimum, exclusiveMaximum;
//   - minLength, maxLength, pattern.
//
// The annotations title, description, default and $schema are ignored. true and
// false are schemas. Any other keyword is refused.
//
// Numbers are compared by value, so 1 equals 1.0, and a whole float is an
// integer. A byte string is of the type "string"; its length counts bytes and
// no pattern matches it. Patterns are those of package regexp.
//
// A Schema is immutable. A nil Schema accepts everything.
type Schema struct{ root *jsonschema.Schema }

// mostPattern bounds a pattern: matching takes time in proportion to the product of
// its states and the text.
var mostPattern = pattern.Most{Bytes: 1024, States: 500}

// maxProblems bounds what CompileSchema reports.
const maxProblems = 50

// CompileSchema reads a schema. A nil r is the schema that accepts everything.
// The error joins all problems, each an [*Error] with the code invalid_message
// and the path in the schema.
func CompileSchema(r abi.Raw) (*Schema, error) {
	if r == nil {
		return &Schema{&jsonschema.Schema{}}, nil
	}
	n, err := Decode(r)
	if err != nil {
		return nil, err
	}
	var c compiler
	root := c.schema(n, nil)
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	return &Schema{root}, nil
}

type compiler struct {
	problems []error
}

func (c *compiler) problem(at *trail, format string, args ...any) {
	switch len(c.problems) {
	case maxProblems:
		c.problems = append(c.problems, fail(abi.StatusInvalidMessage, "", "and more problems"))
	case maxProblems + 1:
	default:
		c.problems = append(c.problems, fail(abi.StatusInvalidMessage, at.String(), "%s", fmt.Sprintf(format, args...)))
	}
}

func (c *compiler) schema(n *Node, at *trail) *jsonschema.Schema {
	s := new(jsonschema.Schema)
	switch n.kind {
	case kindBool:
		always := n == oneByte[cbor.True]
		s.Always = &always
	case kindMap:
		for key, v := range n.body.all() {
			c.keyword(s, key, v, at.key(key))
		}
	default:
		c.problem(at, "a schema must be a map or a boolean, not %s", n.kind)
	}
	return s
}

func (c *compiler) keyword(s *jsonschema.Schema, key string, v *Node, at *trail) {
	switch key {
	case "title", "description", "default", "$schema":
	case "type":
		s.Types = c.types(v, at)
	case "enum":
		all := c.list(v, at)
		if v.IsList() && len(all) == 0 {
			c.problem(at, "it must not be empty")
		}
		s.Enum = newValues(all...)
	case "const":
		s.Const = newValues(v)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if _, ok := v.number(); ok {
			s.Bounds = append(s.Bounds, jsonschema.Bound{Keyword: key, Limit: v.Value()})
		} else {
			c.problem(at, "it must be a number, not %s", v.kind)
		}
	case "minLength":
		s.MinLength = c.least(v, at)
	case "maxLength":
		s.MaxLength = c.count(v, at)
	case "minItems":
		s.MinItems = c.least(v, at)
	case "maxItems":
		s.MaxItems = c.count(v, at)
	case "minProperties":
		s.MinProperties = c.least(v, at)
	case "maxProperties":
		s.MaxProperties = c.count(v, at)
	case "pattern":
		s.Pattern = c.pattern(v, at)
	case "required":
		s.Required = c.names(v, at)
	case "properties":
		s.Properties = c.properties(v, at)
	case "additionalProperties":
		s.Additional = c.schema(v, at)
	case "items":
		s.Items = c.schema(v, at)
	default:
		c.problem(at, "state schemas do not have the keyword %q", clip(key))
	}
}

func newValues(all ...*Node) *jsonschema.Values {
	values := make([]jsonschema.Value, len(all))
	for i, n := range all {
		values[i] = n.Value()
	}
	return jsonschema.NewValues(values...)
}

func (c *compiler) types(v *Node, at *trail) jsonschema.Types {
	names := []*Node{v}
	if v.IsList() {
		names = v.values()
		if len(names) == 0 {
			c.problem(at, "it must not be empty")
		}
	}
	var set jsonschema.Types
	for _, n := range names {
		if n.kind != kindText {
			c.problem(at, "a type must be a text, not %s", n.kind)
			continue
		}
		is, ok := jsonschema.TypeNamed(n.text())
		if !ok {
			c.problem(at, "there is no type %q", clip(n.text()))
		}
		set |= is
	}
	return set
}

func (c *compiler) list(v *Node, at *trail) []*Node {
	if !v.IsList() {
		c.problem(at, "it must be a list, not %s", v.kind)
		return nil
	}
	return v.values()
}

func (c *compiler) names(v *Node, at *trail) []string {
	var names []string
	seen := make(map[string]bool)
	for i, n := range c.list(v, at) {
		if n.kind != kindText {
			c.problem(at.index(i), "a name must be a text, not %s", n.kind)
			continue
		}
		if name := n.text(); seen[name] {
			c.problem(at.index(i), "%q is there twice", clip(name))
		} else {
			seen[name] = true
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *compiler) properties(v *Node, at *trail) map[string]*jsonschema.Schema {
	if !v.IsMap() {
		c.problem(at, "it must be a map, not %s", v.kind)
		return nil
	}
	all := make(map[string]*jsonschema.Schema, v.Len())
	for key, n := range v.body.all() {
		all[key] = c.schema(n, at.key(key))
	}
	return all
}

// least reads a bound from below of a count; nil for 0, which bounds nothing.
func (c *compiler) least(v *Node, at *trail) *int {
	n := c.count(v, at)
	if n != nil && *n == 0 {
		return nil
	}
	return n
}

func (c *compiler) count(v *Node, at *trail) *int {
	x, ok := v.number()
	if !ok || !x.whole() || x.neg || x.float < 0 || x.float > math.MaxInt64 {
		c.problem(at, "it must be a whole number from 0")
		return nil
	}
	n := x.mag
	if x.isFloat {
		n = uint64(x.float)
	}
	most := int(min(n, math.MaxInt)) // no count is greater
	return &most
}

func (c *compiler) pattern(v *Node, at *trail) *pattern.Pattern {
	if v.kind != kindText {
		c.problem(at, "it must be a text, not %s", v.kind)
		return nil
	}
	p, err := pattern.Compile(v.text(), mostPattern)
	if err != nil {
		c.problem(at, "%v", err)
		return nil
	}
	return p
}
