package hosttest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/httpapi"
)

// Description is an OpenAPI document with which answers are compared. Objects with listed
// members may have no other members, so the document must describe everything that is
// answered. It may be used from any goroutine.
type Description struct {
	paths  []describedPath
	errors map[string]*jsonschema.Schema // errors outside any route, by status
}

type describedPath struct {
	segments []string // "{}" for a parameter
	methods  map[string]describedRoute
}

type describedRoute struct {
	queries []string
	bodies  map[string]describedBody // of requests
	answers map[string]map[string]describedBody
}

// describedBody is a body of one media type. Nil schemas accept everything.
type describedBody struct{ whole, item *jsonschema.Schema }

// Described returns the description of a server with all routes.
func Described(tb testing.TB) *Description {
	tb.Helper()
	d, err := ownDescription()
	if err != nil {
		tb.Fatalf("the description of the API does not read: %v", err)
	}
	return d
}

var ownDescription = sync.OnceValues(func() (*Description, error) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/openapi.json", nil)
	httpapi.New(httpapi.Config{Metrics: http.NotFoundHandler()}).Handler().ServeHTTP(w, r)
	return ReadDescription(w.Body.Bytes())
})

// AsDescribed fails a test if an answer does not match the API's description. It ignores
// benchmarks.
func AsDescribed(tb testing.TB, r *http.Request, sent []byte, status int, header http.Header, body []byte) {
	tb.Helper()
	if _, measures := tb.(*testing.B); measures {
		return
	}
	body, err := plain(header, body)
	if err == nil {
		err = Described(tb).Check(r, sent, status, header, body)
	}
	if err != nil {
		tb.Errorf("the answer is not as /openapi.json says (the tables are in host/httpapi/openapi and host/apiwire): %v", err)
	}
}

// plain returns the decompressed body of an answer.
func plain(header http.Header, body []byte) ([]byte, error) {
	if header.Get("Content-Encoding") != "gzip" || len(body) == 0 {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// documentURL is the document's URL in references.
const documentURL = "weft:openapi"

// ReadDescription reads a document.
func ReadDescription(text []byte) (*Description, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	doc, _ := parsed.(map[string]any)
	closeObjects(doc)
	r := descriptionReader{doc: doc, compiler: jsonschema.NewCompiler()}
	r.compiler.DefaultDraft(jsonschema.Draft2020)
	r.compiler.AssertFormat()
	if err := r.compiler.AddResource(documentURL, doc); err != nil {
		return nil, err
	}
	d := &Description{errors: map[string]*jsonschema.Schema{}}
	for path, methods := range object(doc["paths"]) {
		p := describedPath{methods: map[string]describedRoute{}}
		for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			if strings.HasPrefix(segment, "{") {
				segment = "{}"
			}
			p.segments = append(p.segments, segment)
		}
		for method := range object(methods) {
			p.methods[strings.ToUpper(method)] = r.route("paths", path, method)
		}
		d.paths = append(d.paths, p)
	}
	// Where a path with a name and one with a parameter match, the one with the name counts.
	// Its brace makes the parameter the later one.
	slices.SortFunc(d.paths, func(a, b describedPath) int { return slices.Compare(a.segments, b.segments) })
	for name := range object(object(doc["components"])["responses"]) {
		body := r.bodies("components", "responses", name, "content")["application/json"]
		d.errors[strings.TrimPrefix(name, "Error")] = body.whole
	}
	if r.err != nil {
		return nil, r.err
	}
	if len(d.paths) == 0 || len(d.errors) == 0 {
		return nil, fmt.Errorf("the description has %d paths and %d errors", len(d.paths), len(d.errors))
	}
	return d, nil
}

// closeObjects forbids further members in objects with listed members.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, listed := v["properties"].(map[string]any)
		if _, says := v["additionalProperties"]; listed && !says && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// descriptionReader parses a document. It keeps the first error.
type descriptionReader struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	err      error
}

// at looks up a place in the document. It follows references and also returns the final
// place.
func (r *descriptionReader) at(place ...string) (map[string]any, []string) {
	var found any = r.doc
	for i, name := range place {
		found = object(found)[name]
		if ref, ok := object(found)["$ref"].(string); ok && !strings.HasPrefix(ref, "#/components/schemas/") {
			return r.at(append(strings.Split(strings.TrimPrefix(ref, "#/"), "/"), place[i+1:]...)...)
		}
	}
	return object(found), place
}

func (r *descriptionReader) route(place ...string) describedRoute {
	op, _ := r.at(place...)
	route := describedRoute{bodies: r.bodies(append(place, "requestBody", "content")...), answers: map[string]map[string]describedBody{}}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		if p := object(p); p["in"] == "query" {
			route.queries = append(route.queries, p["name"].(string))
		}
	}
	for status := range object(op["responses"]) {
		route.answers[status] = r.bodies(append(slices.Clone(place), "responses", status, "content")...)
	}
	return route
}

