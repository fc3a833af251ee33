// Package openapi describes the HTTP API, as an OpenAPI document for programs and as a
// page for people. Tables say what each route does; the schemas of bodies come from the
// structs of package apiwire.
//
// It does not depend on how a route does its work. The caller passes the routes of a
// server.
package openapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// Paths of the description of the API, for programs and for people.
const (
	PathDescription = "/openapi.json"
	PathDocs        = "/docs"
)

// Media types of answers, besides JSON and CBOR.
const (
	sseType    = "text/event-stream"
	ndjsonType = "application/x-ndjson"
	htmlType   = "text/html"
	plainType  = "text/plain"
	// metricsType is the type that Prometheus asks for first.
	metricsType = "application/openmetrics-text"
)

// operation describes what a route does. It omits what all routes have in common: the
// header that names the tenant, and the errors of authentication.
type operation struct {
	group   string // the section of the page
	id      string // its operationId, for generated clients
	summary string
	text    string // details, in Markdown without markup
	query   []parameter
	headers []parameter
	body    *content // nil: the route has no body
	answers []answer // without errors
	fails   []int    // statuses of errors, besides those that every route has
}

// parameter is a parameter of the query or a header.
type parameter struct {
	name   string
	schema schema
	text   string
	many   bool // it may occur several times
	needed bool
}

// content is a body by media type; all types share its schema, unless the schema is nil.
type content struct {
	types  []string
	schema schema
	needed bool
	// items is the schema of each event of a stream.
	items schema
}

// answer is an answer that is not an error.
type answer struct {
	status  int
	text    string
	body    *content // nil: the answer has no body
	headers map[string]string
}

// Route is a route of the API.
type Route struct {
	Method string
	Path   string // with parameters as :name
	// Least is the lowest role that may use the route: "" for a route that needs no key,
	// "server" for a route that needs the server's own key.
	Least host.Role
}

// String is the route's name in the tables.
func (r Route) String() string { return r.Method + " " + r.Path }

// Pages are the two forms of the description.
type Pages struct{ JSON, HTML []byte }

// document is the input for a description.
type document struct {
	routes  []Route
	version string // of the server; "" if unknown
}

// Describe describes the routes of a server. It omits routes that no table has; see
// [Unknown].
func Describe(routes []Route, version string) Pages {
	d := document{routes, version}
	text, err := json.Marshal(d.json())
	if err != nil {
		panic(err) // it contains only maps, lists and texts
	}
	return Pages{JSON: text, HTML: d.page()}
}

// Unknown lists the differences between the tables and the routes, for tests.
func Unknown(routes []Route) (problems []string) {
	there := map[string]bool{}
	for _, r := range routes {
		there[r.String()] = true
		if _, ok := operations[r.String()]; !ok {
			problems = append(problems, r.String()+" is not described: add it to a table of host/httpapi/openapi, with its parameters, its body and its answers")
		}
		for _, p := range pathParams(r.Path) {
			if p.text == "" {
				problems = append(problems, r.String()+": nothing says what "+p.name+" is (pathTexts)")
			}
		}
	}
	for route := range operations {
		if !there[route] {
			problems = append(problems, route+" is described, and is not a route: remove it")
		}
	}
	return problems
}

// json makes the OpenAPI document.
func (d *document) json() schema {
	paths := map[string]schema{}
	for _, r := range d.routes {
		op, ok := operations[r.String()]
		if !ok {
			continue // a test reports it
		}
		path := pathTemplate(r.Path)
		if paths[path] == nil {
			paths[path] = schema{}
		}
		paths[path][strings.ToLower(r.Method)] = op.describe(r)
	}
	var tags []schema
	for _, g := range groups {
		tags = append(tags, schema{"name": g.name, "description": g.text})
	}
	version := d.version
	if version == "" {
		version = "unknown"
	}
	return schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "weft", "version": version, "summary": "Runs workflows whose steps are WebAssembly plugins.",
			"description": descriptionText,
			"license":     schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []schema{{"url": "/"}},
		"tags":    tags,
		"paths":   paths,
		"components": schema{
			"schemas":    schemas,
			"responses":  errorAnswers(),
			"parameters": schema{"tenant": tenantParameter.describe("header")},
			"securitySchemes": schema{"bearer": schema{
				"type": "http", "scheme": "bearer", "description": securityText,
			}},
		},
	}
}

const descriptionText = "Times are RFC 3339. JSON answers are CBOR (RFC 8949) instead if Accept names application/cbor first. " +
	"A body of Content-Type application/cbor is read as CBOR, any other body as JSON. Routes for GET, except the stream of events, answer HEAD too. " +
	"An unknown path is a 404, an unknown method of a path is a 405. Errors have a text for people and a code for programs. " +
	"A body has at most 16 MiB (a plugin 32 MiB), unless the server's settings say otherwise."

const securityText = "A key of a tenant, or the server's own key. A route lists the lowest role that may use it: read, run, deploy, admin " +
	"(each includes the roles before it), or server for the server's own key. A server without keys answers every request " +
	"whose Host is a name of the server and whose Origin is not a foreign web page."

// pathParam matches the parameters of a route.
var pathParam = regexp.MustCompile(`:([a-z]+)`)

// pathTemplate returns a route's path in the notation of OpenAPI.
func pathTemplate(path string) string { return pathParam.ReplaceAllString(path, "{$1}") }

