package openapi

import (
	"bytes"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host"
)

//go:embed page.html
var docsTemplate string

var docs = template.Must(template.New("docs").Parse(docsTemplate))

// docsView is the content of the page.
type docsView struct {
	Version, Text, Security string
	Groups                  []docsGroup
	Schemas                 []docsSchema
	Errors                  []docsError
}

type docsGroup struct {
	Name, Text, Anchor string
	Routes             []docsRoute
}

type docsRoute struct {
	ID, Method, Path, Summary, Text, Least string
	Params                                 []docsParam
	Body                                   *docsBody
	Needed                                 bool // the body
	Answers                                []docsAnswer
	Fails                                  []int
}

type docsParam struct {
	Name, In, Text string
	Type           docsType
	Many           bool
}

// docsBody is a body: its type, and its members unless the type has a name.
type docsBody struct {
	Media   string
	Type    docsType
	Members []docsMember
}

type docsAnswer struct {
	Status int
	Text   string
	Body   *docsBody
}

type docsSchema struct {
	Name, Text string
	Type       docsType
	Members    []docsMember
}

type docsMember struct {
	Name, Text string
	Needed     bool
	Type       docsType
	Members    []docsMember // of an unnamed object, or of a list of such objects
}

type docsError struct {
	Status int
	Codes  string
}

// docsType is a type in words; words with a Ref are names of schemas.
type docsType []docsWord

type docsWord struct {
	Text string
	Ref  bool
}

// docsPage makes the page of the server's routes.
func (d *document) page() []byte {
	view := docsView{Version: d.version, Text: descriptionText, Security: securityText}
	for _, g := range groups {
		shown := docsGroup{Name: g.name, Text: g.text, Anchor: strings.ReplaceAll(strings.ToLower(g.name), " ", "-")}
		for _, r := range d.routes {
			if op, ok := operations[r.String()]; ok && op.group == g.name {
				shown.Routes = append(shown.Routes, op.shown(r))
			}
		}
		view.Groups = append(view.Groups, shown)
	}
	for _, name := range schemaNames() {
		about, _ := schemas[name]["description"].(string)
		d := docsSchema{Name: name, Text: about, Members: membersOf(schemas[name])}
		if d.Members == nil {
			d.Type = typeOf(schemas[name])
		}
		view.Schemas = append(view.Schemas, d)
	}
	view.Errors = docsErrors()
	var page bytes.Buffer
	if err := docs.Execute(&page, view); err != nil {
		panic(err) // a test checks that the template fits the view
	}
	return page.Bytes()
}

func docsErrors() []docsError {
	statuses := map[int]bool{}
	for _, code := range host.Codes(0) {
		statuses[code.HTTPStatus()] = true
	}
	var list []docsError
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		var codes []string
		for _, code := range host.Codes(status) {
			codes = append(codes, string(code))
		}
		list = append(list, docsError{status, strings.Join(codes, ", ")})
	}
	return list
}

// shown returns a route as the page shows it.
func (op *operation) shown(r Route) docsRoute {
	d := docsRoute{
		ID: op.id, Method: r.Method, Path: pathTemplate(r.Path), Summary: op.summary, Text: op.text,
		Least: string(r.Least), Fails: op.errorStatuses(r),
	}
	add := func(in string, list []parameter) {
		for _, p := range list {
			d.Params = append(d.Params, docsParam{Name: p.name, In: in, Text: p.text, Type: typeOf(p.schema), Many: p.many})
		}
	}
	add("path", pathParams(r.Path))
	add("query", op.query)
	add("header", op.headers)
	if op.body != nil {
		d.Body, d.Needed = op.body.shown(), op.body.needed
	}
	for _, a := range op.answers {
		shown := docsAnswer{Status: a.status, Text: a.text}
		if a.body != nil {
			shown.Body = a.body.shown()
		}
		d.Answers = append(d.Answers, shown)
	}
	return d
}

func (b *content) shown() *docsBody {
	d := &docsBody{Media: strings.Join(b.types, ", ")}
	switch {
	case b.items != nil:
		d.Type = append(docsType{{Text: "stream of "}}, typeOf(b.items)...)
	case b.schema == nil:
		d.Type = docsType{{Text: "bytes"}}
	default:
		d.Type, d.Members = typeOf(b.schema), membersOf(b.schema)
	}
	return d
}

// membersOf lists the members of an object, required members first; nil if the schema is
// not an object.
func membersOf(s schema) []docsMember {
	props, _ := s["properties"].(schema)
	needed, _ := s["required"].([]string)
	var list []docsMember
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p := props[name].(schema)
		about, _ := p["description"].(string)
		inner := p
		if items, ok := p["items"].(schema); ok {
			inner = items
		}
		list = append(list, docsMember{
			Name: name, Text: about, Needed: slices.Contains(needed, name), Type: typeOf(p), Members: membersOf(inner),
		})
	}
	slices.SortStableFunc(list, func(a, b docsMember) int {
		switch {
		case a.Needed == b.Needed:
			return 0
		case a.Needed:
			return -1
		default:
			return 1
		}
	})
	return list
}

// typeOf describes in words the values that a schema allows.
func typeOf(s schema) docsType {
	if name, ok := s["$ref"].(string); ok {
		return docsType{{Text: name[strings.LastIndexByte(name, '/')+1:], Ref: true}}
	}
	if list, ok := s["anyOf"].([]schema); ok {
		var out docsType
		for _, one := range list {
			if one["const"] == "" || one["maxProperties"] == 0 {
				continue // other forms of an absent value; null is enough for people
			}
			if out != nil {
				out = append(out, docsWord{Text: " or "})
			}
			out = append(out, typeOf(one)...)
		}
		return out
	}
	if items, ok := s["items"].(schema); ok {
		return append(docsType{{Text: "list of "}}, typeOf(items)...)
	}
	if values, ok := s["additionalProperties"].(schema); ok {
		return append(docsType{{Text: "object of "}}, typeOf(values)...)
	}
	return docsType{{Text: plainTypeOf(s)}}
}

// plainTypeOf does the same for a schema without nested schemas.
func plainTypeOf(s schema) string {
	var words []string
	switch kind := s["type"].(type) {
	case string:
		words = append(words, kind)
	case []string:
		words = append(words, strings.Join(kind, " or "))
	default:
		if _, fixed := s["const"]; !fixed {
			words = append(words, "any")
		}
	}
	switch values := s["enum"].(type) {
	case nil:
	case []string:
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = strconv.Quote(v)
		}
		words = []string{strings.Join(quoted, ", ")}
	default:
		words = []string{"code"}
	}
	for _, key := range []string{"format", "const", "minimum", "maximum", "minLength", "maxLength", "default", "pattern"} {
		if v, ok := s[key]; ok {
			words = append(words, fmt.Sprint(docsKeys[key], v))
		}
	}
	return strings.Join(words, ", ")
}

// docsKeys are the page's words for the bounds of a type.
var docsKeys = map[string]string{
	"format": "", "const": "always ", "minimum": "from ", "maximum": "to ", "minLength": "characters from ",
	"maxLength": "characters to ", "default": "default ", "pattern": "matches ",
}
