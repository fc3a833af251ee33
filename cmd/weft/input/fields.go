// Package input makes events from the command line: fields in the form key=value, whose
// types come from the event's schema, and texts from files.
//
// It does not depend on the use of an event.
package input

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// Field is one field of an event on the command line.
type Field struct {
	Key   string
	value string
	raw   bool   // value is JSON, independent of the schema (key:=JSON)
	Where string // what the user wrote, for messages
}

// Parse reads arguments of the forms key=value and key:=JSON.
func Parse(args []string) ([]Field, error) {
	var fields []Field
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, cli.Usage("%q is neither key=value nor key:=JSON", arg)
		}
		f := Field{Key: key, value: value, Where: arg}
		f.Key, f.raw = strings.CutSuffix(key, ":")
		if f.Key == "" {
			return nil, cli.Usage("%q has no key before the '='", arg)
		}
		if f.raw && !json.Valid([]byte(value)) {
			return nil, cli.Usage("%q: what follows := is not JSON; texts need quotes, as in '%s:=\"text\"', or use %s=text", arg, f.Key, f.Key)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// Sources are the flags of commands that take fields of an event from files.
type Sources struct {
	Files []string
	Stdin string
}

// Flags adds the flags to a command's flags.
func (s *Sources) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.Files, "file", nil, "field whose value is the text of a file, `key=PATH` (- is the standard input; repeatable)")
	f.StringVar(&s.Stdin, "stdin", "", "field (`KEY`) whose value is the text of the standard input")
}

// FileFields reads the fields of --file key=PATH and --stdin key. The path "-" is the
// standard input, which can be read only once.
func FileFields(ctx context.Context, files []string, stdin string, in io.Reader) ([]Field, error) {
	if stdin != "" {
		files = append(files[:len(files):len(files)], stdin+"=-")
	}
	var fields []Field
	used := false
	for _, arg := range files {
		key, path, ok := strings.Cut(arg, "=")
		if !ok || key == "" || path == "" {
			return nil, cli.Usage("--file %q is not key=PATH", arg)
		}
		if path == "-" && used {
			return nil, cli.Usage("the standard input can be given to one field only")
		}
		used = used || path == "-"
		text, err := cli.ReadText(ctx, path, in)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", key, err)
		}
		fields = append(fields, Field{Key: key, value: text, Where: key + "=" + path})
	}
	return fields, nil
}

// Event makes the JSON object of an event from its fields. If the schema says that a
// field is not a text, its value is read as JSON of the field's type. A nil schema
// declares nothing.
func Event(fields []Field, s *Schema) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	seen := map[string]bool{}
	for i, f := range fields {
		if seen[f.Key] {
			return nil, cli.Usage("field %s is given twice", f.Key)
		}
		seen[f.Key] = true
		value, err := f.JSON(s)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := jsonText(f.Key)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// JSON returns the field's value in JSON.
func (f Field) JSON(s *Schema) ([]byte, error) {
	if f.raw {
		return []byte(f.value), nil
	}
	var allowed kinds
	if s != nil {
		allowed = s.KindsOf(f.Key)
	}
	if len(allowed) == 0 || allowed["string"] {
		text, err := jsonText(f.value)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Key, err)
		}
		return text, nil
	}
	value := strings.TrimSpace(f.value)
	kind := KindOf(value)
	if allowed[kind] || kind == "integer" && allowed["number"] {
		return []byte(value), nil
	}
	return nil, cli.Usage("%s: field %s takes %s, such as %s", Short(f.Where), f.Key, article(allowed), sample(f.Key, allowed))
}

// KindOf returns the JSON type of a text, "" if it is not JSON.
func KindOf(text string) string {
	if text == "" || !json.Valid([]byte(text)) {
		return ""
	}
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) {
		return "integer"
	}
	return "number"
}

// jsonText writes a text as JSON.
func jsonText(s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%q is not UTF-8 text", Short(s))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // escapes would only make the request longer
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Short shortens user input for a message.
func Short(s string) string { return screen.Cut(s, 60) }

// article lists types with their articles: an integer, a number or null.
func article(k kinds) string {
	names := strings.Split(k.String(), " or ")
	for i, name := range names {
		switch name {
		case "integer", "array", "object":
			names[i] = "an " + name
		case "number", "boolean":
			names[i] = "a " + name
		}
	}
	return strings.Join(names, " or ")
}

// sample shows how to enter a field of the type.
func sample(key string, k kinds) string {
	switch {
	case k["integer"]:
		return key + "=3"
	case k["number"]:
		return key + "=0.5"
	case k["boolean"]:
		return key + "=true"
	case k["array"]:
		return "'" + key + `=["a","b"]'`
	case k["object"]:
		return "'" + key + `={"a":1}'`
	default:
		return key + "=null"
	}
}

// Strays lists the fields that the schema does not declare, if the schema declares any.
func Strays(fields []Field, s *Schema) []string {
	var list []string
	for _, f := range fields {
		if len(s.Properties) > 0 && !s.declares(f.Key) {
			list = append(list, screen.Printable(fmt.Sprintf("%s declares no field %q: %s", s.Title, f.Key, cli.Meant(f.Key, s.Names(), "it has "+strings.Join(s.Names(), ", ")))))
		}
	}
	return list
}
