package jsonschema

import (
	"math"
	"math/big"

	"github.com/weftrun/weft/host/pattern"
)

// Schema is a JSON Schema in the form in which this package evaluates it. A field has the
// name of its keyword, except where a comment says otherwise.
//
// A Schema is immutable once it is complete. All goroutines may use it.
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

	Refs                []*Schema // $ref, $dynamicRef
	AllOf, AnyOf, OneOf []*Schema
	Not, If, Then, Else *Schema

	PatternProperties     []PatternSchema
	PropertyNames         *Schema
	DependentRequired     []Dependency[[]string]
	DependentSchemas      []Dependency[*Schema]
	UnevaluatedProperties *Schema

	MinContains, MaxContains   *int
	UniqueItems                bool
	PrefixItems                []*Schema
	Contains, UnevaluatedItems *Schema

	MultipleOf *big.Rat
}

// Bound is one of the keywords minimum, maximum, exclusiveMinimum, exclusiveMaximum.
type Bound struct {
	Keyword string
	Limit   Value // a number
	Digits  int   // binary digits of the limit as a fraction
}

// PatternSchema is the schema of the members whose names match a pattern.
type PatternSchema struct {
	Pattern *pattern.Pattern
	Schema  *Schema
}

// Dependency is what an object with a member of a name must satisfy.
type Dependency[T any] struct {
	Name string
	Then T
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
