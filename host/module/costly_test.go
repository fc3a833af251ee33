package module

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/jsonschema/draft2020"
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

func mustCompile(tb testing.TB, text string) *jsonschema.Schema {
	tb.Helper()
	s, problems := draft2020.Compile(fromJSON(tb, text))
	if len(problems) > 0 {
		tb.Fatalf("%.200s: %q", text, problems)
	}
	return s
}

// dearSchemas are schemas with bodies whose check is dear for their size, each by another
// keyword.
func dearSchemas() map[string]struct{ schema, body string } {
	names := func(n int, format string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return strings.Join(list, ",")
	}
	long, ones := strings.Repeat("a", 1_000), strings.TrimSuffix(strings.Repeat("1,", 4_000), ",")
	objects := strings.TrimSuffix(strings.Repeat("{},", 300), ",")
	return map[string]struct{ schema, body string }{
		"dependentRequired": {`{"properties":{"l":{"items":{"dependentRequired":{` + names(300, `"k%d":[]`) + `}}}}}`, `{"l":[` + objects + `]}`},
		"dependentSchemas":  {`{"properties":{"l":{"items":{"dependentSchemas":{` + names(300, `"k%d":{}`) + `}}}}}`, `{"l":[` + objects + `]}`},
		"required":          {`{"properties":{"l":{"items":{"not":{"required":["x",` + names(300, `"k%d"`) + `]}}}}}`, `{"l":[` + objects + `]}`},
		"const":             {`{"properties":{"l":{"items":{"not":{"const":"` + strings.Repeat("a", 50_000) + `"}}}}}`, `{"l":[` + names(30, `"`+strings.Repeat("a", 40_000)+`%04d"`) + `]}`},
		"enum":              {`{"properties":{"l":{"items":{"not":{"enum":[` + names(3000, `"v%d"`) + `]}}}}}`, `{"l":[` + ones + `]}`},
		"uniqueItems":       {`{"properties":{"l":{"allOf":[` + names(40, `{"uniqueItems":true,"maxItems":1%d}`) + `]}}}`, `{"l":[` + names(2_000, `%d`) + `]}`},
		"pattern":           {`{"properties":{"l":{"items":{"pattern":"(a?){200}b"}}}}`, `{"l":["` + long + `"]}`},
		"patternProperties": {`{"patternProperties":{` + names(50, `"(x|y)*z%d$":{}`) + `}}`, `{` + names(200, `"xyxyxyxyxyxy%d":1`) + `}`},
		"propertyNames":     {`{"propertyNames":{"pattern":"(x?){300}z"}}`, `{` + names(50, `"xyxyxyxyxyxy%d":1`) + `}`},
		"length":            {`{"properties":{"t":{"allOf":[` + names(100, `{"maxLength":10000%03d}`) + `]}}}`, `{"t":"` + strings.Repeat("é", 5_000) + `"}`},
		"multipleOf":        {`{"properties":{"l":{"items":{"multipleOf":1e-300}}}}`, `{"l":[` + names(500, `1.%d7e300`) + `]}`},
		"bounds":            {`{"properties":{"l":{"items":{"minimum":1e-300,"maximum":1e300}}}}`, `{"l":[` + names(1000, `1.%d7e-299`) + `]}`},
		"unevaluated":       {`{"allOf":[{"allOf":[{"allOf":[{"properties":{` + names(2000, `"k%d":{}`) + `}}]}]}],"unevaluatedProperties":false}`, `{` + names(2000, `"k%d":1`) + `}`},
		"contains":          {`{"properties":{"l":{"allOf":[` + names(20, `{"contains":{"const":%d}}`) + `]}}}`, `{"l":[` + ones + `]}`},
		"null fields":       {`{"allOf":[{"type":"object"}],"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"required":[` + names(1000, `"k%d"`) + `]}}}`, `{` + names(300, `"n%d":null`) + `}`},
		"bytes":             {`{"properties":{"b":{"allOf":[` + names(100, `{"minProperties":1,"maxProperties":1%d}`) + `]}}}`, `{"b":{"$bytes":"` + strings.Repeat("AAAA", 2_000) + `"}}`},
		"any of":            {`{"properties":{"l":{"items":{"anyOf":[` + names(100, `{"required":["x%d"]}`) + `,{}]}}}}`, `{"l":[` + objects + `]}`},
		"items":             {`{"properties":{"l":{"items":{"type":"integer"}}}}`, `{"l":[` + ones + `]}`},
	}
}

