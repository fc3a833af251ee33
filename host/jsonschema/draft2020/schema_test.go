package draft2020

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest/suite"
	weft "github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

func fromJSON(tb testing.TB, text string) abi.Raw {
	tb.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return raw
}

func mustCompile(tb testing.TB, text string) *weft.Schema {
	tb.Helper()
	s, problems := Compile(fromJSON(tb, text))
	if len(problems) > 0 {
		tb.Fatalf("%.200s: %q", text, problems)
	}
	return s
}

// problems evaluates JSON texts.
func problems(tb testing.TB, schema, value string) []string {
	tb.Helper()
	body := fromJSON(tb, value)
	m := work.New(60_000_000+200*uint64(len(body)), nil)
	v, err := weft.View(m, body)
	if err != nil {
		tb.Fatal(err)
	}
	found, err := mustCompile(tb, schema).Evaluate(m, v, "v")
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

var evaluations = []struct{ schema, value, want string }{
	{`{}`, `{"a":1}`, ``},
	{`{"type":"integer"}`, `3`, ``},
	{`{"type":"integer"}`, `3.0`, ``},
	{`{"type":"integer"}`, `3.5`, `v: must be an integer, got 3.5`},
	{`{"type":"integer"}`, `"3"`, `v: must be an integer, got a string`},
	{`{"type":"integer"}`, `18446744073709551615`, ``},
	{`{"type":"number"}`, `3`, ``},
	{`{"type":"string"}`, `3`, `v: must be a string, got 3`},
	{`{"type":"string"}`, `null`, `v: must be a string, got null`},
	{`{"type":["integer","null"]}`, `true`, `v: must be null or an integer, got a boolean`},
	{`{"const":{"$bytes":"AAE="}}`, `{"$bytes":"AAE="}`, ``},
	{`{"enum":[1,{"$bytes":"AAE="}]}`, `{"$bytes":"AAI="}`, `v: must be one of 1, a certain byte string`},
	{`{"type":"object"}`, `{"$bytes":"AAE="}`, ``},
	{`{"type":"string"}`, `{"$bytes":"AAE="}`, `v: must be a string, got a byte string`},
	{`{"properties":{"$bytes":{"pattern":"^B"},"x":{}}}`, `{"$bytes":"AAE="}`, `v.$bytes: must match the pattern "^B"`},
	{`{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","c"]}`, `{"a":"x","b":1}`,
		`v.c: is required; v.a: must be an integer, got a string; v.b: must be a string, got 1`},
	{`{"additionalProperties":false,"properties":{"a":{}}}`, `{"a":1,"b c":2}`, `v["b c"]: is not a field of this type`},
	{`{"items":{"type":"integer"}}`, `[1,"x"]`, `v[1]: must be an integer, got a string`},
	{`{"properties":{"l":{"items":{"properties":{"n":{"minimum":3}}}}}}`, `{"l":[{},{"n":2}]}`, `v.l[1].n: must be at least 3, got 2`},
	{`{"maximum":0.1}`, `0.1`, ``},
	{`{"exclusiveMaximum":0.1}`, `0.1`, `v: must be less than 0.1, got 0.1`},
	{`{"multipleOf":0.01}`, `4.35`, ``},
	{`{"multipleOf":2}`, `3`, `v: must be a multiple of 2, got 3`},
	{`{"minimum":18446744073709551614}`, `18446744073709551613`, `v: must be at least 18446744073709551614, got 18446744073709551613`},
	{`{"enum":["a",1,null]}`, `1.0`, ``},
	{`{"enum":["a",1,null]}`, `"b"`, `v: must be one of "a", 1, null`},
	{`{"const":{"a":[1]}}`, `{"a":[1.0]}`, ``},
	{`{"const":"x"}`, `"y"`, `v: must be "x"`},
	{`{"minLength":2,"maxLength":3}`, `"é"`, `v: must have at least 2 characters, has 1`},
	{`{"maxItems":1,"uniqueItems":true}`, `[1,1.0]`, `v: must have at most 1 items, has 2; v: must have distinct items: 0 and 1 are equal`},
	{`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `v: must have at most 1 items of a certain form, has 2`},
	{`{"prefixItems":[{"type":"string"}],"items":false}`, `["a",1]`, `v[1]: is not allowed`},
	{`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"x"`, `v: must be null or an integer, got a string`},
	{`{"anyOf":[{"$ref":"#/$defs/p"},{"type":"null"}],"$defs":{"p":{"type":"object","required":["n"]}}}`, `{}`, `v.n: is required`},
	{`{"oneOf":[{"type":"integer"},{"minimum":0}]}`, `3`, `v: fits two of its alternatives, 1 and 2, where one is allowed`},
	{`{"not":{"type":"integer"}}`, `3`, `v: must not be of the form that is excluded`},
	{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, `v.b: is required`},
	{`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"required":["c"]}}}`, `{"a":1}`, `v.b: is required; v.c: is required`},
	{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `v: has a field with a name that is not allowed: "ab"`},
	{`{"patternProperties":{"^a":{"type":"integer"}}}`, `{"ab":"x"}`, `v.ab: must be an integer, got a string`},
	{`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1}`, ``},
	{`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"b":1}`, `v.b: is not a field of this type`},
	{`{"properties":{"a":{}},"allOf":[{"unevaluatedProperties":false}]}`, `{"a":1}`, `v.a: is not a field of this type`},
	{`{"$dynamicRef":"#n","$defs":{"x":{"$dynamicAnchor":"n","type":"integer"}}}`, `"a"`, `v: must be an integer, got a string`},
	{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":1}}}`, `v.properties.a.type: must be one of "array", "boolean", "integer", "null", "number", "object", "string"`},
	{`{"$ref":"https://json-schema.org/draft/2020-12/meta/applicator"}`, `{"properties":{"a":{"type":1}}}`, ``},
	{`{"$ref":"https://json-schema.org/draft/2020-12/meta/applicator"}`, `{"properties":{"a":{"not":1}}}`, `v.properties.a.not: must be a boolean or an object, got 1`},
	{`{"$dynamicAnchor":"meta","$ref":"https://json-schema.org/draft/2020-12/schema","unevaluatedProperties":false}`, `{"not":{"x":1}}`,
		`v.not.x: is not a field of this type`},
	{`{"type":"object","properties":{"next":{"$ref":"#"}},"required":["n"]}`, `{"n":1,"next":{"n":1,"next":{}}}`, `v.next.next.n: is required`},
	{`{"format":"email","contentEncoding":"base64"}`, `"?"`, ``},
	{`{"maximum":9223372036854775808}`, `9223372036854775808.0`, ``},
	{`{"exclusiveMaximum":9223372036854775808.0}`, `9223372036854775807`, ``},
	{`{"minimum":1e300}`, `1`, `v: must be at least 1e+300, got 1`},
}

