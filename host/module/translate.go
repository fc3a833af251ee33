package module

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/pattern"
)

// translation turns the library's compiled schemas into ours.
type translation struct {
	done map[*jsonschema.Schema]*schema
	err  error
}

func (t *translation) schema(from *jsonschema.Schema) *schema {
	if from == nil {
		return nil
	}
	if s, ok := t.done[from]; ok {
		return s // also when it refers to itself
	}
	s := &schema{}
	t.done[from] = s
	if from.Bool != nil {
		s.always = from.Bool
		return s
	}
	t.any(s, from)
	t.object(s, from)
	t.array(s, from)
	s.minLength, s.maxLength = from.MinLength, from.MaxLength
	s.pattern = asPattern(from.Pattern)
	s.minimum, s.maximum, s.multipleOf = t.bound(from.Minimum), t.bound(from.Maximum), t.bound(from.MultipleOf)
	s.above, s.below = t.bound(from.ExclusiveMinimum), t.bound(from.ExclusiveMaximum)
	return s
}

// maxBoundDigits bounds the bounds of numbers, in binary digits: 400 decimal ones.
const maxBoundDigits = 1_330

// bound refuses a bound beyond all numbers that can be compared with it.
func (t *translation) bound(r *big.Rat) *big.Rat {
	if r != nil && max(r.Num().BitLen(), r.Denom().BitLen()) > maxBoundDigits {
		t.err = errors.New("a bound of a number has more than 400 digits")
	}
	return r
}

func (t *translation) list(from []*jsonschema.Schema) (list []*schema) {
	for _, f := range from {
		list = append(list, t.schema(f))
	}
	return list
}

// any translates the keywords for values of any type.
func (t *translation) any(s *schema, from *jsonschema.Schema) {
	if from.Types != nil {
		for _, name := range from.Types.ToStrings() {
			for _, known := range typeNames {
				if known.name == name {
					s.types |= known.is
				}
			}
		}
	}
	if from.Ref != nil {
		s.refs = append(s.refs, t.schema(from.Ref))
	}
	if from.DynamicRef != nil {
		s.refs = append(s.refs, t.schema(from.DynamicRef.Ref))
	}
	if from.Const != nil {
		s.konst = t.values([]any{*from.Const})
	}
	if from.Enum != nil {
		s.enum = t.values(from.Enum.Values) // an empty one refuses everything
	}
	s.allOf, s.anyOf, s.oneOf = t.list(from.AllOf), t.list(from.AnyOf), t.list(from.OneOf)
	s.not, s.condition = t.schema(from.Not), t.schema(from.If)
	s.consequence, s.otherwise = t.schema(from.Then), t.schema(from.Else)
}

// view gives a value of the schema as those are that are looked at.
func (t *translation) view(v any) cursor {
	raw, err := abi.EncodeValue(v)
	if err != nil { // such as a map with just "$bytes"
		t.err = errors.Join(t.err, err)
		return cursor{}
	}
	out, err := view(nil, raw)
	t.err = errors.Join(t.err, err)
	return out
}

func (t *translation) values(from []any) *values {
	s := &values{}
	for _, v := range from {
		s.add(t.view(v))
	}
	return s
}

func (t *translation) object(s *schema, from *jsonschema.Schema) {
	s.minProperties, s.maxProperties, s.required = from.MinProperties, from.MaxProperties, from.Required
	if len(from.Properties) > 0 {
		s.properties = make(map[string]*schema, len(from.Properties))
		for name, f := range from.Properties {
			s.properties[name] = t.schema(f)
		}
	}
	for re, f := range from.PatternProperties {
		s.patterns = append(s.patterns, patternSchema{asPattern(re), t.schema(f)})
	}
	slices.SortFunc(s.patterns, func(a, b patternSchema) int { return strings.Compare(a.pattern.String(), b.pattern.String()) })
	switch additional := from.AdditionalProperties.(type) {
	case bool:
		s.additional = &schema{always: &additional}
	case *jsonschema.Schema:
		s.additional = t.schema(additional)
	}
	s.propertyNames, s.unevaluatedProperties = t.schema(from.PropertyNames), t.schema(from.UnevaluatedProperties)
	for _, name := range slices.Sorted(maps.Keys(from.DependentRequired)) {
		s.dependentRequired = append(s.dependentRequired, dependency[[]string]{name, from.DependentRequired[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(from.DependentSchemas)) {
		s.dependentSchemas = append(s.dependentSchemas, dependency[*schema]{name, t.schema(from.DependentSchemas[name])})
	}
}

func (t *translation) array(s *schema, from *jsonschema.Schema) {
	s.minItems, s.maxItems = from.MinItems, from.MaxItems
	s.minContains, s.maxContains = from.MinContains, from.MaxContains
	s.unique = from.UniqueItems
	s.prefix, s.items = t.list(from.PrefixItems), t.schema(from.Items2020)
	s.contains, s.unevaluatedItems = t.schema(from.Contains), t.schema(from.UnevaluatedItems)
}

func asPattern(re jsonschema.Regexp) *pattern.Pattern {
	p, _ := re.(compiledPattern) // all come from compilePattern
	return p.Pattern
}