// Each dear check is charged, the same each time, ends wherever its meter does, and
// looks often.
func TestDearChecksAreMetered(t *testing.T) {
	stop := errors.New("stop")
	for name, d := range dearSchemas() {
		t.Run(name, func(t *testing.T) {
			s, body := mustCompile(t, d.schema), fromJSON(t, d.body)
			most := uint64(0)
			m := work.New(0, func(units uint64) error { most = max(most, units); return nil })
			_, err := prepare(s, m, body, "event")
			if err != nil && host.CodeOf(err) != host.CodeInvalidArgument {
				t.Fatal(err)
			}
			spent := m.Spent()
			if spent < 500_000 {
				t.Errorf("%d units", spent)
			}
			if most > work.Piece/5 {
				t.Errorf("%d units between two looks", most)
			}
			again := work.New(0, nil)
			if _, err := prepare(s, again, body, "event"); err != nil && host.CodeOf(err) != host.CodeInvalidArgument || again.Spent() != spent {
				t.Errorf("%d units, then %d: %v", spent, again.Spent(), err)
			}
			for _, limit := range []uint64{1, spent / 7, spent / 2, spent - 1} {
				_, err := prepare(s, work.New(limit, nil), body, "event")
				if host.CodeOf(err) != host.CodeInvalidArgument || !strings.Contains(err.Error(), "too costly to check") {
					t.Errorf("with %d of %d units: %v", limit, spent, err)
				}
			}
			if _, err := prepare(s, work.New(0, func(uint64) error { return stop }), body, "event"); !errors.Is(err, stop) {
				t.Errorf("stopped: %v", err)
			}
		})
	}
}

// A body is checked over its encoding: however small its items are, to check it takes no
// more memory than a few times its bytes.
func TestChecksTakeLittleMemory(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates")
	}
	const all = `{"$defs":{"v":{"items":{"$ref":"#/$defs/v"},"additionalProperties":{"$ref":"#/$defs/v"}}},"$ref":"#/$defs/v"}`
	body := func(n int, item func(i int) any) abi.Raw {
		list := make([]any, n)
		for i := range list {
			list[i] = item(i)
		}
		b, err := abi.EncodeValue(map[string]any{"l": list})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	keys := map[string]any{}
	for i := range 100_000 {
		keys[strconv.Itoa(i)] = nil
	}
	large, err := abi.EncodeValue(map[string]any{"l": keys})
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]abi.Raw{
		"numbers":       body(1<<18, func(i int) any { return int64(i) }),
		"booleans":      body(1<<18, func(i int) any { return i%2 == 0 }),
		"texts":         body(1<<18, func(int) any { return "" }),
		"empty lists":   body(1<<18, func(int) any { return []any{} }),
		"empty objects": body(1<<18, func(int) any { return map[string]any{} }),
		"objects":       body(1<<17, func(i int) any { return map[string]any{"a": int64(i & 3), "b": []any{map[string]any{}}} }),
		"keys":          large,
	} {
		for what, schema := range map[string]string{"no schema": `{}`, "all visited": all, "none allowed": `{"properties":{"l":{"items":{"type":"object","required":["x"]}}}}`} {
			s := mustCompile(t, schema)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := prepare(s, nil, raw, "event")
			runtime.ReadMemStats(&after)
			if err != nil && host.CodeOf(err) != host.CodeInvalidArgument {
				t.Fatal(err)
			}
			if ratio := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(raw)); ratio > 3 {
				t.Errorf("%s, %s: %.1f bytes for a byte of the body", name, what, ratio)
			}
		}
	}
}

// What a check may take lets long bodies of small items through.
func TestLargeBodiesOfSmallItemsPass(t *testing.T) {
	s := mustCompile(t, `{"properties":{"l":{"type":"array","items":{"type":"integer"}}}}`)
	items := make([]any, 1<<20)
	for i := range items {
		items[i] = int64(i & 7)
	}
	body, err := abi.EncodeValue(map[string]any{"l": items})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepare(s, work.New(60_000_000+200*uint64(len(body)), nil), body, "event"); err != nil {
		t.Error(err)
	}
}

// Looking at a large text does not copy it.
func TestLargeTextsAreNotCopied(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"t":{"type":"string","minLength":1},"b":{"type":"object"}},"required":["t"]}`)
	body, err := abi.EncodeValue(map[string]any{"t": strings.Repeat("x", 12<<20), "b": make([]byte, 12<<20)})
	if err != nil {
		t.Fatal(err)
	}
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := prepare(s, nil, body, "v"); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n := result.AllocedBytesPerOp(); n > 64<<10 {
		t.Errorf("%d bytes are allocated to look at 24 MiB", n)
	}
}
