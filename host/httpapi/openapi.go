package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// Paths of the description of the API, for programs and for people.
const (
	pathDescription = "/openapi.json"
	pathDocs        = "/docs"
)

// Media types of answers, beside JSON and CBOR.
const (
	sseType    = "text/event-stream"
	ndjsonType = "application/x-ndjson"
	htmlType   = "text/html"
	plainType  = "text/plain"
	// metricsType is what Prometheus asks for first.
	metricsType = "application/openmetrics-text"
)

// operation describes what a route does. What all routes have in common (the header
// that names the tenant, the errors of authentication) is not in it.
type operation struct {
	group   string // under which people look for it
	id      string // of its own, for generated clients
	summary string
	text    string // more of it, in Markdown without markup
	query   []parameter
	headers []parameter
	body    *content // nil: the route reads none
	answers []answer // without errors
	fails   []int    // statuses of errors, beside those that every route has
}

// parameter is one of the query or a header.
type parameter struct {
	name   string
	schema schema
	text   string
	many   bool // it may be given several times
}

// content is a body by media type; the types share its schema unless it is nil.
type content struct {
	types  []string
	schema schema
	needed bool
	// items is the schema of each event of a stream.
	items schema
}

// answer is one that is no error.
type answer struct {
	status  int
	text    string
	body    *content // nil: there is none
	headers map[string]string
}

// descriptionRoutes joins the paths of the description to handlers. It is made when
// it is first asked for: until then not all routes are there.
func (s *Server) descriptionRoutes(read func(path string, h echo.HandlerFunc)) {
	read(pathDescription, func(c echo.Context) error {
		return send(c, http.StatusOK, echo.MIMEApplicationJSON, s.pages().json)
	})
	// A browser that is sent to the server's address finds something to read.
	read("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, pathDocs) })
	read(pathDocs, func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return send(c, http.StatusOK, echo.MIMETextHTMLCharsetUTF8, s.pages().html)
	})
}

// descriptionPages are the description in both its forms.
type descriptionPages struct{ json, html []byte }

func (s *Server) makePages() descriptionPages {
	text, err := json.Marshal(s.describe())
	if err != nil {
		panic(err) // it is made of maps, lists and texts alone
	}
	return descriptionPages{json: text, html: s.docsPage()}
}

// describe makes the OpenAPI document of the routes that the server has.
func (s *Server) describe() schema {
	paths := map[string]schema{}
	for _, r := range s.Routes() {
		op, ok := operations[routeOf(r.Method, r.Path)]
		if !ok {
			continue // a test finds it
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
	version := s.cfg.Version
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

// pathParam finds the parameters of a route.
var pathParam = regexp.MustCompile(`:([a-z]+)`)

// pathTemplate is a route's path as OpenAPI writes it.
func pathTemplate(path string) string { return pathParam.ReplaceAllString(path, "{$1}") }

// describe makes the description of a route.
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

// errorStatuses lists the errors that a route may answer, without those that its
// answers tell of.
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
		list = append(list, parameter{name: name, schema: schema{"type": "string", "minLength": 1}, text: pathTexts[first]})
	}
	return list
}

// pathTexts says what the parameter of a path names, by the path's first segment.
var pathTexts = map[string]string{
	"plugins":   "The plugin's name.",
	"workflows": "The workflow's name.",
	"handlers":  "The handler's id, for its latest run, or a run's id.",
	"results":   "The handler's id, for its latest run, or a run's id.",
	"events":    "The handler's id, or a run's id.",
	"sessions":  "The session's name; that of a handler's private session is the handler's id.",
	"tenants":   "The tenant's name.",
	"keys":      "The key's id.",
	"resources": "The resource's name, as plugins ask for it.",
}

var tenantParameter = parameter{
	name: headerTenant, schema: schema{"type": "string", "minLength": 1},
	text: "The tenant in which the server's own key acts (default: \"default\"). With a tenant's key, only that tenant's name is valid.",
}

// errorName is an error's name among the components.
func errorName(status int) string { return "Error" + strconv.Itoa(status) }

// errorAnswers describes the answer of each status that an error has.
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

// errorSchema is that of an error with one of the codes.
func errorSchema(codes []host.Code) schema {
	members := []member{
		must("detail", aText, "The error, for people."),
		must("code", schema{"type": "string", "enum": codes}, "The error, for programs."),
	}
	if slices.Contains(codes, host.CodeInvalidPlugin) {
		members = append(members, may("problems", listOf(ref("Problem")), "Every problem of the plugin or the workflow."))
	}
	if slices.Contains(codes, host.CodeLimitExceeded) {
		members = append(members, may("limit", ref("Breach"), "The tenant's limit, if one was exceeded."))
	}
	return object("An error.", members...)
}

// schemaNames lists the schemas that have names, sorted.
func schemaNames() []string { return slices.Sorted(maps.Keys(schemas)) }
