package apiwire

import (
	"reflect"
	"strings"
)

// Field is a field of an object, as described by the tags of its struct.
type Field struct {
	Name string
	Type reflect.Type
	Doc  string
	// Optional: the field may be absent.
	Optional bool
	// Options are the bounds in the tag api, by name. The value is "" for a name without
	// one.
	//
	//   min, max, minLength, maxLength, default   as in JSON Schema
	//   const, enum                               the possible values; enum separates them with |
	//   signed                                    a number may be below 0
	//   null                                      nil is null
	//   object                                    a [Value] is an object
	//   json                                      a text that contains JSON is allowed, too
	//   loose                                     null, "" and {} count as absent
	Options map[string]string
	Index   int // in its struct
}

// Doc returns the text of a struct, "" if it has none.
func Doc(t reflect.Type) string {
	return blank(t).Tag.Get("doc")
}

// Body reports whether a struct is a body that the server accepts, and whether the server
// refuses fields that the struct does not have.
func Body(t reflect.Type) (is, closed bool) {
	kind, is := blank(t).Tag.Lookup("body")
	return is, kind == "closed"
}

// blank returns the field of a struct that says what the struct is. Without one, the
// result has no tag.
func blank(t reflect.Type) (f reflect.StructField) {
	for f = range t.Fields() {
		if f.Name == "_" {
			return f
		}
	}
	return reflect.StructField{}
}

// Fields lists the fields of a struct in their order, including those of embedded
// structs.
func Fields(t reflect.Type) []Field {
	var list []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Pointer:
			for _, inner := range Fields(f.Type.Elem()) {
				inner.Optional = true
				list = append(list, inner)
			}
		case f.Anonymous && name == "":
			list = append(list, Fields(f.Type)...)
		default:
			list = append(list, Field{
				Name: name, Type: f.Type, Doc: f.Tag.Get("doc"), Index: i,
				Optional: options == "omitempty", Options: optionsOf(f.Tag.Get("api")),
			})
		}
	}
	return list
}

func optionsOf(tag string) map[string]string {
	out := map[string]string{}
	if tag == "" {
		return out
	}
	for part := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(part, "=")
		out[name] = value
	}
	return out
}
