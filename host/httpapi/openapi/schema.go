package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// schema is a JSON Schema (2020-12), or another part of the description.
type schema map[string]any

func ref(name string) schema       { return schema{"$ref": "#/components/schemas/" + name} }
func listOf(s schema) schema       { return schema{"type": "array", "items": s} }
func oneOf(names ...string) schema { return schema{"type": "string", "enum": names} }
func either(list ...schema) schema { return schema{"anyOf": list} }
func orNull(s schema) schema       { return either(s, schema{"type": "null"}) }
func countFrom(least int) schema   { return schema{"type": "integer", "minimum": least} }
func between(least, most, def int) schema {
	return schema{"type": "integer", "minimum": least, "maximum": most, "default": def}
}

var (
	aText     = schema{"type": "string"}
	aPosition = schema{"type": "integer", "format": "int64", "minimum": 1}
	anyValue  = schema{}
	anyObject = schema{"type": "object", "additionalProperties": true}
	aFlagOff  = schema{"type": "boolean", "default": false} // of a query: false by default
	aFlagOn   = schema{"type": "boolean", "default": true}
)

// orNot returns the schema of an optional member of a request: null, an empty text and an
// empty object count as absent.
func orNot(s schema) schema {
	return either(s, schema{"type": "null"}, schema{"const": ""}, schema{"type": "object", "maxProperties": 0})
}

// both returns a body in JSON or CBOR.
func both(s schema) *content {
	return &content{types: []string{"application/json", apiwire.TypeCBOR}, schema: s}
}

// needed returns a body that is required.
func needed(b *content) *content {
	b.needed = true
	return b
}

// components are the structs whose schemas have names, by name.
var components = map[string]reflect.Type{
	"Act":             reflect.TypeFor[apiwire.Act](),
	"Audit":           reflect.TypeFor[apiwire.Audit](),
	"BareRecord":      reflect.TypeFor[apiwire.BareRecord](),
	"Blocked":         reflect.TypeFor[apiwire.Blocked](),
	"Breach":          reflect.TypeFor[apiwire.Breach](),
	"Composition":     reflect.TypeFor[apiwire.Composition](),
	"Departed":        reflect.TypeFor[apiwire.Departed](),
	"Entry":           reflect.TypeFor[apiwire.Entry](),
	"Envelope":        reflect.TypeFor[apiwire.Envelope](),
	"EventSchemas":    reflect.TypeFor[apiwire.EventSchemas](),
	"Diagram":         reflect.TypeFor[apiwire.Diagram](),
	"DiagramEdge":     reflect.TypeFor[apiwire.DiagramEdge](),
	"DiagramNode":     reflect.TypeFor[apiwire.DiagramNode](),
	"Fork":            reflect.TypeFor[apiwire.Fork](),
	"Graph":           reflect.TypeFor[apiwire.Drawing](),
	"Health":          reflect.TypeFor[apiwire.Health](),
	"Identity":        reflect.TypeFor[apiwire.Identity](),
	"OwnKey":          reflect.TypeFor[apiwire.OwnKey](),
	"Journal":         reflect.TypeFor[apiwire.Journal](),
	"Kept":            reflect.TypeFor[apiwire.Kept](),
	"Key":             reflect.TypeFor[apiwire.Key](),
	"Keys":            reflect.TypeFor[apiwire.Keys](),
	"Migration":       reflect.TypeFor[apiwire.Migration](),
	"NewKey":          reflect.TypeFor[apiwire.NewKey](),
	"Node":            reflect.TypeFor[apiwire.Node](),
	"PhaseCount":      reflect.TypeFor[apiwire.PhaseCount](),
	"PhaseCounts":     reflect.TypeFor[apiwire.PhaseCounts](),
	"Plugin":          reflect.TypeFor[apiwire.Plugin](),
	"PluginDetails":   reflect.TypeFor[apiwire.PluginDetails](),
	"Plugins":         reflect.TypeFor[apiwire.Plugins](),
	"Problem":         reflect.TypeFor[apiwire.Problem](),
	"Readiness":       reflect.TypeFor[apiwire.Readiness](),
	"Record":          reflect.TypeFor[apiwire.Record](),
	"Records":         reflect.TypeFor[apiwire.Records](),
	"Renewed":         reflect.TypeFor[apiwire.Renewed](),
	"Resource":        reflect.TypeFor[apiwire.Resource](),
	"ResourceKey":     reflect.TypeFor[apiwire.ResourceKey](),
	"ResourceKeys":    reflect.TypeFor[apiwire.ResourceKeys](),
	"ResourceUse":     reflect.TypeFor[apiwire.ResourceUse](),
	"Resources":       reflect.TypeFor[apiwire.Resources](),
	"Send":            reflect.TypeFor[apiwire.Send](),
	"Session":         reflect.TypeFor[apiwire.Session](),
	"Row":             reflect.TypeFor[apiwire.Row](),
	"Rows":            reflect.TypeFor[apiwire.Rows](),
	"RunDetails":      reflect.TypeFor[apiwire.RunDetails](),
	"RunOrigin":       reflect.TypeFor[apiwire.RunOrigin](),
	"RunParent":       reflect.TypeFor[apiwire.RunParent](),
	"Sessions":        reflect.TypeFor[apiwire.Sessions](),
	"Settings":        reflect.TypeFor[apiwire.Settings](),
	"Snapshot":        reflect.TypeFor[apiwire.Snapshot](),
	"Start":           reflect.TypeFor[apiwire.Start](),
	"StartStop":       reflect.TypeFor[apiwire.StartStop](),
	"Tenant":          reflect.TypeFor[apiwire.Tenant](),
	"Nodes":           reflect.TypeFor[apiwire.Nodes](),
	"Tenants":         reflect.TypeFor[apiwire.Tenants](),
	"Unhealthy":       reflect.TypeFor[apiwire.Unhealthy](),
	"Usage":           reflect.TypeFor[apiwire.Usage](),
	"Versions":        reflect.TypeFor[apiwire.Versions](),
	"Waiting":         reflect.TypeFor[apiwire.Waiting](),
	"Workflow":        reflect.TypeFor[apiwire.Workflow](),
	"WorkflowSummary": reflect.TypeFor[apiwire.WorkflowSummary](),
	"Workflows":       reflect.TypeFor[apiwire.Workflows](),
}