// describe returns the description of a route.
func (op *operation) describe(r Route) schema {
	out := schema{"operationId": op.id, "tags": []string{op.group}, "summary": op.summary}
	if op.text != "" {
		out["description"] = op.text
	}
	var params []schema
	for _, p := range pathParams(r.Path) {
		d := p.describe("path")
		d["required"] = true
		params = append(params, d)
	}
	for _, p := range op.query {
		params = append(params, p.describe("query"))
	}
	for _, p := range op.headers {
		params = append(params, p.describe("header"))
	}
	if r.Least == "" {
		out["security"] = []schema{}
	} else {
		out["security"] = []map[string][]string{{"bearer": {string(r.Least)}}}
		params = append(params, schema{"$ref": "#/components/parameters/tenant"})
	}
	if len(params) > 0 {
		out["parameters"] = params
	}
	if op.body != nil {
		out["requestBody"] = schema{"content": op.body.describe(), "required": op.body.needed}
	}
	out["responses"] = op.responses(r)
	return out
}

// responses describes the answers of a route.
func (op *operation) responses(r Route) map[string]schema {
	out := map[string]schema{}
	for _, status := range op.errorStatuses(r) {
		out[strconv.Itoa(status)] = schema{"$ref": "#/components/responses/" + errorName(status)}
	}
	for _, a := range op.answers {
		d := schema{"description": a.text}
		if a.body != nil {
			d["content"] = a.body.describe()
		}
		if len(a.headers) > 0 {
			headers := schema{}
			for name, text := range a.headers {
				headers[name] = schema{"description": text, "schema": schema{"type": "string"}}
			}
			d["headers"] = headers
		}
		out[strconv.Itoa(a.status)] = d
	}
	return out
}

// errorStatuses lists the errors that a route may answer, except statuses that its
// answers describe.
func (op *operation) errorStatuses(r Route) []int {
	list := slices.Clone(op.fails)
	if r.Least != "" {
		list = append(list, 400, 401, 403, 404, 429, 500)
	}
	if op.body != nil {
		list = append(list, 413, 415)
	}
	list = append(list, 503)
	list = slices.DeleteFunc(list, func(status int) bool {
		return slices.ContainsFunc(op.answers, func(a answer) bool { return a.status == status })
	})
	slices.Sort(list)
	return slices.Compact(list)
}

func (p parameter) describe(in string) schema {
	d := schema{"name": p.name, "in": in, "description": p.text, "schema": p.schema}
	if p.many {
		d["schema"] = schema{"type": "array", "items": p.schema}
		d["explode"] = true
	}
	if p.needed {
		d["required"] = true
	}
	return d
}

func (b *content) describe() schema {
	out := schema{}
	for _, kind := range b.types {
		d := schema{}
		if b.schema != nil {
			d["schema"] = b.schema
		}
		if b.items != nil {
			d["x-item-schema"] = b.items
		}
		out[kind] = d
	}
	return out
}

// pathParams describes the parameters of a route's path.
func pathParams(path string) []parameter {
	var list []parameter
	for _, m := range pathParam.FindAllStringSubmatch(path, -1) {
		name := m[1]
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if name == "seq" {
			list = append(list, parameter{name: name, schema: aPosition, text: "The position of the entry."})
			continue
		}
		list = append(list, parameter{name: name, schema: schema{"type": "string", "minLength": 1}, text: pathTexts[first]})
	}
	return list
}

// pathTexts says what the parameter of a path names, by the path's first segment.
var pathTexts = map[string]string{
	"cluster":   "The node's name.",
	"plugins":   "The plugin's name.",
	"workflows": "The workflow's name.",
	"handlers":  "The handler's id, for its latest run, or a run's id.",
	"runs":      "The run's id, or a handler's id, for its latest run.",
	"results":   "The handler's id, for its latest run, or a run's id.",
	"events":    "The handler's id, or a run's id.",
	"sessions":  "The session's name; that of a handler's private session is the handler's id.",
	"tenants":   "The tenant's name.",
	"keys":      "The key's id.",
	"resources": "The resource's name, as plugins ask for it.",
}

var tenantParameter = parameter{
	name: apiwire.HeaderTenant, schema: schema{"type": "string", "minLength": 1},
	text: "The tenant in which the server's own key acts (default: \"default\"). With a tenant's key, only that tenant's name is valid.",
}

// errorName is an error's name among the components.
func errorName(status int) string { return "Error" + strconv.Itoa(status) }

// errorAnswers describes the answer for each error status.
func errorAnswers() schema {
	out := schema{}
	for _, code := range host.Codes(0) {
		status := code.HTTPStatus()
		if out[errorName(status)] != nil {
			continue
		}
		d := schema{
			"description": http.StatusText(status),
			"content":     both(errorSchema(host.Codes(status))).describe(),
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			d["headers"] = schema{"Retry-After": schema{
				"description": "Seconds to wait, if that is known.", "schema": schema{"type": "integer", "minimum": 1},
			}}
		}
		out[errorName(status)] = d
	}
	return out
}

// errorSchema is the schema of an error with one of the codes.
func errorSchema(codes []host.Code) schema {
	s := inline[apiwire.Error]()
	members := s["properties"].(schema)
	setCodes(members, codes)
	if !slices.Contains(codes, host.CodeInvalidPlugin) {
		delete(members, "problems")
	}
	if !slices.Contains(codes, host.CodeLimitExceeded) {
		delete(members, "limit")
	}
	return s
}

// setCodes limits the member that has the code of an error to the codes.
func setCodes(members schema, codes []host.Code) {
	members["code"].(schema)["enum"] = codes
}

// schemaNames lists the named schemas, sorted.
func schemaNames() []string { return slices.Sorted(maps.Keys(schemas)) }
