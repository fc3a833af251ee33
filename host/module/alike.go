package module

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/weftrun/weft/abi"
)

// annotations of a JSON Schema say nothing about what fits it.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "deprecated": true,
	"readOnly": true, "writeOnly": true, "$schema": true, "$comment": true,
}

// named are the keywords whose value holds schemas by name.
var named = map[string]bool{"properties": true, "patternProperties": true, "dependentSchemas": true, "$defs": true, "definitions": true}

// sameSchemas reports whether two schemas ask for the same in the same words:
// annotations and the order of what is required aside, in which builds of one
// type by several languages differ.
func sameSchemas(a, b abi.Raw) bool {
	x, err := abi.DecodeValue(a)
	y, otherErr := abi.DecodeValue(b)
	return err == nil && otherErr == nil && reflect.DeepEqual(stripped(x), stripped(y))
}

// stripped is a schema without annotations. Values nest at most as deep as abi
// lets them.
func stripped(schema any) any {
	switch v := schema.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			byName, isMap := value.(map[string]any)
			list, isList := value.([]any)
			switch {
			case annotations[key]:
			case named[key] && isMap:
				schemas := make(map[string]any, len(byName))
				for name, s := range byName {
					schemas[name] = stripped(s)
				}
				out[key] = schemas
			case key == "required" && isList:
				out[key] = slices.SortedFunc(slices.Values(list), func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			case key == "enum" || key == "const": // data
				out[key] = value
			default:
				out[key] = stripped(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = stripped(v[i])
		}
		return out
	}
	return schema
}
