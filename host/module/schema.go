package module

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/pattern"
)

const (
	// schemaURL names a schema while it is compiled.
	schemaURL = "weft:schema"
	dialect   = "https://json-schema.org/draft/2020-12/schema"

	maxSchemaBytes    = 64 << 10  // of one event type
	maxManifestSchema = 512 << 10 // of all event types of a plugin
	maxSchemaProblems = 10        // that are listed of one schema
)

// schema is a JSON Schema (draft 2020-12) in the form in which this package
// evaluates it. The library compiles: it checks the schema and resolves its
// references. It does not evaluate, as that has no bounds there: a schema of
// some hundred bytes can make it run for ever, a body of some megabytes make
// it list millions of errors, and each look at a text copies it.
//
// A schema is immutable once compiled.
type schema struct {
	always *bool // the schema true or false; nothing else is set then
	types  types // 0: any

	refs                                   []*schema // $ref, $dynamicRef
	konst, enum                            *values
	allOf, anyOf, oneOf                    []*schema
	not, condition, consequence, otherwise *schema

	minProperties, maxProperties *int
	required                     []string
	properties                   map[string]*schema
	patterns                     []patternSchema
	additional, propertyNames    *schema
	dependentRequired            []dependency[[]string]
	dependentSchemas             []dependency[*schema]
	unevaluatedProperties        *schema

	minItems, maxItems, minContains, maxContains *int
	unique                                       bool
	prefix                                       []*schema
	items, contains, unevaluatedItems            *schema

	minLength, maxLength *int
	pattern              *pattern.Pattern

	minimum, maximum, above, below, multipleOf *big.Rat
}

type patternSchema struct {
	pattern *pattern.Pattern
	schema  *schema
}

type dependency[T any] struct {
	name string
	then T
}

// types is a set of JSON types.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeNumber
	typeInteger
	typeString
	typeArray
	typeObject
)

var typeNames = []struct {
	is   types
	name string
	one  string
}{
	{typeNull, "null", "null"},
	{typeBoolean, "boolean", "a boolean"},
	{typeNumber, "number", "a number"},
	{typeInteger, "integer", "an integer"},
	{typeString, "string", "a string"},
	{typeArray, "array", "an array"},
	{typeObject, "object", "an object"},
}

// typesOf gives the types of a value: of a whole number two.
func typesOf(v cursor) types {
	switch v.kind {
	case kindNull:
		return typeNull
	case kindFalse, kindTrue:
		return typeBoolean
	case kindInt, kindUint:
		return typeNumber | typeInteger
	case kindFloat:
		if f := v.float(); f == math.Trunc(f) {
			return typeNumber | typeInteger
		}
		return typeNumber
	case kindText:
		return typeString
	case kindList:
		return typeArray
	}
	return typeObject
}

// noRemote refuses to load any document: a schema stands alone.
type noRemote struct{}

func (noRemote) Load(string) (any, error) {
	return nil, errors.New("a schema cannot refer to another document")
}

// compileSchema compiles the schema of an event type, or says what is wrong
// with it.
func compileSchema(raw abi.Raw) (s *schema, problems []string) {
	if len(raw) > maxSchemaBytes {
		return nil, []string{fmt.Sprintf("it has %d bytes, at most %d are allowed", len(raw), maxSchemaBytes)}
	}
	decoded, err := abi.DecodeValue(raw)
	if err != nil {
		return nil, []string{err.Error()}
	}
	document, ok := plain(decoded).(map[string]any)
	if !ok {
		return nil, []string{"it is not an object"}
	}
	if problems := standsAlone(document); len(problems) > 0 {
		return nil, problems
	}
	defer func() {
		if r := recover(); r != nil { // the library's
			s, problems = nil, []string{fmt.Sprintf("it cannot be compiled: %v", r)}
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noRemote{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, []string{err.Error()}
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, schemaProblems(err)
	}
	t := &translation{done: map[*jsonschema.Schema]*schema{}}
	s = t.schema(compiled)
	if t.err != nil {
		return nil, []string{t.err.Error()}
	}
	return s, nil
}

// plain makes byte strings what they are in JSON, so that the library takes
// the value.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return map[string]any{bytesKey: base64.StdEncoding.EncodeToString(v)}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plain(v[key])
		}
	}
	return v
}

// standsAlone refuses other drafts, and schemas within the schema that have an
// identity of their own: with one document and one draft, a dynamic reference
// is the same as a plain one.
func standsAlone(document map[string]any) (problems []string) {
	if draft, ok := document["$schema"].(string); ok && strings.TrimSuffix(draft, "#") != dialect {
		problems = append(problems, fmt.Sprintf("$schema %.100q is not supported: leave it out, or use %s", draft, dialect))
	}
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case []any:
			for i, item := range v {
				walk(item, fmt.Sprintf("%s/%d", path, i))
			}
		case map[string]any:
			for _, key := range []string{"$id", "$schema"} {
				if _, ok := v[key].(string); ok && path != "" {
					problems = append(problems, fmt.Sprintf("at '%.200s': %s is only allowed at the top", path, key))
				}
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], path+"/"+key)
			}
		}
	}
	walk(document, "")
	return problems[:min(len(problems), maxSchemaProblems)]
}

// schemaProblems puts what the library says about a schema into lines.
func schemaProblems(err error) []string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		var wrong *jsonschema.SchemaValidationError
		if !errors.As(err, &wrong) || !errors.As(wrong.Err, &invalid) {
			return []string{strings.ReplaceAll(err.Error(), schemaURL, "the schema")}
		}
	}
	var problems []string
	for line := range strings.Lines(invalid.Error()) {
		line = strings.TrimLeft(strings.TrimSpace(line), "- ")
		if strings.HasPrefix(line, "jsonschema validation failed") || strings.HasSuffix(line, "' failed") {
			continue // the lines that follow say what failed
		}
		if !slices.Contains(problems, line) && len(problems) < maxSchemaProblems {
			problems = append(problems, line)
		}
	}
	if len(problems) == 0 {
		problems = []string{"it is not valid JSON Schema"}
	}
	return problems
}

// mostPattern bounds the patterns of events' schemas.
var mostPattern = pattern.Most{Bytes: maxSchemaBytes, States: 2_000}

// compiledPattern is a pattern as the library wants it.
type compiledPattern struct{ *pattern.Pattern }

// MatchString implements jsonschema.Regexp.
func (p compiledPattern) MatchString(text string) bool {
	ok, _ := p.Match(nil, text)
	return ok
}

// compilePattern is the regular expressions' engine.
func compilePattern(expr string) (jsonschema.Regexp, error) {
	p, err := pattern.Compile(expr, mostPattern)
	if err != nil {
		return nil, err
	}
	return compiledPattern{p}, nil
}
