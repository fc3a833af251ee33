package main

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

	"github.com/weftrun/weft/host"
)

// field is one field of an event as the command line gives it.
type field struct {
	key   string
	value string
	raw   bool   // value is JSON whatever the schema says (key:=JSON)
	where string // what the user wrote, for messages
}

// parseFields reads arguments of the forms key=value and key:=JSON.
func parseFields(args []string) ([]field, error) {
	var fields []field
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usage("%q is neither key=value nor key:=JSON", arg)
		}
		f := field{key: key, value: value, where: arg}
		f.key, f.raw = strings.CutSuffix(key, ":")
		if f.key == "" {
			return nil, usage("%q has no key before the '='", arg)
		}
		if f.raw && !json.Valid([]byte(value)) {
			return nil, usage("%q: what follows := is not JSON; texts need quotes, as in '%s:=\"text\"', or use %s=text", arg, f.key, f.key)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// fileFields reads the fields of --file key=PATH and --stdin key. The path "-"
// is the standard input, which can be read once.
func fileFields(ctx context.Context, files []string, stdin string, in io.Reader) ([]field, error) {
	if stdin != "" {
		files = append(files[:len(files):len(files)], stdin+"=-")
	}
	var fields []field
	used := false
	for _, arg := range files {
		key, path, ok := strings.Cut(arg, "=")
		if !ok || key == "" || path == "" {
			return nil, usage("--file %q is not key=PATH", arg)
		}
		if path == "-" && used {
			return nil, usage("the standard input can be given to one field only")
		}
		used = used || path == "-"
		text, err := readText(ctx, path, in)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", key, err)
		}
		fields = append(fields, field{key: key, value: text, where: key + "=" + path})
	}
	return fields, nil
}

// readText reads a file whose content is sent as text.
func readText(ctx context.Context, path string, in io.Reader) (string, error) {
	if path != "-" {
		b, err := readAtMost(path, host.MaxRequestBytes)
		return string(b), err
	}
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	// A read of a terminal cannot be called off: when ctx ends, this is left
	// behind, and ends with the program.
	go func() {
		b, err := readSome(in, "the standard input", host.MaxRequestBytes)
		read <- input{b, err}
	}()
	select {
	case got := <-read:
		return string(got.text), got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// eventOf makes the JSON object of an event from its fields. Where the schema
// says that a field is no text, its value is read as JSON of that type; nil is
// a schema that says nothing.
func eventOf(fields []field, s *eventSchema) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	seen := map[string]bool{}
	for i, f := range fields {
		if seen[f.key] {
			return nil, usage("field %s is given twice", f.key)
		}
		seen[f.key] = true
		value, err := f.json(s)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := jsonText(f.key)
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

// json gives the field's value in JSON.
func (f field) json(s *eventSchema) ([]byte, error) {
	if f.raw {
		return []byte(f.value), nil
	}
	var allowed kinds
	if s != nil {
		allowed = s.kindsOf(f.key)
	}
	if len(allowed) == 0 || allowed["string"] {
		text, err := jsonText(f.value)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.key, err)
		}
		return text, nil
	}
	value := strings.TrimSpace(f.value)
	kind := kindOf(value)
	if allowed[kind] || kind == "integer" && allowed["number"] {
		return []byte(value), nil
	}
	return nil, usage("%s: field %s takes %s, such as %s", short(f.where), f.key, article(allowed), sample(f.key, allowed))
}

// kindOf gives the JSON type of a text, "" if it is no JSON.
func kindOf(text string) string {
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
		return nil, fmt.Errorf("%q is not UTF-8 text", short(s))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it would only make the request longer
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// short cuts what the user gave for a message.
func short(s string) string { return cut(s, 60) }

// article names types with their article: an integer, a number or null.
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

// sample shows how a field of the type is given.
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

// strays names the fields that the schema does not declare, if it declares any.
func strays(fields []field, s *eventSchema) []string {
	var list []string
	for _, f := range fields {
		if len(s.properties) > 0 && !s.declares(f.key) {
			list = append(list, printable(fmt.Sprintf("%s declares no field %q: %s", s.Title, f.key, meant(f.key, s.names(), "it has "+strings.Join(s.names(), ", ")))))
		}
	}
	return list
}