func (r *descriptionReader) bodies(place ...string) map[string]describedBody {
	out := map[string]describedBody{}
	found, place := r.at(place...)
	for kind := range found {
		out[kind] = describedBody{
			whole: r.schema(append(slices.Clone(place), kind, "schema")),
			item:  r.schema(append(slices.Clone(place), kind, "x-item-schema")),
		}
	}
	return out
}

// schema compiles the schema at a place. It returns nil if there is none.
func (r *descriptionReader) schema(place []string) *jsonschema.Schema {
	if found, _ := r.at(place[:len(place)-1]...); found[place[len(place)-1]] == nil {
		return nil
	}
	pointer := "#"
	for _, name := range place {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	s, err := r.compiler.Compile(documentURL + pointer)
	if err != nil && r.err == nil {
		r.err = err
	}
	return s
}

// Check returns how an answer to a request differs from the description. sent is the
// request's body; if the request succeeded, the body must match too. Check ignores
// OPTIONS, which belongs to no route.
func (d *Description) Check(r *http.Request, sent []byte, status int, header http.Header, body []byte) error {
	if r.Method == http.MethodOptions {
		return nil
	}
	code := strconv.Itoa(status)
	route, ok := d.route(r)
	if !ok {
		s := d.errors[code]
		if s == nil || status != 404 && status != 405 && status != 401 && status != 403 && status != 503 {
			return fmt.Errorf("%s %s is not a route, and was answered with %d", r.Method, r.URL.Path, status)
		}
		return fits(describedBody{whole: s}, "application/json", header, body, r.Method)
	}
	bodies, ok := route.answers[code]
	if !ok {
		return fmt.Errorf("%s %s: status %d is not in the description: %s", r.Method, r.URL.Path, status, body)
	}
	if err := d.taken(route, r, sent, status); err != nil {
		return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	if len(bodies) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%s %s: %d has a body, which is not in the description: %s", r.Method, r.URL.Path, status, body)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	b, ok := bodies[kind]
	if err != nil || !ok {
		return fmt.Errorf("%s %s: %d has the media type %q, which is not in the description", r.Method, r.URL.Path, status, kind)
	}
	if err := fits(b, kind, header, body, r.Method); err != nil {
		return fmt.Errorf("%s %s: %d: %w: %s", r.Method, r.URL.Path, status, err, body)
	}
	return nil
}

// route finds the route of a request. HEAD has the routes of GET, except streams.
func (d *Description) route(r *http.Request) (describedRoute, bool) {
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, p := range d.paths {
		if !slices.EqualFunc(p.segments, segments, func(want, is string) bool { return want == is || want == "{}" && is != "" }) {
			continue
		}
		method := r.Method
		if method == http.MethodHead && p.segments[0] != "events" {
			method = http.MethodGet
		}
		route, ok := p.methods[method]
		return route, ok
	}
	return describedRoute{}, false
}

// taken compares a successful request with the description.
func (d *Description) taken(route describedRoute, r *http.Request, sent []byte, status int) error {
	if status >= 300 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	b, ok := route.bodies[kind]
	if err != nil || !ok {
		kind = "application/json"
		b = route.bodies[kind]
	}
	if sent = bytes.TrimSpace(sent); b.whole == nil || len(sent) == 0 || string(sent) == "null" {
		return nil
	}
	if err := valid(b.whole, kind, sent); err != nil {
		return fmt.Errorf("a body was taken that does not fit: %w: %s", err, sent)
	}
	return nil
}

// fits compares a body with its schema.
func fits(b describedBody, kind string, header http.Header, body []byte, method string) error {
	if method == http.MethodHead {
		return nil
	}
	switch {
	case b.item != nil:
		for line := range bytes.Lines(body) {
			if kind != "application/x-ndjson" {
				var data bool
				if line, data = bytes.CutPrefix(line, []byte("data: ")); !data {
					continue
				}
			}
			if err := valid(b.item, "application/json", line); err != nil {
				return err
			}
		}
		return nil
	case b.whole == nil || strings.HasPrefix(kind, "text/"):
		return nil
	default:
		if got, _, _ := mime.ParseMediaType(header.Get("Content-Type")); got == "application/cbor" {
			kind = got
		}
		return valid(b.whole, kind, body)
	}
}

// valid validates JSON or CBOR against a schema.
func valid(s *jsonschema.Schema, kind string, body []byte) error {
	if kind == "application/cbor" {
		text, err := abi.AppendJSON(nil, body)
		if err != nil {
			return err
		}
		body = text
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("there is more than one value")
	}
	return s.Validate(v)
}
