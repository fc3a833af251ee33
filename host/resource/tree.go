package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// FileError lists what is wrong with a file of resources, or with a definition.
type FileError struct {
	// Problems has one line for each, which begins with its place; at least one.
	Problems []string
}

// Error gives all problems, one a line if there are several.
func (e *FileError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	return fmt.Sprintf("%d problems:\n  - %s", len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

// value is a JSON value that knows its place.
type value struct {
	at      int64
	data    any // string, json.Number, bool or nil; of no object and no list
	members []member
	items   []*value
	kind    byte // '{', '[', or 0 for the others
}

type member struct {
	name  string
	at    int64
	value *value
}

// The bounds of a text: how deep it nests, and how many problems are told.
const (
	maxDepth    = 16
	maxProblems = 50
)

// reader reads JSON and gathers what is wrong with it.
type reader struct {
	text     []byte
	dec      *json.Decoder
	problems []string
}

func newReader(text []byte) *reader {
	r := &reader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	return r
}

// place is the beginning of a problem's line.
func (r *reader) place(at int64) string {
	before := r.text[:min(at, int64(len(r.text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d: ", line, column)
}

// problem notes what is wrong at a place: path is the names on the way to it.
func (r *reader) problem(at int64, path, format string, args ...any) {
	if len(r.problems) == maxProblems {
		return
	}
	text := r.place(at)
	if path != "" {
		text += path + ": "
	}
	r.problems = append(r.problems, text+fmt.Sprintf(format, args...))
}

// err is what was wrong, if anything was.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &FileError{Problems: r.problems}
}

// whole reads the one value of the text; nil if it is no JSON, which is noted.
func (r *reader) whole() *value {
	v, err := r.next(0)
	if err == nil {
		at := r.ahead()
		if _, more := r.dec.Token(); !errors.Is(more, io.EOF) {
			r.problem(at, "", "more follows the end of the value")
		}
		return v
	}
	at, reason := int64(len(r.text)), "the text ends in the middle"
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at, reason = max(syntax.Offset-1, 0), "no JSON: "+err.Error()
	} else if errors.Is(err, errDeep) {
		at, reason = r.dec.InputOffset(), err.Error()
	}
	r.problem(at, "", "%s", reason)
	return nil
}

var errDeep = fmt.Errorf("more than %d objects and lists in each other", maxDepth)

// ahead is where the next token begins.
func (r *reader) ahead() int64 {
	at := r.dec.InputOffset()
	for at < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return at
}

func (r *reader) next(depth int) (*value, error) {
	v := &value{at: r.ahead()}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'), json.Delim('['):
		if depth == maxDepth {
			return nil, errDeep
		}
		v.kind = byte(tok.(json.Delim))
	default:
		v.data = tok
		return v, nil
	}
	for r.dec.More() {
		var m member
		if v.kind == '{' {
			m.at = r.ahead()
			tok, err := r.dec.Token()
			if err != nil {
				return nil, err
			}
			m.name, _ = tok.(string) // the decoder takes nothing else here
			if slices.ContainsFunc(v.members, func(o member) bool { return o.name == m.name }) {
				r.problem(m.at, "", "%q is given twice", clip(m.name))
			}
		}
		if m.value, err = r.next(depth + 1); err != nil {
			return nil, err
		}
		if v.kind == '{' {
			v.members = append(v.members, m)
		} else {
			v.items = append(v.items, m.value)
		}
	}
	_, err = r.dec.Token()
	return v, err
}

// fields reads an object whose names are known, each by a function of its own.
func (r *reader) fields(v *value, path string, known map[string]func(v *value, path string)) {
	if v.kind != '{' {
		r.problem(v.at, path, "must be an object, not %s", v.show())
		return
	}
	for _, m := range v.members {
		if read := known[m.name]; read != nil {
			read(m.value, join(path, m.name))
			continue
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		r.problem(m.at, path, "unknown name %q: use %s", clip(m.name), strings.Join(names, ", "))
	}
}

// each reads a list.
func (r *reader) each(v *value, path string, read func(v *value, path string)) {
	if v.kind != '[' {
		r.problem(v.at, path, "must be a list, not %s", v.show())
		return
	}
	for i, item := range v.items {
		read(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// str reads a text that is not empty.
func (r *reader) str(v *value, path string, into *string) {
	s, ok := v.data.(string)
	if !ok || s == "" {
		r.problem(v.at, path, "must be a text that is not empty, not %s", v.show())
		return
	}
	*into = s
}

// number reads a whole number between two bounds.
func (r *reader) number(v *value, path string, least, most int, into *int) {
	n, ok := v.data.(json.Number)
	i, err := n.Int64()
	if !ok || err != nil || i < int64(least) || i > int64(most) {
		r.problem(v.at, path, "must be a whole number from %d to %d, not %s", least, most, v.show())
		return
	}
	*into = int(i)
}

// show is a value for people.
func (v *value) show() string {
	switch d := v.data.(type) {
	case string:
		return fmt.Sprintf("%q", clip(d))
	case json.Number:
		return clip(d.String())
	case bool:
		return fmt.Sprint(d)
	}
	switch v.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "null"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip cuts what comes from outside for a message.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