func TestEvaluate(t *testing.T) {
	for _, tt := range evaluations {
		if got := strings.Join(problems(t, tt.schema, tt.value), "; "); got != tt.want {
			t.Errorf("%s of %s:\n got %s\nwant %s", tt.schema, tt.value, got, tt.want)
		}
	}
}

// node returns an encoded value as the value of a state's node.
func node(tb testing.TB, raw abi.Raw) weft.Value {
	tb.Helper()
	n, err := state.Decode(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return n.Value()
}

// The same schema and value give the same verdict, and the same first problem, whether
// the value is encoded or a tree; only byte strings differ.
func TestTreesAreCheckedAlike(t *testing.T) {
	for _, tt := range evaluations {
		if strings.Contains(tt.value, "$bytes") {
			continue
		}
		got, first := "", strings.Split(tt.want, "; ")[0]
		all, err := mustCompile(t, tt.schema).Evaluate(nil, node(t, fromJSON(t, tt.value)), "v")
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 {
			got = all[0]
		}
		if got != first {
			t.Errorf("%s of %s:\n got %s\nwant %s", tt.schema, tt.value, got, first)
		}
	}
}

// A byte string of a tree is a string: its length counts bytes.
func TestBytesOfTrees(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{"type":"string","minLength":4,"maxLength":4}`, ""},
		{`{"type":"object"}`, "must be an object, got a byte string"},
		{`{"maxLength":3}`, "must have at most 3 bytes, has 4"},
		{`{"pattern":""}`, "a byte string matches no pattern"},
		{`{"required":["$bytes"]}`, ""},
		{`{"const":"aaaa"}`, `must be "aaaa"`},
	} {
		got := ""
		if p := weft.NewChecker(nil, weft.Prices{}).Check(mustCompile(t, tt.schema), node(t, fromJSON(t, `{"$bytes":"YWFhYQ=="}`)), false); p != nil {
			got = p.Text
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.schema, got, tt.want)
		}
	}
}

func TestOnlyTenProblemsAreListed(t *testing.T) {
	got := problems(t, `{"items":{"type":"string"}}`, `[`+strings.Repeat("1,", 100)+`1]`)
	if len(got) != 11 || got[10] != "and more" {
		t.Errorf("%d problems: %q", len(got), got)
	}
}

// A small schema that would take for ever, and one that refers to itself, end
// with a problem in bounded time.
func TestCostlySchemasEnd(t *testing.T) {
	suite.NotShort(t, "checks what is costly to check")
	doubling := func(leaf, keyword string) string {
		defs := []string{`"a0":` + leaf}
		for i := 1; i <= 40; i++ {
			defs = append(defs, fmt.Sprintf(`"a%d":{"%s":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, keyword, i-1, i-1))
		}
		return `{"$ref":"#/$defs/a40","$defs":{` + strings.Join(defs, ",") + `}}`
	}
	deep := strings.Repeat(`{"x":`, 60) + `1` + strings.Repeat(`}`, 60)
	text := `"` + strings.Repeat("a", 4<<20) + `"`
	tests := []struct{ name, schema, value, want string }{
		{"allOf", doubling(`{}`, "allOf"), `1`, "too costly"},
		{"anyOf", doubling(`{"type":"string"}`, "anyOf"), `1`, "too costly"},
		{"not", `{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"properties":{"x":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"required":["y"]}}}`, deep, "too costly"},
		{"reference to itself", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `1`, "refers to itself"},
		{"pattern", `{"pattern":"(a?){300}b"}`, text, "too costly"},
		{"errors", `{"items":{"type":"string"}}`, `[` + strings.Repeat("1,", 1<<20) + `1]`, "must be a string"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(problems(t, tt.schema, tt.value), "; ")
			if !strings.Contains(got, tt.want) {
				t.Errorf("problems = %.300s, want %q", got, tt.want)
			}
		})
	}
}