// names are the names of the structs in components.
var names = func() map[reflect.Type]string {
	out := map[reflect.Type]string{}
	for name, t := range components {
		out[t] = name
	}
	return out
}()

// schemas are the schemas that have names.
var schemas = func() map[string]schema {
	out := map[string]schema{}
	for name, t := range components {
		out[name] = objectOf(t)
	}
	out["BareRecord"]["description"] = "A run of a handler, its result without an envelope."
	setCodes(out["Unhealthy"]["properties"].(schema), host.Codes(host.CodeUnavailable.HTTPStatus()))
	return out
}()

// inline returns the schema of a struct, even if it has a name.
func inline[T any]() schema { return objectOf(reflect.TypeFor[T]()) }

// objectOf returns the schema of a struct. The schema of a body says whether the server
// refuses unknown members. Answers have no unknown members.
func objectOf(t reflect.Type) schema {
	isBody, closed := apiwire.Body(t)
	members, needed := schema{}, []string{}
	for _, f := range apiwire.Fields(t) {
		members[f.Name] = memberOf(&f, isBody)
		if !f.Optional {
			needed = append(needed, f.Name)
		}
	}
	out := schema{"type": "object", "description": apiwire.Doc(t), "properties": members}
	if len(needed) > 0 {
		out["required"] = needed
	}
	if isBody {
		out["additionalProperties"] = !closed
	}
	return out
}

// memberOf returns the schema of a field of a struct.
func memberOf(f *apiwire.Field, inBody bool) schema {
	s := valueOf(f.Type, f.Options)
	_, null := f.Options["null"]
	_, loose := f.Options["loose"]
	switch {
	case inBody && f.Optional && (loose || f.Type.Kind() == reflect.String):
		s = orNot(s)
	case inBody && f.Optional:
		s = orNull(s)
	case null, f.Type.Kind() == reflect.Pointer && !f.Optional:
		s = orNull(s)
	}
	s = maps.Clone(s)
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	return s
}

// leaves are the schemas of types whose kind does not determine their schema.
var leaves = map[reflect.Type]schema{
	reflect.TypeFor[apiwire.Time]():     {"type": "string", "format": "date-time"},
	reflect.TypeFor[apiwire.NanoTime](): {"type": "string", "format": "date-time"},
	reflect.TypeFor[apiwire.NullTime](): {"type": []string{"string", "null"}, "format": "date-time"},
	reflect.TypeFor[apiwire.Seconds]():  {"type": "number"},
	reflect.TypeFor[apiwire.OrNull]():   {"type": []string{"string", "null"}},
	reflect.TypeFor[apiwire.Value]():    anyValue,
	reflect.TypeFor[json.RawMessage]():  anyValue,
	reflect.TypeFor[[]byte]():           aText,
	reflect.TypeFor[host.Status]():      oneOf(string(host.StatusRunning), string(host.StatusCompleted), string(host.StatusFailed), string(host.StatusCancelled)),
	reflect.TypeFor[host.Role]():        oneOf(string(host.RoleRead), string(host.RoleRun), string(host.RoleDeploy), string(host.RoleAdmin)),
	reflect.TypeFor[host.OnBusy]():      oneOf(string(host.OnBusyShare), string(host.OnBusyQueue), string(host.OnBusyReject)),
}

// valueOf returns the schema of a type with the bounds of its field.
func valueOf(t reflect.Type, options map[string]string) schema {
	if leaf, ok := leaves[t]; ok {
		return bounded(leaf, options)
	}
	switch t.Kind() {
	case reflect.String:
		return bounded(aText, options)
	case reflect.Bool:
		return bounded(schema{"type": "boolean"}, options)
	case reflect.Int, reflect.Int64, reflect.Uint64:
		if _, signed := options["signed"]; signed {
			return schema{"type": "integer"}
		}
		return bounded(countFrom(0), options)
	case reflect.Pointer:
		return valueOf(t.Elem(), options)
	case reflect.Slice:
		return listOf(valueOf(t.Elem(), options))
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": valueOf(t.Elem(), options)}
	case reflect.Struct:
		if name, ok := names[t]; ok {
			return ref(name)
		}
		return objectOf(t)
	default:
		panic(fmt.Sprintf("openapi: the type %s is not of the API", t))
	}
}

// bounded returns a schema with the bounds of a field.
func bounded(s schema, options map[string]string) schema {
	s = maps.Clone(s)
	for name, text := range options {
		switch name {
		case "min":
			s["minimum"] = number(text)
		case "minLength", "maxLength":
			s[name] = number(text)
		case "format":
			s[name] = text
		case "default":
			s[name] = text == "true"
		case "const":
			if s["type"] == "boolean" {
				s[name] = text == "true"
			} else {
				s = schema{name: text}
			}
		case "enum":
			s[name] = strings.Split(text, "|")
		case "object":
			s = maps.Clone(anyObject)
		}
	}
	if _, text := options["json"]; text {
		s = either(s, schema{"type": "string", "contentMediaType": "application/json"})
	}
	return s
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // the tag is a constant of package apiwire
	}
	return n
}
