package jsonschema

import (
	"math"
	"math/big"

	"github.com/weftrun/weft/host/pattern"
)

// Schema is a JSON Schema in the form in which this package evaluates it. [Compile]
// makes one of all keywords. A package that reads schemas of its own sets the exported
// fields and leaves the others alone.
//
// A Schema is immutable once compiled. All goroutines may use it.
type Schema struct {
	Always      *bool // the schema true or false; nothing else is set then
	Types       Types // 0: any
	Const, Enum *Values

	MinProperties, MaxProperties *int
	Required                     []string
	Properties                   map[string]*Schema
	Additional                   *Schema // additionalProperties

	MinItems, MaxItems *int
	Items              *Schema

	MinLength, MaxLength *int
	Pattern              *pattern.Pattern
	Bounds               []Bound

	refs                                   []*Schema // $ref, $dynamicRef
	allOf, anyOf, oneOf                    []*Schema
	not, condition, consequence, otherwise *Schema

	patterns              []patternSchema
	propertyNames         *Schema
	dependentRequired     []dependency[[]string]
	dependentSchemas      []dependency[*Schema]
	unevaluatedProperties *Schema

	minContains, maxContains   *int
	unique                     bool
	prefix                     []*Schema
	contains, unevaluatedItems *Schema

	multipleOf *big.Rat
}

// Bound is one of the keywords minimum, maximum, exclusiveMinimum, exclusiveMaximum.
type Bound struct {
	Keyword string
	Limit   Value // a number
	digits  int   // binary ones of the limit as a fraction
}

type patternSchema struct {
	pattern *pattern.Pattern
	schema  *Schema
}

type dependency[T any] struct {
	name string
	then T
}

// Types is a set of JSON types.
type Types uint8

const (
	typeNull Types = 1 << iota
	typeBoolean
	typeNumber
	typeInteger
	typeString
	typeArray
	typeObject
)

var typeNames = []struct {
	is   Types
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

// TypeNamed returns the set of the type of a name, such as "integer"; false if no type
// has that name.
func TypeNamed(name string) (Types, bool) {
	for _, known := range typeNames {
		if known.name == name {
			return known.is, true
		}
	}
	return 0, false
}

// typesOf gives the types of a value: of a whole number two.
func typesOf(v Value) Types {
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
	case kindText, kindBytes:
		return typeString
	case kindList:
		return typeArray
	}
	return typeObject
}