func TestBadSchemas(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{"type":"intger"}`, `'/type'`},
		{`{"properties":{"n":{"minLength":"x"}}}`, `'/properties/n/minLength'`},
		{`{"pattern":"("}`, `regex`},
		{`{"pattern":"a{900}b{900}c{900}"}`, `too complex`},
		{`{"$ref":"https://example.com/x"}`, `cannot refer to another document`},
		{`{"$ref":"file:///etc/passwd"}`, `cannot refer to another document`},
		{`{"$ref":"#/$defs/none"}`, `not found`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#"}`, `$schema`},
		{`{"$defs":{"a":{"$id":"b"}}}`, `$id is only allowed at the top`},
	}
	for _, tt := range tests {
		s, problems := Compile(fromJSON(t, tt.schema))
		got := strings.Join(problems, "; ")
		if s != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: problems %q, want %q", tt.schema, got, tt.want)
		}
		if strings.Contains(got, schemaURL) || strings.Contains(got, "\n") {
			t.Errorf("%s: message %q", tt.schema, got)
		}
	}
	if _, problems := Compile(fromJSON(t, `{"description":"`+strings.Repeat("x", maxSchemaBytes)+`"}`)); len(problems) != 1 {
		t.Errorf("a large schema: %q", problems)
	}
}

