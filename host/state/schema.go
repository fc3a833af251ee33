package state

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
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
type Schema struct {
	never    bool // the schema false
	types    typeSet
	enum     *values
	constant *values
	bounds   []bound

	length, items, props span // min and max of each
	pattern              *pattern.Pattern

	required   []string // sorted
	properties map[string]*Schema
	additional *Schema // nil: anything
	elements   *Schema // nil: anything
}

// typeSet is a set of kinds as bits; 0 is any kind.
type typeSet uint8

// typeNames are the types of JSON Schema. That an integer may be a whole float
// is left to [typeSet.has].
var typeNames = map[string]typeSet{
	"null":    1 << kindNull,
	"boolean": 1 << kindBool,
	"integer": 1 << kindInt,
	"number":  1<<kindInt | 1<<kindFloat,
	"string":  1<<kindText | 1<<kindBytes,
	"array":   1 << kindList,
	"object":  1 << kindMap,
}

// span bounds a count. The zero value of max is "none" without hasMax.
type span struct {
	min, max uint64
	hasMax   bool
}

// bound is one of the four bounds of a number.
type bound struct {
	keyword string
	limit   number
}

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
		return &Schema{}, nil
	}
	n, err := Decode(r)
	if err != nil {
		return nil, err
	}
	var c compiler
	s := c.schema(n, nil)
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	return s, nil
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

func (c *compiler) schema(n *Node, at *trail) *Schema {
	s := new(Schema)
	switch n.kind {
	case kindBool:
		s.never = n == oneByte[cbor.False]
	case kindMap:
		for key, v := range n.body.all() {
			c.keyword(s, key, v, at.key(key))
		}
	default:
		c.problem(at, "a schema must be a map or a boolean, not %s", n.kind)
	}
	return s
}

func (c *compiler) keyword(s *Schema, key string, v *Node, at *trail) {
	switch key {
	case "title", "description", "default", "$schema":
	case "type":
		s.types = c.types(v, at)
	case "enum":
		all := c.list(v, at)
		if v.IsList() && len(all) == 0 {
			c.problem(at, "it must not be empty")
		}
		s.enum = newValues(all)
	case "const":
		s.constant = newValues([]*Node{v})
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if limit, ok := v.number(); ok {
			s.bounds = append(s.bounds, bound{key, limit})
		} else {
			c.problem(at, "it must be a number, not %s", v.kind)
		}
	case "minLength", "maxLength":
		c.span(&s.length, key == "maxLength", v, at)
	case "minItems", "maxItems":
		c.span(&s.items, key == "maxItems", v, at)
	case "minProperties", "maxProperties":
		c.span(&s.props, key == "maxProperties", v, at)
	case "pattern":
		s.pattern = c.pattern(v, at)
	case "required":
		s.required = c.names(v, at)
	case "properties":
		s.properties = c.properties(v, at)
	case "additionalProperties":
		s.additional = c.schema(v, at)
	case "items":
		s.elements = c.schema(v, at)
	default:
		c.problem(at, "state schemas do not have the keyword %q", clip(key))
	}
}

func (c *compiler) types(v *Node, at *trail) typeSet {
	names := []*Node{v}
	if v.IsList() {
		names = v.values()
		if len(names) == 0 {
			c.problem(at, "it must not be empty")
		}
	}
	var set typeSet
	for _, n := range names {
		if n.kind != kindText {
			c.problem(at, "a type must be a text, not %s", n.kind)
			continue
		}
		bits, ok := typeNames[n.text()]
		if !ok {
			c.problem(at, "there is no type %q", clip(n.text()))
		}
		set |= bits
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

func (c *compiler) properties(v *Node, at *trail) map[string]*Schema {
	if !v.IsMap() {
		c.problem(at, "it must be a map, not %s", v.kind)
		return nil
	}
	all := make(map[string]*Schema, v.Len())
	for key, n := range v.body.all() {
		all[key] = c.schema(n, at.key(key))
	}
	return all
}

func (c *compiler) span(s *span, isMax bool, v *Node, at *trail) {
	x, ok := v.number()
	if !ok || !x.whole() || x.neg || x.float < 0 || x.float > math.MaxInt64 {
		c.problem(at, "it must be a whole number from 0")
		return
	}
	n := x.mag
	if x.isFloat {
		n = uint64(x.float)
	}
	if isMax {
		s.max, s.hasMax = n, true
	} else {
		s.min = n
	}
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
