package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/work"
)

func mustCompile(tb testingTB, text string) *Schema {
	tb.Helper()
	s, err := CompileSchema(rawJSON(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestSchemaKeywords(t *testing.T) {
	tests := []struct{ schema, good, bad string }{
		{`true`, `1 null {} []`, ``},
		{`false`, ``, `1 null {} []`},
		{`{}`, `1 null {} []`, ``},
		{`{"type":"null"}`, `null`, `0 false`},
		{`{"type":"boolean"}`, `true false`, `0 null`},
		{`{"type":"integer"}`, `1 -1 1.0 1e300 18446744073709551615`, `1.5 "1"`},
		{`{"type":"number"}`, `1 1.5`, `"1" null`},
		{`{"type":"string"}`, `"" {"$bytes":"AA=="}`, `1 {}`},
		{`{"type":"array"}`, `[]`, `{}`},
		{`{"type":"object"}`, `{}`, `[] {"$bytes":""}`},
		{`{"type":["string","null"]}`, `"" null`, `1`},
		{`{"enum":[1,"a",[1.0]]}`, `1 1.0 "a" [1] [1.0]`, `2 "b" [2] [1,1] [] "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`},
		{`{"const":{"a":2.0}}`, `{"a":2} {"a":2.0}`, `{"a":2.5} {} {"b":2} 2`},
		{`{"const":-0.0}`, `0 0.0 -0.0`, `1`},
		{`{"const":1e300}`, `1e300`, `1e301`},
		{`{"const":18446744073709551616.0}`, `18446744073709551616.0`, `18446744073709551615`},
		{`{"const":9223372036854775808}`, `9223372036854775808 9223372036854775808.0`, `9223372036854775807 -9223372036854775808`},
		{`{"const":-9223372036854775808}`, `-9223372036854775808.0`, `9223372036854775808.0`},
		{`{"const":65504}`, `65504.0 65504`, `65505`},
		{`{"minimum":1}`, `1 1.0 2 "text"`, `0 0.9 -1`},
		{`{"maximum":1.5}`, `1 1.5 -9`, `2 1.6`},
		{`{"exclusiveMinimum":1}`, `1.1 2`, `1 1.0`},
		{`{"exclusiveMaximum":18446744073709551615}`, `18446744073709551614`, `18446744073709551615 18446744073709551616.0`},
		{`{"maximum":9007199254740992.0}`, `9007199254740992`, `9007199254740993`},
		{`{"minLength":2,"maxLength":3.0}`, `"ää" "abc" 1`, `"ä" "abcd" {"$bytes":"AA=="}`},
		{`{"minItems":1,"maxItems":2}`, `[1] [1,2] {}`, `[] [1,2,3]`},
		{`{"minProperties":1,"maxProperties":1}`, `{"a":1} []`, `{} {"a":1,"b":1}`},
		{`{"pattern":"^a+$"}`, `"aa" 1`, `"b" "" {"$bytes":"AA=="}`},
		{`{"required":["a","b"]}`, `{"a":1,"b":null} 1`, `{"a":1} {}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":""} {"b":1} {} 1`, `{"a":1}`},
		{`{"properties":{"a":true},"additionalProperties":false}`, `{"a":1} {}`, `{"b":1} {"a":1,"b":1}`},
		{`{"properties":{"a":true},"additionalProperties":{"type":"string"}}`, `{"a":1,"b":""}`, `{"a":1,"b":1}`},
		{`{"items":{"minimum":0}}`, `[] [1,2] {}`, `[1,-1]`},
		{`{"items":false}`, `[] 1`, `[1]`},
		{`{"title":"t","description":"d","default":{},"$schema":"s"}`, `1`, ``},
	}
	for _, tt := range tests {
		s := mustCompile(t, `{"properties":{"v":`+tt.schema+`}}`)
		check := func(values string, good bool) {
			for v := range strings.FieldsSeq(values) {
				root := fromJSON(t, `{"v":`+v+`}`)
				_, changes := mustApply(t, nil, set("v", rawJSON(t, v)))
				whole, along := s.Check(root, nil), s.Check(root, changes)
				if (whole == nil) != good || (along == nil) != good {
					t.Errorf("%s on %s: %v, along the path: %v", tt.schema, v, whole, along)
				}
				var e *SchemaError
				if !good && (!errors.As(whole, &e) || e.Path != "v" && !strings.HasPrefix(e.Path, "v.") || e.Reason == "") {
					t.Errorf("%s on %s: %v names no path", tt.schema, v, whole)
				}
			}
		}
		check(tt.good, true)
		check(tt.bad, false)
	}
}

func TestCompileSchemaReportsAll(t *testing.T) {
	_, err := CompileSchema(rawJSON(t, `{
		"type": "text", "$ref": "#", "required": ["a", "a", 1], "enum": [],
		"properties": {"a": {"type": [], "minLength": -1, "format": "date"}, "b": 1, "c": {"pattern": "("}, "d": {"items": {"oneOf": []}}},
		"additionalProperties": 1, "minimum": "1", "maxItems": 1.5, "const": 1
	}`))
	if err == nil {
		t.Fatal("no error")
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("%T", err)
	}
	for _, e := range joined.Unwrap() {
		wantCode(t, e, abi.StatusInvalidMessage)
	}
	for _, want := range []string{
		`type: there is no type "text"`, `$ref: state schemas do not have the keyword "$ref"`, `required.1: "a" is there twice`, `required.2: a name`,
		`enum: it must not be empty`, `properties.a.type: it must not`, `properties.a.minLength: it must be a whole`, `keyword "format"`,
		`properties.b: a schema must be`, `properties.c.pattern: error parsing regexp`, `properties.d.items.oneOf: state schemas`,
		`additionalProperties: a schema must`, `minimum: it must be a number`, `maxItems: it must be a whole`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

func TestCompileSchemaBounds(t *testing.T) {
	for name, text := range map[string]string{
		"not a schema":    `1`,
		"long pattern":    `{"pattern":"` + strings.Repeat("a", mostPattern.Bytes+1) + `"}`,
		"complex pattern": `{"pattern":"((a{100}){10}b){10}"}`,
		"pattern number":  `{"pattern":1}`,
		"enum map":        `{"enum":{}}`,
		"properties list": `{"properties":[]}`,
		"type number":     `{"type":1}`,
		"required text":   `{"required":"a"}`,
	} {
		if _, err := CompileSchema(rawJSON(t, text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"x%d":1`, i)
	}
	_, err := CompileSchema(rawJSON(t, `{`+strings.Join(keys, ",")+`}`))
	if n := strings.Count(err.Error(), "\n") + 1; n != maxProblems+1 || !strings.Contains(err.Error(), "and more problems") {
		t.Errorf("%d lines of problems", n)
	}
	_, err = CompileSchema(abi.Raw{0xff})
	wantCode(t, err, abi.StatusInvalidMessage)
	s, err := CompileSchema(nil)
	if err != nil || s.Check(fromJSON(t, `{"a":1}`), nil) != nil {
		t.Error("no schema accepts not everything")
	}
	if (*Schema)(nil).Check(nil, nil) != nil {
		t.Error("a nil schema accepts not everything")
	}
}

func TestPatternWorkIsBounded(t *testing.T) {
	s := mustCompile(t, `{"properties":{"v":{"pattern":"(a?){60}b$"}}}`)
	root, changes := mustApply(t, nil, set("v", rawJSON(t, `"`+strings.Repeat("a", 4<<20)+`"`)))
	err := s.CheckOn(work.New(1<<26, nil), root, changes)
	if over := (*work.Exceeded)(nil); !errors.As(err, &over) {
		t.Error(err)
	}
}

func TestCheckAlongPaths(t *testing.T) {
	s := mustCompile(t, `{
		"type":"object","required":["a"],"additionalProperties":false,
		"properties":{
			"a":{"type":"integer"},
			"m":{"type":"object","additionalProperties":{"type":"string"},"maxProperties":2},
			"l":{"items":{"type":"integer"},"minItems":1,"maxItems":3},
			"e":{"enum":[{"x":{"y":1}},{"x":{"y":2}}]},
			"ll":{"items":{"items":{"type":"integer"}}}
		}}`)
	root := fromJSON(t, `{"a":1,"m":{"k":"v"},"l":[1,2],"e":{"x":{"y":1}},"ll":[[1],[2]]}`)
	if err := s.Check(root, nil); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ edits, path string }{ // path "ok": no breach
		{`set a 2`, "ok"},
		{`set a "x"`, "a"},
		{`delete a`, "a"},
		{`delete a;set a 5`, "ok"},
		{`set a "x";set a 5`, "ok"},
		{`set b 1`, "b"},
		{`set b 1;delete b`, "ok"},
		{`set m.k 1`, "m.k"},
		{`set m.l "";set m.n ""`, "m"},
		{`append l 3`, "ok"},
		{`append l "x"`, "l.2"},
		{`append l 3;append l 4`, "l"},
		{`delete l.0`, "ok"},
		{`delete l.0;delete l.0`, "l"},
		{`set e.x.y 2`, "ok"},
		{`set e.x.y 3`, "e"},
		{`append l "x";delete l.0`, "l.1"},
		{`append l "x";delete l.-1`, "ok"},
		{`delete l.0;append l "x"`, "l.1"},
		{`set ll.1.0 "x";delete ll.0`, "ll.0.0"},
		{`set ll.1.0 "x";append ll.1 1;delete ll.1.0`, "ok"},
		{`append ll.1 "x";delete ll.1.0;delete ll.0`, "ll.0.0"},
		{`set l.0 "x";set l [1]`, "ok"},
		{`clear`, "a"},
		{`set - {"a":"x"}`, "a"},
		{`set - {"a":1}`, "ok"},
		{`set m 1`, "m"},
		{`merge m {"x.y":1}`, `m."x.y"`},
	}
	for _, tt := range tests {
		var edits []abi.Edit
		for text := range strings.SplitSeq(tt.edits, ";") {
			edits = append(edits, edit(t, text))
		}
		next, changes := mustApply(t, root, edits...)
		err := s.Check(next, changes)
		var e *SchemaError
		if tt.path == "ok" {
			if err != nil {
				t.Errorf("%s: %v", tt.edits, err)
			}
		} else if !errors.As(err, &e) || e.Path != tt.path {
			t.Errorf("%s: %v, want path %s", tt.edits, err, tt.path)
		}
	}
	if err := s.Check(fromJSON(t, `{"zzz":1}`), []Change{}); err != nil {
		t.Errorf("no changes: %v", err)
	}
}

// genSchema draws schemas that values from genMap satisfy now and then.
func genSchema(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{}
		add := func(key string, v func() any) {
			if rapid.IntRange(0, 4).Draw(t, key) == 0 {
				s[key] = v()
			}
		}
		add("type", func() any {
			all := []any{"object", "array", "string", "integer", "number", "null", "boolean"}
			return all[:rapid.IntRange(1, len(all)).Draw(t, "types")]
		})
		add("required", func() any { return []any{genKey().Draw(t, "required")} })
		for _, k := range []string{"minItems", "minProperties", "minLength", "minimum"} {
			add(k, func() any { return rapid.IntRange(0, 1).Draw(t, k) })
		}
		for _, k := range []string{"maxItems", "maxProperties", "maxLength", "maximum"} {
			add(k, func() any { return rapid.IntRange(2, 40).Draw(t, k) })
		}
		if depth > 0 {
			props := map[string]any{}
			for range 3 {
				props[genKey().Draw(t, "key")] = genSchema(depth-1).Draw(t, "property")
			}
			delete(props, bytesKey) // alone it would read as bytes
			s["properties"] = props
			add("additionalProperties", func() any { return genSchema(depth-1).Draw(t, "additional") })
			add("items", func() any { return genSchema(depth-1).Draw(t, "items") })
		}
		return s
	})
}

// TestCheckAlongPathsIsCheckOfWhole: on a state that satisfied its schema, the
// two checks agree after any batch.
func TestCheckAlongPathsIsCheckOfWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := CompileSchema(encode(t, genSchema(3).Draw(t, "schema")))
		if err != nil {
			t.Fatal(err)
		}
		model := genMap(3).Draw(t, "state")
		root := node(t, model)
		if s.Check(root, nil) != nil {
			return
		}
		edits := make([]abi.Edit, rapid.IntRange(1, 5).Draw(t, "edits"))
		for i := range edits {
			edits[i] = genEdit(t, model)
		}
		next, _, changes, err := Apply(root, edits, nil)
		if err != nil {
			return
		}
		whole, along := s.Check(next, nil), s.Check(next, changes)
		if (whole == nil) != (along == nil) {
			t.Fatalf("whole: %v, along %v: %v", whole, showChanges(t, changes), along)
		}
	})
}