// The library's own evaluation and ours agree on every value.
func TestNoDifferenceToTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, _ := json.Marshal(map[string]any{"allOf": []any{drawSchema(t, 3)}})
		raw, err := abi.FromJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		ours, problems := Compile(raw)
		if len(problems) > 0 {
			t.Fatalf("%s: %q", text, problems)
		}
		document, _ := abi.DecodeValue(raw)
		c := jsonschema.NewCompiler()
		if err := c.AddResource(schemaURL, document); err != nil {
			t.Fatal(err)
		}
		theirs := c.MustCompile(schemaURL)
		for range 5 {
			value, _ := json.Marshal(drawValue(t, 3))
			body, err := abi.FromJSON(value)
			if err != nil {
				t.Fatal(err)
			}
			decoded, _ := abi.DecodeValue(body)
			looked, err := weft.View(nil, body)
			if err != nil {
				t.Fatal(err)
			}
			want := theirs.Validate(decoded)
			n, err := state.Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			inTree := weft.NewChecker(nil, weft.Prices{}).Check(ours, n.Value(), false)
			if (want == nil) != (inTree == nil) {
				t.Fatalf("%s of a tree %s: the library says %v, we say %v", text, value, want, inTree)
			}
			got, err := ours.Evaluate(nil, looked, "v")
			if err != nil {
				t.Fatal(err)
			}
			if (want == nil) != (got == nil) {
				t.Fatalf("%s of %s: the library says %v, we say %q", text, value, want, got)
			}
		}
	})
}

var keys = []string{"a", "b", "cc"}

func drawValue(t *rapid.T, depth int) any {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return rapid.IntRange(-2, 4).Draw(t, "int")
	case 4:
		return float64(rapid.IntRange(-4, 8).Draw(t, "half")) / 2
	case 5:
		return rapid.SampledFrom([]string{"", "a", "ab", "é"}).Draw(t, "text")
	case 6:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for _, key := range keys {
		if rapid.Bool().Draw(t, "has "+key) {
			object[key] = drawValue(t, depth-1)
		}
	}
	return object
}

// drawSchema draws a schema with some of all keywords.
func drawSchema(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "plain") == 0 {
		return rapid.Bool().Draw(t, "schema")
	}
	sub := func() any { return drawSchema(t, depth-1) }
	subs := func() []any { return []any{sub(), sub()} }
	small := func() any { return rapid.IntRange(0, 2).Draw(t, "bound") }
	names := func() any { return rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 2, rapid.ID).Draw(t, "names") }
	draw := map[string]func() any{
		"type": func() any {
			return rapid.SampledFrom([]string{"null", "boolean", "number", "integer", "string", "array", "object"}).Draw(t, "type")
		},
		"const": func() any { return drawValue(t, 1) }, "enum": func() any { return []any{drawValue(t, 1), 1, "a", nil} },
		"allOf": func() any { return subs() }, "anyOf": func() any { return subs() }, "oneOf": func() any { return subs() },
		"not": sub, "if": sub, "then": sub, "else": sub,
		"minProperties": small, "maxProperties": small, "required": names,
		"properties":            func() any { return map[string]any{"a": sub(), "b": sub()} },
		"patternProperties":     func() any { return map[string]any{"^c": sub()} },
		"additionalProperties":  sub,
		"propertyNames":         sub,
		"dependentRequired":     func() any { return map[string]any{"a": names()} },
		"dependentSchemas":      func() any { return map[string]any{"b": sub()} },
		"unevaluatedProperties": sub,
		"minItems":              small, "maxItems": small, "uniqueItems": func() any { return true },
		"prefixItems": func() any { return subs() }, "items": sub, "contains": sub, "minContains": small, "maxContains": small,
		"unevaluatedItems": sub,
		"minLength":        small, "maxLength": small, "pattern": func() any { return "^a" },
		"minimum": small, "maximum": small, "exclusiveMinimum": small, "exclusiveMaximum": small, "multipleOf": func() any { return 1.5 },
	}
	all := make([]string, 0, len(draw))
	for name := range draw {
		all = append(all, name)
	}
	slices.Sort(all)
	s := map[string]any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID).Draw(t, "keywords") {
		s[name] = draw[name]()
	}
	return s
}

func FuzzView(f *testing.F) {
	f.Add([]byte{0xa1, 0x61, 'a', 0x82, 0x01, 0xf9, 0x3c, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := weft.View(nil, b)
		decoded, invalid := abi.DecodeValue(b)
		if invalid == nil && err != nil {
			t.Fatalf("% x is %v, and cannot be looked at", b, decoded)
		}
		if err == nil && invalid == nil {
			same := weft.Schema{Const: weft.NewValues(v)}
			if found, err := same.Evaluate(nil, v, "v"); len(found) > 0 || err != nil {
				t.Fatalf("% x is not equal to itself: %q, %v", b, found, err)
			}
		}
	})
}
