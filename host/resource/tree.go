package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/jsonfile"
)

// value is a JSON value with its position.
type value struct {
	at      int64
	data    any // string, json.Number, bool or nil; unused for objects and lists
	members []member
	items   []*value
	kind    byte // '{', '[', or 0 for scalars
}

type member struct {
	name  string
	at    int64
	value *value
}

// maxDepth is how deep a text may nest.
const maxDepth = 16

// reader reads JSON and collects problems.
type reader struct{ *jsonfile.Reader }

func newReader(text []byte) *reader { return &reader{jsonfile.NewReader(text)} }

// whole reads the only value of the text. If the text is not JSON, it records a problem
// and returns nil.
func (r *reader) whole() *value {
	v, err := r.next(0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = r.End()
		}
		r.Stop(err)
		return nil
	}
	at := r.Next()
	if _, _, err := r.Token(); !errors.Is(err, io.EOF) {
		r.Problem(at, "", "text follows the value")
	}
	return v
}

func (r *reader) next(depth int) (*value, error) {
	tok, at, err := r.Token()
	if err != nil {
		return nil, err
	}
	v := &value{at: at}
	switch tok {
	case json.Delim('{'), json.Delim('['):
		if depth == maxDepth {
			return nil, r.Fault(at, "more than %d objects and lists in each other", maxDepth)
		}
		v.kind = byte(tok.(json.Delim))
	default:
		v.data = tok
		return v, nil
	}
	for r.More() {
		var m member
		if v.kind == '{' {
			if tok, m.at, err = r.Token(); err != nil {
				return nil, err
			}
			m.name, _ = tok.(string) // the decoder accepts only a name here
			if slices.ContainsFunc(v.members, func(o member) bool { return o.name == m.name }) {
				r.Problem(m.at, "", "%q is given twice", clip(m.name))
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
	_, _, err = r.Token()
	return v, err
}

// fields reads an object with known names, each by its own function.
func (r *reader) fields(v *value, path string, known map[string]func(v *value, path string)) {
	if v.kind != '{' {
		r.Problem(v.at, path, "must be an object, not %s", v.show())
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
		r.Problem(m.at, path, "unknown name %q: use %s", clip(m.name), strings.Join(names, ", "))
	}
}

// each reads a list.
func (r *reader) each(v *value, path string, read func(v *value, path string)) {
	if v.kind != '[' {
		r.Problem(v.at, path, "must be a list, not %s", v.show())
		return
	}
	for i, item := range v.items {
		read(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// str reads a non-empty text.
func (r *reader) str(v *value, path string, into *string) {
	s, ok := v.data.(string)
	if !ok || s == "" {
		r.Problem(v.at, path, "must be a text that is not empty, not %s", v.show())
		return
	}
	*into = s
}

// number reads an integer between two bounds.
func (r *reader) number(v *value, path string, least, most int, into *int) {
	n, ok := v.data.(json.Number)
	i, err := n.Int64()
	if !ok || err != nil || i < int64(least) || i > int64(most) {
		r.Problem(v.at, path, "must be a whole number from %d to %d, not %s", least, most, v.show())
		return
	}
	*into = int(i)
}

// show formats a value for a message.
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

// clip bounds foreign text in a message.
func clip(s string) string { return abi.Clip(s, 200) }
