package draft2020

import (
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weftrun/weft/abi"
	weft "github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/pattern"
)

// translation turns the library's compiled schemas into ours. It resolves dynamic
// references: only the dialect's own schemas differ in where these lead, by the schema
// through which they are entered.
type translation struct {
	compiler *jsonschema.Compiler
	meta     *jsonschema.Schema // target of $dynamicRef "#meta"; nil: as a plain reference
	done     map[scoped]*weft.Schema
	err      error
}

// scoped is a schema, and where its dynamic references lead.
type scoped struct{ schema, meta *jsonschema.Schema }

func translate(c *jsonschema.Compiler, from *jsonschema.Schema) (*weft.Schema, error) {
	t := &translation{compiler: c, done: map[scoped]*weft.Schema{}}
	if own, err := c.Compile(schemaURL + "#" + metaAnchor); err == nil && own.DynamicAnchor == metaAnchor {
		t.meta = own
	}
	return t.schema(from), t.err
}

// metaAnchor is the dynamic anchor of all of the dialect's own schemas.
const metaAnchor = "meta"

// reference translates the target of a reference, which may be a schema of the dialect.
func (t *translation) reference(to *jsonschema.Schema) *weft.Schema {
	url, _, _ := strings.Cut(to.Location, "#")
	if t.meta == nil && url != schemaURL {
		entered, err := t.compiler.Compile(url)
		t.err = errors.Join(t.err, err)
		t.meta = entered
		defer func() { t.meta = nil }()
	}
	return t.schema(to)
}

func (t *translation) schema(from *jsonschema.Schema) *weft.Schema {
	if from == nil {
		return nil
	}
	key := scoped{from, t.meta}
	if s, ok := t.done[key]; ok {
		return s // also when it refers to itself
	}
	s := &weft.Schema{}
	t.done[key] = s
	if from.Bool != nil {
		s.Always = from.Bool
		return s
	}
	t.any(s, from)
	t.object(s, from)
	t.array(s, from)
	s.MinLength, s.MaxLength = from.MinLength, from.MaxLength
	s.Pattern = asPattern(from.Pattern)
	t.bound(s, "minimum", from.Minimum)
	t.bound(s, "maximum", from.Maximum)
	t.bound(s, "exclusiveMinimum", from.ExclusiveMinimum)
	t.bound(s, "exclusiveMaximum", from.ExclusiveMaximum)
	s.MultipleOf = from.MultipleOf
	return s
}

// bound adds a bound of numbers. The library makes a fraction of an integer, or of the
// shortest decimal of a float; each is found again.
func (t *translation) bound(s *weft.Schema, keyword string, r *big.Rat) {
	if r == nil {
		return
	}
	b := weft.Bound{Keyword: keyword, Digits: r.Num().BitLen() + r.Denom().BitLen()}
	switch n := r.Num(); {
	case r.IsInt() && n.IsInt64():
		b.Limit = t.view(abi.EncodeValue(n.Int64()))
	case r.IsInt() && n.IsUint64():
		b.Limit = t.view(abi.EncodeValue(n.Uint64()))
	default:
		f, _ := r.Float64()
		b.Limit = t.view(abi.EncodeValue(f))
	}
	s.Bounds = append(s.Bounds, b)
}

func (t *translation) list(from []*jsonschema.Schema) (list []*weft.Schema) {
	for _, f := range from {
		list = append(list, t.schema(f))
	}
	return list
}

// any translates the keywords for values of any type.
func (t *translation) any(s *weft.Schema, from *jsonschema.Schema) {
	if from.Types != nil {
		for _, name := range from.Types.ToStrings() {
			is, _ := weft.TypeNamed(name)
			s.Types |= is
		}
	}
	if from.Ref != nil {
		s.Refs = append(s.Refs, t.reference(from.Ref))
	}
	if dynamic := from.DynamicRef; dynamic != nil {
		to := dynamic.Ref
		if t.meta != nil && dynamic.Anchor == metaAnchor {
			to = t.meta
		}
		s.Refs = append(s.Refs, t.reference(to))
	}
	if from.Const != nil {
		s.Const = t.values([]any{*from.Const})
	}
	if from.Enum != nil {
		s.Enum = t.values(from.Enum.Values) // an empty one refuses everything
	}
	s.AllOf, s.AnyOf, s.OneOf = t.list(from.AllOf), t.list(from.AnyOf), t.list(from.OneOf)
	s.Not, s.If = t.schema(from.Not), t.schema(from.If)
	s.Then, s.Else = t.schema(from.Then), t.schema(from.Else)
}

// view gives a value of the schema the form of the values that are checked.
func (t *translation) view(raw abi.Raw, err error) weft.Value {
	if err != nil { // such as a map with just "$bytes" that is not base64
		t.err = errors.Join(t.err, err)
		return weft.Value{}
	}
	v, err := weft.View(nil, raw)
	t.err = errors.Join(t.err, err)
	return v
}

func (t *translation) values(from []any) *weft.Values {
	var all []weft.Value
	for _, v := range from {
		text, err := json.Marshal(v)
		t.err = errors.Join(t.err, err)
		all = append(all, t.view(abi.FromJSON(text)))
	}
	return weft.NewValues(all...)
}

func (t *translation) object(s *weft.Schema, from *jsonschema.Schema) {
	s.MinProperties, s.MaxProperties, s.Required = from.MinProperties, from.MaxProperties, from.Required
	if len(from.Properties) > 0 {
		s.Properties = make(map[string]*weft.Schema, len(from.Properties))
		for name, f := range from.Properties {
			s.Properties[name] = t.schema(f)
		}
	}
	for re, f := range from.PatternProperties {
		s.PatternProperties = append(s.PatternProperties, weft.PatternSchema{Pattern: asPattern(re), Schema: t.schema(f)})
	}
	slices.SortFunc(s.PatternProperties, func(a, b weft.PatternSchema) int { return strings.Compare(a.Pattern.String(), b.Pattern.String()) })
	switch additional := from.AdditionalProperties.(type) {
	case bool:
		s.Additional = &weft.Schema{Always: &additional}
	case *jsonschema.Schema:
		s.Additional = t.schema(additional)
	}
	s.PropertyNames, s.UnevaluatedProperties = t.schema(from.PropertyNames), t.schema(from.UnevaluatedProperties)
	for _, name := range slices.Sorted(maps.Keys(from.DependentRequired)) {
		s.DependentRequired = append(s.DependentRequired, weft.Dependency[[]string]{Name: name, Then: from.DependentRequired[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(from.DependentSchemas)) {
		s.DependentSchemas = append(s.DependentSchemas, weft.Dependency[*weft.Schema]{Name: name, Then: t.schema(from.DependentSchemas[name])})
	}
}

func (t *translation) array(s *weft.Schema, from *jsonschema.Schema) {
	s.MinItems, s.MaxItems = from.MinItems, from.MaxItems
	s.MinContains, s.MaxContains = from.MinContains, from.MaxContains
	s.UniqueItems = from.UniqueItems
	s.PrefixItems, s.Items = t.list(from.PrefixItems), t.schema(from.Items2020)
	s.Contains, s.UnevaluatedItems = t.schema(from.Contains), t.schema(from.UnevaluatedItems)
}

func asPattern(re jsonschema.Regexp) *pattern.Pattern {
	p, _ := re.(compiledPattern) // all come from compilePattern
	return p.Pattern
}
