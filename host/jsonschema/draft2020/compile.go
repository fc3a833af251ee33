// Package draft2020 reads JSON Schema of the draft 2020-12 with all its keywords. A library
// checks the schema and resolves its references; the result is a schema of package
// jsonschema, which evaluates it.
//
// The package must not know what is checked with a schema. Guest projects contain
// package jsonschema, and so the library stays out of there.
package draft2020

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weftrun/weft/abi"
	weft "github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/pattern"
)

const (
	// schemaURL names a schema while it is compiled.
	schemaURL = "weft:schema"
	dialect   = "https://json-schema.org/draft/2020-12/schema"

	maxSchemaBytes    = 64 << 10 // of one schema
	maxSchemaProblems = 10       // that are listed of one schema
)

// noRemote refuses to load any document: a schema stands alone.
type noRemote struct{}

func (noRemote) Load(string) (any, error) {
	return nil, errors.New("a schema cannot refer to another document")
}

// Compile compiles an encoded schema, or returns what is wrong with the schema, in one
// to ten lines. The schema stands alone and has 64 KiB at most.
func Compile(raw abi.Raw) (s *weft.Schema, problems []string) {
	if len(raw) > maxSchemaBytes {
		return nil, []string{fmt.Sprintf("it has %d bytes, at most %d are allowed", len(raw), maxSchemaBytes)}
	}
	text, err := abi.ToJSON(raw)
	if err != nil {
		return nil, []string{err.Error()}
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, []string{err.Error()}
	}
	document, ok := decoded.(map[string]any)
	if !ok {
		return nil, []string{"it is not an object"}
	}
	if problems := standsAlone(document); len(problems) > 0 {
		return nil, problems
	}
	defer func() {
		if r := recover(); r != nil { // the library's
			s, problems = nil, []string{fmt.Sprintf("it cannot be compiled: %v", r)}
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noRemote{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, []string{err.Error()}
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, schemaProblems(err)
	}
	if s, err = translate(c, compiled); err != nil {
		return nil, []string{err.Error()}
	}
	return s, nil
}

// standsAlone refuses other drafts, and schemas within the schema that have an
// identity of their own: with one document and one draft, a dynamic reference
// within the document is the same as a plain one.
func standsAlone(document map[string]any) (problems []string) {
	if draft, ok := document["$schema"].(string); ok && strings.TrimSuffix(draft, "#") != dialect {
		problems = append(problems, fmt.Sprintf("$schema %.100q is not supported: leave it out, or use %s", draft, dialect))
	}
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case []any:
			for i, item := range v {
				walk(item, fmt.Sprintf("%s/%d", path, i))
			}
		case map[string]any:
			for _, key := range []string{"$id", "$schema"} {
				if _, ok := v[key].(string); ok && path != "" {
					problems = append(problems, fmt.Sprintf("at '%.200s': %s is only allowed at the top", path, key))
				}
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], path+"/"+key)
			}
		}
	}
	walk(document, "")
	return problems[:min(len(problems), maxSchemaProblems)]
}

// schemaProblems puts what the library says about a schema into lines.
func schemaProblems(err error) []string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		var wrong *jsonschema.SchemaValidationError
		if !errors.As(err, &wrong) || !errors.As(wrong.Err, &invalid) {
			return []string{strings.ReplaceAll(err.Error(), schemaURL, "the schema")}
		}
	}
	var problems []string
	for line := range strings.Lines(invalid.Error()) {
		line = strings.TrimLeft(strings.TrimSpace(line), "- ")
		if strings.HasPrefix(line, "jsonschema validation failed") || strings.HasSuffix(line, "' failed") {
			continue // the lines that follow say what failed
		}
		if !slices.Contains(problems, line) && len(problems) < maxSchemaProblems {
			problems = append(problems, line)
		}
	}
	if len(problems) == 0 {
		problems = []string{"it is not valid JSON Schema"}
	}
	return problems
}

// mostPattern bounds the patterns of schemas.
var mostPattern = pattern.Most{Bytes: maxSchemaBytes, States: 2_000}

// compiledPattern is a pattern as the library wants it.
type compiledPattern struct{ *pattern.Pattern }

// MatchString implements jsonschema.Regexp.
func (p compiledPattern) MatchString(text string) bool {
	ok, _ := p.Match(nil, text)
	return ok
}

// compilePattern is the regular expressions' engine.
func compilePattern(expr string) (jsonschema.Regexp, error) {
	p, err := pattern.Compile(expr, mostPattern)
	if err != nil {
		return nil, err
	}
	return compiledPattern{p}, nil
}
