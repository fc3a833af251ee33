package jsonschema

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/pattern"
)

// translation turns the library's compiled schemas into ours.
type translation struct {
	done map[*jsonschema.Schema]*Schema
	err  error
}

func (t *translation) schema(from *jsonschema.Schema) *Schema {
	if from == nil {
		return nil
	}
	if s, ok := t.done[from]; ok {
		return s // also when it refers to itself
	}
	s := &Schema{}
	t.done[from] = s
	if from.Bool != nil {
		s.Always = from.Bool
		return s
	}
	t.any(s, from)
	t.object(s, from)
	t.array(s, from)
	s.MinLength, s.MaxLength = from.MinLength, from.MaxLength
	s.Pattern = asPattern(from.Pattern)
	s.bound("minimum", from.Minimum)
	s.bound("maximum", from.Maximum)
	s.bound("exclusiveMinimum", from.ExclusiveMinimum)
	s.bound("exclusiveMaximum", from.ExclusiveMaximum)
	s.multipleOf = from.MultipleOf
	return s
}

// bound adds a bound of numbers. The library makes a fraction of an integer, or of the
// shortest decimal of a float; each is found again.
func (s *Schema) bound(keyword string, r *big.Rat) {
	if r == nil {
		return
	}
	b := Bound{Keyword: keyword, digits: r.Num().BitLen() + r.Denom().BitLen()}
	switch n := r.Num(); {
	case r.IsInt() && n.IsInt64():
		b.Limit = Value{kind: kindInt, bits: uint64(n.Int64())}
	case r.IsInt() && n.IsUint64():
		b.Limit = Value{kind: kindUint, bits: n.Uint64()}
	default:
		f, _ := r.Float64()
		b.Limit = Value{kind: kindFloat, bits: math.Float64bits(f)}
	}
	s.Bounds = append(s.Bounds, b)
}

func (t *translation) list(from []*jsonschema.Schema) (list []*Schema) {
	for _, f := range from {
		list = append(list, t.schema(f))
	}
	return list
}

// any translates the keywords for values of any type.
func (t *translation) any(s *Schema, from *jsonschema.Schema) {
	if from.Types != nil {
		for _, name := range from.Types.ToStrings() {
			is, _ := TypeNamed(name)
			s.Types |= is
		}
	}
	if from.Ref != nil {
		s.refs = append(s.refs, t.schema(from.Ref))
	}
	if from.DynamicRef != nil {
		s.refs = append(s.refs, t.schema(from.DynamicRef.Ref))
	}
	if from.Const != nil {
		s.Const = t.values([]any{*from.Const})
	}
	if from.Enum != nil {
		s.Enum = t.values(from.Enum.Values) // an empty one refuses everything
	}
	s.allOf, s.anyOf, s.oneOf = t.list(from.AllOf), t.list(from.AnyOf), t.list(from.OneOf)
	s.not, s.condition = t.schema(from.Not), t.schema(from.If)
	s.consequence, s.otherwise = t.schema(from.Then), t.schema(from.Else)
}

// view gives a value of the schema as those are that are looked at.
func (t *translation) view(v any) Value {
	raw, err := abi.EncodeValue(v)
	if err != nil { // such as a map with just "$bytes"
		t.err = errors.Join(t.err, err)
		return Value{}
	}
	out, err := View(nil, raw)
	t.err = errors.Join(t.err, err)
	return out
}

func (t *translation) values(from []any) *Values {
	s := &Values{}
	for _, v := range from {
		s.add(t.view(v))
	}
	return s
}

func (t *translation) object(s *Schema, from *jsonschema.Schema) {
	s.MinProperties, s.MaxProperties, s.Required = from.MinProperties, from.MaxProperties, from.Required
	if len(from.Properties) > 0 {
		s.Properties = make(map[string]*Schema, len(from.Properties))
		for name, f := range from.Properties {
			s.Properties[name] = t.schema(f)
		}
	}
	for re, f := range from.PatternProperties {
		s.patterns = append(s.patterns, patternSchema{asPattern(re), t.schema(f)})
	}
	slices.SortFunc(s.patterns, func(a, b patternSchema) int { return strings.Compare(a.pattern.String(), b.pattern.String()) })
	switch additional := from.AdditionalProperties.(type) {
	case bool:
		s.Additional = &Schema{Always: &additional}
	case *jsonschema.Schema:
		s.Additional = t.schema(additional)
	}
	s.propertyNames, s.unevaluatedProperties = t.schema(from.PropertyNames), t.schema(from.UnevaluatedProperties)
	for _, name := range slices.Sorted(maps.Keys(from.DependentRequired)) {
		s.dependentRequired = append(s.dependentRequired, dependency[[]string]{name, from.DependentRequired[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(from.DependentSchemas)) {
		s.dependentSchemas = append(s.dependentSchemas, dependency[*Schema]{name, t.schema(from.DependentSchemas[name])})
	}
}

func (t *translation) array(s *Schema, from *jsonschema.Schema) {
	s.MinItems, s.MaxItems = from.MinItems, from.MaxItems
	s.minContains, s.maxContains = from.MinContains, from.MaxContains
	s.unique = from.UniqueItems
	s.prefix, s.Items = t.list(from.PrefixItems), t.schema(from.Items2020)
	s.contains, s.unevaluatedItems = t.schema(from.Contains), t.schema(from.UnevaluatedItems)
}

func asPattern(re jsonschema.Regexp) *pattern.Pattern {
	p, _ := re.(compiledPattern) // all come from compilePattern
	return p.Pattern
}
